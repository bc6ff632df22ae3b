#!/usr/bin/env python3
"""Share the speakers of a data directory out among parts: DATA -> OUT_<part>, nobody in two of them.

    utils/share_speakers.py data/all data/split train=0.5 attack=0.25 test=0.25

Every part gets its share of each sex. Nothing is drawn, so the parts are the same everywhere.
"""

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.data.pieces import share_out
from dpanon.data.sets import subset, write_subset
from dpanon.errors import UsageError


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data directory")
    parser.add_argument("out", help="the beginning of the names of the data directories to be written")
    parser.add_argument("shares", nargs="+", metavar="PART=SHARE")
    args = parser.parse_args(argv)
    shares = {}
    for text in args.shares:
        part, equals, share = text.partition("=")
        try:
            shares[part] = float(share)
        except ValueError:
            equals = ""
        if not equals or not part:
            raise UsageError(f"{text}: expected PART=SHARE, e.g. train=0.5")
    data = DataDir.read(args.data)
    for part, speakers in share_out(data, shares).items():
        new = write_subset(data, subset(data, speakers), f"{args.out}_{part}")
        print(f"{new.path}: {len(new)} utterances of {len(new.speakers)} speakers")


if __name__ == "__main__":
    run(main)
