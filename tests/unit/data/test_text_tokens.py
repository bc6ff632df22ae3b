"""Tokens of syllables and characters: what is written is read again, also what only noise says."""

import itertools

import pytest

from dpanon.data.tokens import decode, encode, is_syllabic, read_tokens, split_syllable, unit_of
from dpanon.errors import DataDirError

TOKENS = ("zh", "g", "n", "-ong", "-uo", "-er", "-v")


@pytest.mark.parametrize(
    ("syllable", "parts"),
    [("zhong", ("zh", "-ong")), ("er", ("-er",)), ("nv", ("n", "-v")), ("zh", ("zh",)), ("shuang", ("sh", "-uang"))],
)
def test_syllables_have_initials_and_finals(syllable, parts):
    assert split_syllable(syllable) == parts


@pytest.mark.parametrize("wrong", ["", "zhong1", "中", "_hm", "Ab"])
def test_what_is_no_syllable_is_refused(wrong):
    with pytest.raises(DataDirError, match="is not a syllable"):
        split_syllable(wrong)


def test_text_and_back():
    assert is_syllabic(TOKENS)
    assert encode("zhong guo er", TOKENS) == (1, 4, 2, 5, 6)
    assert decode((1, 4, 2, 5, 6), TOKENS) == "zhong guo er"
    assert decode((0, 1, 0, 4), TOKENS) == "zhong", "blanks say nothing"
    characters = ("中", "国")
    assert not is_syllabic(characters)
    assert encode("中 国", characters) == (1, 2)
    assert decode((2, 1), characters) == "国中"
    with pytest.raises(DataDirError, match="not in the list"):
        encode("中人", characters)


def test_whatever_noise_says_can_be_learned():
    """Every sequence of tokens is written so that it is read as the same sequence."""
    for said in itertools.product(range(1, len(TOKENS) + 1), repeat=3):
        assert encode(decode(said, TOKENS), TOKENS) == said


def test_a_list_needs_two_different_tokens(tmp_path):
    for wrong in ("a\n", "a\na\n", ""):
        (tmp_path / "tokens").write_text(wrong)
        with pytest.raises(DataDirError, match="two or more different tokens"):
            read_tokens(tmp_path / "tokens")


def test_words_survive_where_the_list_has_their_space():
    tokens = ("_", "'", "A", "N", "T")
    assert decode(encode("AN  ANT'", tokens), tokens) == "AN ANT'"
    assert unit_of(tokens) == "word"


def test_without_it_text_is_characters():
    tokens = ("A", "N")
    assert decode(encode("AN A", tokens), tokens) == "ANA"
    assert unit_of(tokens) == "character"


def test_stray_spaces_are_no_words():
    tokens = ("_", "A")
    assert decode((1, 1, 2, 1, 1, 2, 1), tokens) == "A A"
