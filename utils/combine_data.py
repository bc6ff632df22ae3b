#!/usr/bin/env python3
"""Join data directories into one: OUT gets the utterances of every DATA.

    utils/combine_data.py OUT DATA ...

Utterance ids must differ. A speaker may be in several: it is the same person. Tables that not all have are left out.
"""

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.data.sets import combine


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("out", help="the data directory to be written")
    parser.add_argument("data", nargs="+", help="data directories")
    args = parser.parse_args(argv)
    new, left_out = combine([DataDir.read(path) for path in args.data], args.out)
    note = f"; left out, since not all have it: {', '.join(left_out)}" if left_out else ""
    print(f"{args.out}: {len(new)} utterances of {len(new.speakers)} speakers{note}")


if __name__ == "__main__":
    run(main)
