#!/usr/bin/env python3
"""Made digits, of some roles -> one data directory: local/digits/prepare.py [--roles "train test"] CORPUS DATA_DIR."""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import write_data_dir
from dpanon.data.made import read_tables


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--roles", default="train test", help='of speakers, in quotes (default: "train test")')
    parser.add_argument("corpus", type=Path, help="the folder that make_digits.py made")
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, read_tables(args.corpus, *args.roles.split()))
    print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
