#!/usr/bin/env python3
"""Mandarin words with a manifest -> one data directory: local/mandarin/prepare.py CORPUS SPEAKER DATA_DIR.

CORPUS/manifest.tsv, with a header line and tabs: utt, speaker, text, seconds, path, corpus. The text is in Chinese
characters, or one syllable of pinyin with the number of its tone; here it becomes syllables without tones. What the
list of tokens cannot say (gaps in a pattern, Latin letters) is left out, and counted. pypinyin reads the characters.
"""

import csv
import re
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.data.tokens import encode, read_tokens
from dpanon.errors import DataDirError, MissingDependencyError

TOKENS = read_tokens(Path(__file__).resolve().parent / "tokens.txt")
HANZI = re.compile(r"[\u4e00-\u9fff]+")


def syllables_of(text: str) -> str | None:
    """Toneless pinyin with spaces; None if it cannot be said with the tokens."""
    if HANZI.fullmatch(text):
        try:
            from pypinyin import lazy_pinyin
        except ImportError as error:
            raise MissingDependencyError(
                f"Chinese characters need: pip install 'dpanon[mandarin]' ({error})"
            ) from error
        text = " ".join(lazy_pinyin(text))
    text = text.rstrip("12345").replace("ü", "v")
    try:
        encode(text, TOKENS)
    except DataDirError:
        return None
    return text


def read_tables(corpus: Path, speaker: str) -> tuple[dict[str, dict[str, object]], int]:
    """Tables, and the number of utterances that were left out."""
    manifest = corpus / "manifest.tsv"
    if not manifest.is_file():
        raise DataDirError(f"{manifest}: no such file; see {Path(__file__).name} --help for the layout")
    tables: dict[str, dict[str, object]] = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    left_out = 0
    with manifest.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["speaker"] != speaker:
                continue
            text = syllables_of(row["text"])
            if text is None:
                left_out += 1
                continue
            utt, path = row["utt"].replace("_", "-"), (corpus / row["path"]).absolute()
            tables["wav.scp"][utt] = path
            tables["utt2spk"][utt] = speaker
            tables["utt2num_samples"][utt] = num_samples(path)
            tables["text"][utt] = text
    if not tables["wav.scp"]:
        raise DataDirError(f"{manifest}: nothing of speaker {speaker!r}")
    return tables, left_out


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder that holds manifest.tsv")
    parser.add_argument("speaker", help="as the manifest writes it")
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    tables, left_out = read_tables(args.corpus, args.speaker)
    data = write_data_dir(args.data, tables)
    print(f"{data.path}: {len(data)} utterances, {left_out} left out")


if __name__ == "__main__":
    run(main)
