#!/usr/bin/env python3
"""Words of one speaker -> private, dev, public and test sets of different words: local/mandarin/split.py DATA_DIR OUT.

OUT/test       words that nobody was trained on
OUT/public     other words, without the text: what students may hear, and teachers are asked about
OUT/dev        other words, private as well: settings are chosen on them, nobody is trained on them
OUT/private    the rest: for teachers only

A word goes to a set by a hash of its text, all utterances of it to the same one.
"""

import hashlib
from pathlib import Path

import numpy as np

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.sets import write_subset
from dpanon.errors import UsageError


def split(data: DataDir, test: float, public: float, dev: float) -> dict[str, list[str]]:
    """Name of a set -> its utterances; the numbers are shares of the words."""
    if not (min(test, public, dev) > 0 and test + public + dev < 1):
        raise UsageError(
            f"--test-share {test:g}, --public-share {public:g}, --dev-share {dev:g}: each must be > 0, all together < 1"
        )
    sets: dict[str, list[str]] = {"private": [], "public": [], "dev": [], "test": []}
    ends = np.cumsum([test, public, dev])
    for utt, text in data.table("text").items():
        at = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
        sets[("test", "public", "dev", "private")[np.searchsorted(ends, at, side="right")]].append(utt)
    if empty := [name for name, utts in sets.items() if not utts]:
        raise UsageError(f"{data.path}: no word for {', '.join(empty)}: take more utterances or other shares")
    return sets


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--test-share", type=float, default=0.1, metavar="X", help="of the words (default: 0.1)")
    parser.add_argument("--public-share", type=float, default=0.15, metavar="X", help="of the words (default: 0.15)")
    parser.add_argument("--dev-share", type=float, default=0.05, metavar="X", help="of the words (default: 0.05)")
    parser.add_argument("data", type=Path, help="a data directory with text")
    parser.add_argument("out", type=Path, help="where the sets are to be written")
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    for name, utts in split(data, args.test_share, args.public_share, args.dev_share).items():
        if name == "public":
            kept = set(utts)
            tables = {
                table: {k: v for k, v in rows.items() if (k in kept or table.startswith("spk2"))}
                for table, rows in data.tables().items()
                if table not in ("text", "spk2utt")
            }
            made = write_data_dir(args.out / name, tables)
        else:
            made = write_subset(data, utts, args.out / name)
        print(f"{made.path}: {len(made)} utterances")


if __name__ == "__main__":
    run(main)
