#!/usr/bin/env python3
"""Is a downloaded part of LibriSpeech whole? Compares its MD5 with expected.json.

local/librispeech/check_archive.py dev-clean.tar.gz
"""

import hashlib
import json
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.errors import DataDirError


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    args = parser.parse_args(argv)
    parts = json.loads(Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))["parts"]
    part = args.archive.name.removesuffix(".tar.gz")
    if part not in parts:
        raise DataDirError(f"{args.archive}: {part!r} is no part of LibriSpeech; expected one of {', '.join(parts)}")
    with args.archive.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != parts[part]["md5"]:
        raise DataDirError(
            f"{args.archive}: MD5 is {found}, expected {parts[part]['md5']}; remove it and fetch it again"
        )
    print(f"{args.archive}: whole")


if __name__ == "__main__":
    run(main)
