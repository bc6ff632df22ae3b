#!/usr/bin/env python3
"""One part of one language of Common Voice -> one data directory, by Lhotse's recipe.

    local/commonvoice/prepare.py [--language en] [--per-speaker N] CORPUS PART DATA

    local/commonvoice/prepare.py --per-speaker 5 corpora/cv-corpus-13.0 train data/train

CORPUS holds <language>/<part>.tsv and <language>/clips/. A speaker is a client_id, shortened to 16 digits.
"""

import logging
import os
import tempfile
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError

SEXES = {"female": "f", "female_feminine": "f", "male": "m", "male_masculine": "m"}


def prepare(corpus: Path, language: str, part: str, per_speaker: int) -> dict[str, dict[str, object]]:
    if not (corpus / language / f"{part}.tsv").is_file():
        raise DataDirError(f"{corpus / language / part}.tsv: no such file; unpack the language first")
    logging.getLogger().setLevel(logging.ERROR)
    os.environ.setdefault("TQDM_DISABLE", "1")
    from lhotse.recipes import prepare_commonvoice

    with tempfile.TemporaryDirectory() as folder:
        manifests = prepare_commonvoice(corpus, folder, languages=[language], splits=[part], num_jobs=2)[language][part]
    names = ("wav.scp", "utt2spk", "utt2num_samples", "text", "spk2gender")
    tables: dict[str, dict[str, object]] = {name: {} for name in names}
    wavs = {recording.id: Path(recording.sources[0].source).absolute() for recording in manifests["recordings"]}
    count: dict[str, int] = {}
    for segment in sorted(manifests["supervisions"], key=lambda segment: segment.id):
        speaker = str(segment.speaker)[:16]
        count[speaker] = count.get(speaker, 0) + 1
        if count[speaker] > per_speaker:
            continue
        utt = f"{speaker}-{segment.id}"
        tables["wav.scp"][utt] = wavs[segment.recording_id]
        tables["utt2spk"][utt] = speaker
        tables["utt2num_samples"][utt] = num_samples(wavs[segment.recording_id])
        tables["text"][utt] = segment.text or ""
        tables["spk2gender"].setdefault(speaker, SEXES.get(str(segment.gender), "u"))
    if not tables["wav.scp"]:
        raise DataDirError(f"{corpus / language / part}.tsv: none of its clips is under {corpus / language / 'clips'}")
    return tables


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--language", default="en", help="default: en")
    parser.add_argument("--per-speaker", type=int, default=10**9, metavar="N", help="at most (default: all)")
    parser.add_argument("corpus", type=Path, help="the folder with a folder of the language")
    parser.add_argument("part", help="train, dev or test")
    parser.add_argument("data", help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, prepare(args.corpus, args.language, args.part, args.per_speaker))
    print(f"{args.data}: {len(data)} utterances of {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
