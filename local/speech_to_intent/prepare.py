#!/usr/bin/env python3
"""A folder of unlabelled recordings (coffee orders of speech-to-intent, FLAC) -> one data directory.

    local/speech_to_intent/prepare.py CORPUS DATA

The true speakers are unknown: some people spoke several of the files. Each file gets a speaker id of its own, its
name, which makes a valid set for training content features or a vocoder, and nothing else. Never use it for a
speaker-level claim, an x-vector pool or an EER. There is no text and no sex.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError


def prepare(corpus: Path) -> dict[str, dict[str, object]]:
    files = {file.stem: file.absolute() for file in sorted(corpus.glob("*.flac"))}
    if not files:
        raise DataDirError(f"{corpus}: no .flac files in it")
    return {
        "wav.scp": files,
        "utt2spk": {name: name for name in files},
        "utt2num_samples": {name: num_samples(file) for name, file in files.items()},
    }


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="a folder of .flac files")
    parser.add_argument("data", help="the data directory to be written")
    args = parser.parse_args(argv)
    print(f"{args.data}: {len(write_data_dir(args.data, prepare(args.corpus)))} utterances, speakers unknown")


if __name__ == "__main__":
    run(main)
