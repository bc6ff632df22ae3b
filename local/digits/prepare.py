#!/usr/bin/env python3
"""Made digits, of some roles -> one data directory: local/digits/prepare.py [--roles "train test"] CORPUS DATA_DIR."""

import csv
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError


def read_tables(corpus: Path, roles: list[str]) -> dict[str, dict[str, object]]:
    listing = corpus / "utterances.tsv"
    if not listing.is_file():
        raise DataDirError(f"{listing}: no such file: make the corpus first, with local/digits/make_digits.py {corpus}")
    tables: dict[str, dict[str, object]] = {
        name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text", "spk2gender")
    }
    with listing.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["role"] in roles:
                wav = (corpus / row["speaker"] / f"{row['utt']}.wav").absolute()
                tables["wav.scp"][row["utt"]] = wav
                tables["utt2spk"][row["utt"]] = row["speaker"]
                tables["utt2num_samples"][row["utt"]] = num_samples(wav)
                tables["text"][row["utt"]] = row["text"]
                tables["spk2gender"][row["speaker"]] = row["sex"]
    return tables


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--roles", default="train test", help='of speakers, in quotes (default: "train test")')
    parser.add_argument("corpus", type=Path, help="the folder that make_digits.py made")
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, read_tables(args.corpus, args.roles.split()))
    print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
