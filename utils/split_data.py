#!/usr/bin/env python3
"""Split a data directory into shards for jobs: OUT/1 ... OUT/N, runs of utterances in order.

    utils/split_data.py DATA N OUT

The same call gives the same shards. One that is there already stays as it is, with what a job put into it.
"""

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.data.sets import split


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("data", help="a data directory")
    parser.add_argument("num_shards", type=int, metavar="N")
    parser.add_argument("out", help="the directory of the shards")
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    split(data, args.num_shards, args.out)
    print(f"{args.data}: {len(data)} utterances in {args.num_shards} shards under {args.out}")


if __name__ == "__main__":
    run(main)
