#!/usr/bin/env python3
"""Free Spoken Digit Dataset -> one data directory: local/fsdd/prepare.py CORPUS DATA_DIR.

CORPUS/recordings/<digit>_<speaker>_<take>.wav, 8 kHz; the file name is the transcript. Any speakers and takes will do;
the speaker is the name in the file name. Utterances become <speaker>-<digit>-<take>, the take in two or more digits.
"""

import re
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError

WORDS = (Path(__file__).resolve().parent.parent / "digits" / "words.txt").read_text(encoding="utf-8").split()
NAME = re.compile(r"([0-9])_([a-z]+)_([0-9]+)\.wav")


def read_tables(corpus: Path) -> dict[str, dict[str, object]]:
    files = sorted((corpus / "recordings").glob("*.wav"))
    if not files:
        raise DataDirError(f"{corpus}: no recordings/*.wav in it: is it the folder of the Free Spoken Digit Dataset?")
    tables: dict[str, dict[str, object]] = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    for path in files:
        found = NAME.fullmatch(path.name)
        if found is None:
            raise DataDirError(f"{path}: expected <digit>_<speaker>_<take>.wav, such as 7_jackson_32.wav")
        digit, speaker, take = found.groups()
        utt = f"{speaker}-{digit}-{int(take):02d}"
        tables["wav.scp"][utt] = path.absolute()
        tables["utt2spk"][utt] = speaker
        tables["utt2num_samples"][utt] = num_samples(path)
        tables["text"][utt] = WORDS[int(digit)]
    return tables


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder that holds recordings/")
    parser.add_argument("data", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    data = write_data_dir(args.data, read_tables(args.corpus))
    print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers")


if __name__ == "__main__":
    run(main)
