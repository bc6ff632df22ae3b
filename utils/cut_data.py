#!/usr/bin/env python3
"""Cut utterances into pieces, each a file and an utterance of its own: DATA -> OUT.

    utils/cut_data.py --seconds 3.5 --most 4 DATA OUT

A speaker with one long recording then has embeddings to enrol with and others to be tried.
"""

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.data.pieces import cut


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.5, help="about so long a piece (default: 3.5)")
    parser.add_argument("--most", type=int, default=1000, help="pieces of an utterance, its first ones (default: 1000)")
    parser.add_argument("data", help="a data directory")
    parser.add_argument("out", help="the data directory to be written, with its wav/")
    args = parser.parse_args(argv)
    new = cut(DataDir.read(args.data), args.seconds, args.most, args.out)
    print(f"{args.out}: {len(new)} pieces of {len(new.speakers)} speakers")


if __name__ == "__main__":
    run(main)
