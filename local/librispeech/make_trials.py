#!/usr/bin/env python3
"""Trials of a verification test: DATA -> ENROLLS, TRIALS_f, TRIALS_m.

    local/librispeech/make_trials.py [--enroll N] DATA ENROLLS TRIALS

    local/librispeech/make_trials.py data/test_other data/test_other_enrolls data/test_other_trials

The first N utterances of every speaker enrol, the others are trials, each against every speaker of the same sex.
Nothing is drawn, so the lists are the same everywhere.
"""

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.data.sets import make_trials


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--enroll", type=int, default=4, metavar="N", help="utterances to enrol with (default: 4)")
    parser.add_argument("data", help="a data directory with spk2gender")
    parser.add_argument("enrolls", help="the data directory of the utterances to enrol with, to be written")
    parser.add_argument("trials", help="the beginning of the names of those with the trials; _f or _m follows")
    args = parser.parse_args(argv)
    for new in make_trials(DataDir.read(args.data), args.enroll, args.enrolls, args.trials):
        targets = sum(same for _, _, same in new.trials()) if new.has("trials") else 0
        rest = f", {targets} target and {len(new.trials()) - targets} other trials" if targets else ""
        print(f"{new.path}: {len(new)} utterances, {len(new.speakers)} speakers{rest}")


if __name__ == "__main__":
    run(main)
