"""Text as the tokens of a transducer, and back: characters, with or without word ends, or initials and finals.

A list of tokens is public: one in a line, without the blank, which is 0; one collected from private text would tell
about it. In a list for syllables a final begins with ``-``: ``zhong guo`` is ``zh -ong g -uo``; so where a syllable
ends is known, and a syllable that was never heard can be said. In a list with ``_``, that is the space between words.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpanon.errors import DataDirError

FINAL = "-"
SPACE = "_"
SYLLABLE = re.compile(r"(zh|ch|sh|[bpmfdtnlgkhjqxrzcsyw])?([aeiouvê][a-zê]*)?")


def read_tokens(path: Path) -> tuple[str, ...]:
    """One token in a line; at least two, all different."""
    tokens = tuple(path.read_text(encoding="utf-8").split())
    if len(tokens) < 2 or len(set(tokens)) < len(tokens):
        raise DataDirError(f"{path}: expected two or more different tokens, one in a line")
    return tokens


def is_syllabic(tokens: Sequence[str]) -> bool:
    """Whether these are initials and finals."""
    return any(token.startswith(FINAL) and len(token) > 1 for token in tokens)


def unit_of(tokens: Sequence[str]) -> str:
    """What errors are counted in: syllable, word or character."""
    return "syllable" if is_syllabic(tokens) else "word" if SPACE in tokens else "character"


def split_syllable(syllable: str) -> tuple[str, ...]:
    """``zhong -> zh -ong``, ``er -> -er``; DataDirError if it is no syllable of toneless pinyin.

    A lone initial passes: noisy answers may have one.
    """
    found = SYLLABLE.fullmatch(syllable)
    if not syllable or found is None:
        raise DataDirError(f"{syllable!r} is not a syllable of pinyin without tone")
    return tuple(part for part in (found[1], FINAL + found[2] if found[2] else None) if part)


def encode(text: str, tokens: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the tokens, from 1; DataDirError for one that is not in the list."""
    index = {token: number for number, token in enumerate(tokens, 1)}
    said: Iterable[str]
    if is_syllabic(tokens):
        said = (token for syllable in text.split() for token in split_syllable(syllable))
    else:
        said = (SPACE if SPACE in tokens else "").join(text.split())
    try:
        return tuple(index[token] for token in said)
    except KeyError as error:
        raise DataDirError(f"{text!r}: {error} is not in the list of tokens") from None


def decode(numbers: Iterable[int], tokens: Sequence[str]) -> str:
    """Text of the numbers; 0 is left out. Syllables are separated by spaces, a last initial without a final stays."""
    said = [tokens[number - 1] for number in numbers if number > 0]
    if not is_syllabic(tokens):
        return " ".join("".join(said).replace(SPACE, " ").split())
    syllables, begun = [], ""
    for token in said:
        if token.startswith(FINAL):
            syllables.append(begun + token.removeprefix(FINAL))
            begun = ""
        else:
            syllables += [begun] if begun else []
            begun = token
    return " ".join([*syllables, begun] if begun else syllables)
