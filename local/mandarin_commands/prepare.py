#!/usr/bin/env python3
"""Mandarin commands of dysarthric speakers -> one data directory: local/mandarin_commands/prepare.py CORPUS DATA_DIR.

CORPUS/<speaker>/<command>_<take>.wav, 16 kHz, <command> one of the 19 of commands.tsv beside this file: the ten actions
and nine digits of paper D's first experiment. The set is not for download: ask its authors, and name the files so. What
the speakers said for a command is in commands.tsv, in syllables without tones; change it if yours said something else.
"""

import csv
import re
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError

HERE = Path(__file__).resolve().parent
NAME = re.compile(r"([a-z]+)_([0-9]+)")


def read_commands(path: Path = HERE / "commands.tsv") -> dict[str, str]:
    """Command -> its syllables."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["command"]: row["syllables"] for row in csv.DictReader(file, delimiter="\t")}


def read_tables(corpus: Path) -> dict[str, dict[str, object]]:
    files, commands = sorted(corpus.glob("*/*.wav")), read_commands()
    if not files:
        raise DataDirError(f"{corpus}: no <speaker>/<command>_<take>.wav in it")
    tables: dict[str, dict[str, object]] = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    for path in files:
        found = NAME.fullmatch(path.stem)
        if found is None or found[1] not in commands:
            raise DataDirError(f"{path}: expected <command>_<take>.wav, such as left_3.wav; see commands.tsv")
        speaker = path.parent.name
        utt = f"{speaker}-{found[1]}-{int(found[2]):02d}"
        tables["wav.scp"][utt] = path.absolute()
        tables["utt2spk"][utt] = speaker
        tables["utt2num_samples"][utt] = num_samples(path)
        tables["text"][utt] = commands[found[1]]
    return tables


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder with a folder for each speaker")
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, read_tables(args.corpus))
    print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
