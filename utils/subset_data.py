#!/usr/bin/env python3
"""Choose utterances of a data directory: DATA -> OUT. Trials and enrolls shrink with them.

    utils/subset_data.py --speakers 10 --per-speaker 5 DATA OUT

The options apply in the order of the help; a number means the first ones in order of the ids.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir, read_lines
from dpanon.data.sets import subset, write_subset


def positive(text):
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--speakers", metavar="N|FILE", help="the first N speakers, or those of a file, one a line")
    parser.add_argument("--per-speaker", type=positive, metavar="N", help="the first N utterances of each speaker")
    parser.add_argument("--utts", type=Path, metavar="FILE", help="only utterances of this file, one a line")
    parser.add_argument("--first", type=positive, metavar="N", help="the first N utterances")
    parser.add_argument("data", help="a data directory")
    parser.add_argument("out", help="the data directory to be written")
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    speakers = args.speakers
    if speakers is not None:
        speakers = int(speakers) if speakers.isdigit() else [line.split()[0] for line in read_lines(speakers)]
    utts = None if args.utts is None else [line.split()[0] for line in read_lines(args.utts)]
    new = write_subset(data, subset(data, speakers, args.per_speaker, utts, args.first), args.out)
    print(f"{args.out}: {len(new)} of {len(data)} utterances, {len(new.speakers)} of {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
