#!/usr/bin/env python3
"""Takes of the same words -> private, public and test sets: local/digits/split.py [options] DATA_DIR OUT.

OUT/test_speakers    all takes of the last speakers in order: neither teachers nor students have heard them
OUT/test             the first takes of every word of the others: new utterances of known speakers
OUT/public           the next takes, without the text: what students may hear, and teachers are asked about
OUT/private          the rest: for teachers only

Whoever counts a public utterance as known gives its words no protection; here its text is not even kept.
"""

from collections import defaultdict
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.sets import write_subset
from dpanon.errors import UsageError


def split(data: DataDir, test: int, public: int, unseen: int) -> dict[str, list[str]]:
    """Name of a set -> its utterances."""
    if not 0 < unseen < len(data.speakers):
        raise UsageError(
            f"{data.path}: --unseen-speakers {unseen} of {len(data.speakers)}: at least one on either side"
        )
    sets: dict[str, list[str]] = {name: [] for name in ("private", "public", "test", "test_speakers")}
    text = data.table("text")
    for spk in data.speakers[-unseen:]:
        sets["test_speakers"] += data.utterances(spk)
    for spk in data.speakers[:-unseen]:
        takes = defaultdict(list)
        for utt in data.utterances(spk):
            takes[text[utt]].append(utt)
        for word, utts in takes.items():
            if len(utts) <= test + public:
                raise UsageError(f"{data.path}: {spk} says {word!r} {len(utts)} times, not more than {test} + {public}")
            sets["test"] += utts[:test]
            sets["public"] += utts[test : test + public]
            sets["private"] += utts[test + public :]
    return sets


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--test-takes", type=int, default=5, metavar="N", help="of a speaker and word (default: 5)")
    parser.add_argument("--public-takes", type=int, default=10, metavar="N", help="of a speaker and word (default: 10)")
    parser.add_argument("--unseen-speakers", type=int, default=1, metavar="N", help="for test_speakers (default: 1)")
    parser.add_argument("data", type=Path, help="a data directory with text")
    parser.add_argument("out", type=Path, help="where the sets are to be written")
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    for name, utts in split(data, args.test_takes, args.public_takes, args.unseen_speakers).items():
        if name == "public":
            kept = set(utts)
            tables = {
                table: {k: v for k, v in rows.items() if (k in kept or table.startswith("spk2"))}
                for table, rows in data.tables().items()
                if table not in ("text", "spk2utt")
            }
            speakers = set(tables["utt2spk"].values())
            if "spk2gender" in tables:
                tables["spk2gender"] = {k: v for k, v in tables["spk2gender"].items() if k in speakers}
            made = write_data_dir(args.out / name, tables)
        else:
            made = write_subset(data, utts, args.out / name)
        print(f"{made.path}: {len(made)} utterances, {len(made.speakers)} speakers")


if __name__ == "__main__":
    run(main)
