"""Add log-mel filter banks to a shard: <shard>/wav.scp -> <shard>/fbank.scp. Called by steps/extract_fbank.sh."""

from pathlib import Path

from tqdm import tqdm

from dpanon.cli import ArgumentParser, run
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.features.fbank import fbank


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("shard", type=Path)
    args = parser.parse_args(argv)
    data = DataDir.read(args.shard)
    with ArrayWriter(data.path / "fbank.scp") as writer:
        for utt in tqdm(data.utts, desc=f"{data.path}: fbank", mininterval=10):
            writer[utt] = fbank(read_audio(data.wav(utt)))
    print(f"{data.path}: fbank of {len(data.utts)} utterances")


if __name__ == "__main__":
    run(main)
