#!/usr/bin/env python3
"""The made corpus -> DATA/train, and DATA/test with its enrolls and trials.

    local/mini/prepare.py [--enroll N] CORPUS DATA

The first N utterances of a test speaker enrol, the others are trials, each against every speaker of the same sex.
DATA/test_enrolls, DATA/test_trials_f and DATA/test_trials_m are the same utterances in the layout of VoicePrivacy.
"""

import tempfile
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import write_data_dir
from dpanon.data.made import read_tables
from dpanon.data.sets import combine, make_trials


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--enroll", type=int, default=4, metavar="N", help="utterances to enrol with (default: 4)")
    parser.add_argument("corpus", type=Path, help="the folder that make_corpus.py made")
    parser.add_argument("data", type=Path, help="where the data directories are to be written")
    args = parser.parse_args(argv)
    made = [write_data_dir(args.data / "train", read_tables(args.corpus, "train"))]
    with tempfile.TemporaryDirectory() as folder:
        test = write_data_dir(Path(folder) / "test", read_tables(args.corpus, "test"))
        made += make_trials(test, args.enroll, args.data / "test_enrolls", args.data / "test_trials")
    made += [combine(made[1:], args.data / "test")[0]]
    for data in made:
        trials = f", {len(data.trials())} trials" if data.has("trials") else ""
        print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers{trials}")


if __name__ == "__main__":
    run(main)
