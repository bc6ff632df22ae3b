#!/usr/bin/env python3
"""One part of AISHELL-1 -> one data directory, by Lhotse's recipe: local/aishell/prepare.py CORPUS PART DATA_DIR.

CORPUS/data_aishell/{wav/<part>/<speaker>/*.wav,transcript/aishell_transcript_v0.8.txt}, PART train, dev or test. The
text is characters without spaces. An utterance that the transcript does not list is left out, as everywhere.
"""

import logging
import os
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError

PARTS = ("train", "dev", "test")


def read_tables(corpus: Path, part: str) -> dict[str, dict[str, object]]:
    transcript = corpus / "data_aishell" / "transcript" / "aishell_transcript_v0.8.txt"
    if not transcript.is_file():
        raise DataDirError(f"{transcript}: no such file; is {corpus} the folder that holds data_aishell?")
    if not next((corpus / "data_aishell" / "wav" / part).glob("*/*.wav"), None):
        raise DataDirError(f"{corpus}/data_aishell/wav/{part}: no <speaker>/*.wav in it; unpack its archives first")
    logging.getLogger().setLevel(logging.ERROR)
    os.environ.setdefault("TQDM_DISABLE", "1")
    from lhotse.recipes.aishell import prepare_aishell

    manifests = prepare_aishell(corpus)[part]
    wavs = {recording.id: Path(recording.sources[0].source).absolute() for recording in manifests["recordings"]}
    tables: dict[str, dict[str, object]] = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    for segment in manifests["supervisions"]:
        utt = f"{segment.speaker}-{segment.id}"
        tables["wav.scp"][utt] = wavs[segment.recording_id]
        tables["utt2spk"][utt] = segment.speaker
        tables["utt2num_samples"][utt] = num_samples(wavs[segment.recording_id])
        tables["text"][utt] = segment.text
    return tables


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder that holds data_aishell")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, read_tables(args.corpus, args.part))
    print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
