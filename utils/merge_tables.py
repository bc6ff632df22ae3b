#!/usr/bin/env python3
"""Merge the tables of shards into one, which must have a row for every utterance.

    utils/merge_tables.py OUT UTT2SPK SHARD_TABLE ...

The tables are of the form `<utt> <value>`, or .jsonl with an "utt" in every row. If an utterance has no row,
OUT is not written; the error names the missing ones and the shard whose log says why.
"""

from dpanon.cli import ArgumentParser, run
from dpanon.data.sets import merge


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("out", help="the table to be written")
    parser.add_argument("utt2spk", help="which utterances must have a row")
    parser.add_argument("shards", nargs="+", metavar="SHARD_TABLE")
    args = parser.parse_args(argv)
    print(f"{args.out}: {merge(args.out, args.utt2spk, args.shards)} utterances")


if __name__ == "__main__":
    run(main)
