"""Add x-vectors to a shard: <shard>/wav.scp -> <shard>/xvector.scp. Called by steps/extract_xvector.sh."""

from pathlib import Path

import torch
from tqdm import tqdm

from dpanon.cli import ArgumentParser, run
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.features.level import normalise_level
from dpanon.features.xvector import EXTRACTORS, load_extractor


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--extractor", choices=EXTRACTORS, default="campplus")
    parser.add_argument("shard", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    data = DataDir.read(args.shard)
    extractor = load_extractor(args.extractor)
    with ArrayWriter(data.path / "xvector.scp") as writer:
        for utt in tqdm(data.utts, desc=f"{data.path}: x-vectors", mininterval=10):
            writer[utt] = extractor.embed(normalise_level(read_audio(data.wav(utt))))
    print(f"{data.path}: x-vectors of {len(data.utts)} utterances by {args.extractor}")


if __name__ == "__main__":
    run(main)
