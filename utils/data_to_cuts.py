#!/usr/bin/env python3
"""Make a Lhotse CutSet of a data directory, for sampling batches: DATA -> DATA/cuts.jsonl.gz (or OUT).

    utils/data_to_cuts.py DATA [OUT]

The data directory stays the truth: make the cuts again after it changes. Files must be mono at 16 kHz.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.cuts import write_cuts
from dpanon.data.data_dir import DataDir


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a data directory")
    parser.add_argument("out", type=Path, nargs="?", help="a name that ends in .jsonl.gz")
    args = parser.parse_args(argv)
    out = args.out or args.data / "cuts.jsonl.gz"
    print(f"{out}: {write_cuts(DataDir.read(args.data), out)} cuts")


if __name__ == "__main__":
    run(main)
