#!/usr/bin/env python3
"""One part of LibriSpeech -> one data directory.

    local/librispeech/prepare.py [--partial true] CORPUS PART DATA

    local/librispeech/prepare.py corpora/LibriSpeech dev-clean data/dev_clean

The speaker is the reader, not the reader's chapter: a privacy claim and an EER are both about people, and a reader
of two chapters is one person. SPEAKERS.TXT gives the sex; names of readers are not taken over. A part must have
the utterances and speakers of expected.json; --partial true takes what is there and says how much that is.
"""

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError

EXPECTED = Path(__file__).with_name("expected.json")


def read_sexes(corpus: Path) -> dict[str, str]:
    """reader -> f or m, from lines such as ``14   | F | train-clean-360  | 25.03 | Kristin LeMoine``"""
    path = corpus / "SPEAKERS.TXT"
    if not path.is_file():
        raise DataDirError(f"{path}: no such file: is {corpus} the folder LibriSpeech, with its SPEAKERS.TXT?")
    sexes = {}
    for row, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.strip() and not line.startswith(";"):
            fields = [field.strip() for field in line.split("|")]
            if len(fields) < 3 or fields[1] not in ("F", "M"):
                raise DataDirError(f"{path}:{row}: expected '<reader> | F or M | <part> | ...', found {line!r}")
            sexes[fields[0]] = fields[1].lower()
    return sexes


def read_part(corpus: Path, part: str) -> tuple[dict[str, Path], dict[str, str], int]:
    """(audio and text by utterance, how many utterances the transcripts list)."""
    transcripts = sorted((corpus / part).glob("*/*/*.trans.txt"))
    if not transcripts:
        raise DataDirError(f"no */*/*.trans.txt under {corpus / part}: is it a part of LibriSpeech, e.g. dev-clean?")
    listed = sum(bool(line.strip()) for path in transcripts for line in path.read_text(encoding="utf-8").split("\n"))
    logging.getLogger().setLevel(logging.ERROR)  # lhotse warns of each missing file; they are counted later
    os.environ.setdefault("TQDM_DISABLE", "1")  # and draws bars, unless told before it is imported
    from lhotse.recipes import prepare_librispeech

    manifests = prepare_librispeech(corpus, dataset_parts=part)[part]
    wavs = {rec.id: Path(rec.sources[0].source).absolute() for rec in manifests["recordings"]}
    return wavs, {seg.id: seg.text for seg in manifests["supervisions"]}, listed


def check_counts(part: str, found: dict[str, int], listed: int, partial: bool) -> str:
    """'' if the part is complete, else how much of it is there; DataDirError if that may not be."""
    official = json.loads(EXPECTED.read_text(encoding="utf-8"))["parts"]
    if part not in official:
        raise DataDirError(f"{part!r} is no part of LibriSpeech; expected one of {', '.join(official)}")
    gaps = [f"{found[what]} of {official[part][what]} {what}" for what in found if found[what] != official[part][what]]
    if listed != found["utterances"]:
        gaps.append(f"{listed - found['utterances']} utterances of the transcripts have no audio")
    if gaps and not partial:
        raise DataDirError(f"{part} has {', '.join(gaps)}; unpack it again, or take what is there with --partial true")
    return ", ".join(gaps)


def prepare(corpus: Path, part: str, partial: bool) -> tuple[dict[str, dict[str, object]], str]:
    sexes = read_sexes(corpus)
    wavs, texts, listed = read_part(corpus, part)
    utt2spk = {utt: utt.split("-")[0] for utt in wavs}  # 1272-128104-0000: reader, chapter, number
    gaps = check_counts(part, {"utterances": len(wavs), "speakers": len(set(utt2spk.values()))}, listed, partial)
    if unknown := sorted(set(utt2spk.values()) - sexes.keys()):
        raise DataDirError(f"{corpus}/SPEAKERS.TXT: {len(unknown)} readers have no line (e.g. {unknown[:5]})")
    with ThreadPoolExecutor(2) as pool:  # decoding does not hold the interpreter
        lengths = dict(zip(wavs, pool.map(num_samples, wavs.values()), strict=True))
    tables = {
        "wav.scp": wavs,
        "utt2spk": utt2spk,
        "utt2num_samples": lengths,
        "text": texts,
        "spk2gender": {spk: sexes[spk] for spk in utt2spk.values()},
    }
    return tables, gaps


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--partial", type=boolean, default=False, metavar="true|false")
    parser.add_argument("corpus", type=Path, help="the folder LibriSpeech")
    parser.add_argument("part", help="e.g. dev-clean")
    parser.add_argument("data", help="the data directory to be written")
    args = parser.parse_args(argv)
    tables, gaps = prepare(args.corpus, args.part, args.partial)
    data = write_data_dir(args.data, tables)
    print(f"{args.data}: {len(data)} utterances, {len(data.speakers)} speakers{f' (partial: {gaps})' if gaps else ''}")


if __name__ == "__main__":
    run(main)
