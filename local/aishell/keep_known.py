#!/usr/bin/env python3
"""Utterances that a list of tokens can write -> another data directory: local/aishell/keep_known.py TOKENS DATA OUT.

Marks and spaces are cut from the text first. With --text false the text is used to choose, and is then left behind.
"""

import re
from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.tokens import read_tokens
from dpanon.errors import DataDirError


def keep(data: DataDir, tokens: tuple[str, ...], text: bool) -> dict[str, dict[str, object]]:
    """Tables of the utterances whose every character is a token."""
    known, said = set(tokens), {}
    for utt, line in data.table("text").items():
        line = re.sub(r"[\W_]", "", line)
        if line and set(line) <= known:
            said[utt] = line
    if not said:
        raise DataDirError(f"{data.path}: no utterance is of characters that the list of tokens has")
    speakers = {data.speaker(utt) for utt in said}
    tables = {
        name: {key: value for key, value in table.items() if key in (speakers if name.startswith("spk2") else said)}
        for name, table in data.tables().items()
        if name not in ("text", "spk2utt")
    }
    return tables | ({"text": said} if text else {})


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=boolean, default=True, help="false: write none (default: true)")
    parser.add_argument("tokens", type=Path, help="one character in a line")
    parser.add_argument("data", type=Path, help="a data directory with text")
    parser.add_argument("out", type=Path, help="the data directory to be written")
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    made = write_data_dir(args.out, keep(data, read_tokens(args.tokens), args.text))
    print(f"{made.path}: {len(made)} of {len(data)} utterances")


if __name__ == "__main__":
    run(main)
