"""Add f0 to a shard: <shard>/wav.scp -> <shard>/f0.scp. Called by steps/extract_f0.sh."""

from pathlib import Path

from tqdm import tqdm

from dpanon.cli import ArgumentParser, run
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.features.f0 import METHODS, extract_f0
from dpanon.features.level import normalise_level


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--method", choices=METHODS, default="swift")
    parser.add_argument("shard", type=Path)
    args = parser.parse_args(argv)
    data = DataDir.read(args.shard)
    unvoiced = 0
    with ArrayWriter(data.path / "f0.scp") as writer:
        for utt in tqdm(data.utts, desc=f"{data.path}: f0", mininterval=10):
            f0 = extract_f0(normalise_level(read_audio(data.wav(utt))), args.method)
            unvoiced += not f0.any()
            writer[utt] = f0
    print(f"{data.path}: f0 of {len(data.utts)} utterances, {unvoiced} of them without a voiced frame")


if __name__ == "__main__":
    run(main)
