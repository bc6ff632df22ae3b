#!/usr/bin/env python3
"""Characters of AISHELL-1's public lexicon -> a list of tokens: local/aishell/make_tokens.py CORPUS TOKENS.

CORPUS/resource_aishell/lexicon.txt: a word and its phones in a line. No text of the private set is read: a list of
its characters would tell which are in it. Text with other characters is left out of the public sets.
"""

from pathlib import Path

from dpanon.anonymize.statement import write_text
from dpanon.cli import ArgumentParser, run
from dpanon.errors import DataDirError


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder that holds resource_aishell")
    parser.add_argument("tokens", type=Path, help="the list to be written, one character in a line")
    args = parser.parse_args(argv)
    lexicon = args.corpus / "resource_aishell" / "lexicon.txt"
    if not lexicon.is_file():
        raise DataDirError(f"{lexicon}: no such file; unpack resource_aishell.tgz of AISHELL-1")
    words = (line.split() for line in lexicon.read_text(encoding="utf-8").splitlines())
    found = sorted({letter for word in words if word for letter in word[0] if "\u4e00" <= letter <= "\u9fff"})
    args.tokens.parent.mkdir(parents=True, exist_ok=True)
    write_text(args.tokens, "".join(f"{letter}\n" for letter in found))
    print(f"{args.tokens}: {len(found)} characters")


if __name__ == "__main__":
    run(main)
