"""A corpus that a program of local/ made, listed in its utterances.tsv, as tables of a data directory."""

import csv
from pathlib import Path

from dpanon.data.audio import num_samples
from dpanon.errors import DataDirError


def read_tables(corpus: Path, *roles: str) -> dict[str, dict[str, object]]:
    """The utterances of speakers with one of these roles: table name -> {utterance or speaker: value}.

    Raises:
        DataDirError: nothing was made there.
    """
    listing = corpus / "utterances.tsv"
    if not listing.is_file():
        raise DataDirError(f"{listing}: no such file: make the corpus first; prepare.sh of its folder in local/ does")
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
