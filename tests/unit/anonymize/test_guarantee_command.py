"""`dpanon guarantee` prints the figures of the reference tables, and refuses floors that say nothing."""

import pytest

from dpanon.cli import guarantee, run


def call(capsys, text):
    guarantee.main(text.split())
    return capsys.readouterr().out


def test_speaker(capsys):
    said = call(capsys, "--mechanism speaker --mu 1 --delta 1e-5")
    assert "1-GDP (mu) per speaker" in said
    for figure in ("EER floor: 30.85 %", "AUC ceiling: 0.7602", "linkability ceiling: 0.2935", "epsilon = 4.37718"):
        assert figure in said
    assert "information ceiling: 0.1803 bits" in said  # mu^2 / 8 nats


def test_bottleneck_frames(capsys):
    said = call(capsys, "--mechanism bn --epsilon 1 --frames 100")
    assert "1-DP (epsilon) per frame" in said and "100-DP (epsilon) per utterance" in said
    for figure in ("EER floor: 30.33 %", "0.1537 bits per frame, 15.37 bits per second", "epsilon = 100 by basic"):
        assert figure in said
    total = float(said.rpartition("composition; ")[2].split()[0])
    assert total == pytest.approx(71.546, rel=2e-3)
    assert "EER floor: vacuous (under 1 %)" in said


def test_pitch(capsys):
    said = call(capsys, "--mechanism f0 --epsilon 1")
    assert "1-DP (epsilon) per utterance" in said and "EER floor: 30.33 %" in said
    assert "0.1779 bits for the whole utterance" in said


def test_both_as_the_system_releases_them(capsys):
    said = call(capsys, "--mechanism dp --epsilon 100 --epsilon-f0 10 --frames 1000")
    assert "100010-DP (epsilon) per utterance" in said and "pitch and bottleneck features" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--mechanism bn --mu 1", "--mechanism bn does not take --mu"),
        ("--mechanism bn", "--mechanism bn needs --epsilon"),
        ("--mechanism dp --epsilon 1", "--mechanism dp needs --epsilon-f0"),
        ("--mechanism speaker --epsilon 1", "--mechanism speaker needs --mu"),
        ("--mechanism f0 --epsilon inf", "epsilon must be finite and > 0"),
        ("--mechanism f0 --epsilon 1 --delta 1", "--delta must be between 0 and 1"),
        ("--mechanism f0 --epsilon 1 --frames 0", "whole number > 0"),
        ("--mechanism x", "invalid choice"),
    ],
)
def test_misuse(capsys, text, message):
    with pytest.raises(SystemExit) as stop:
        run(guarantee.main, text.split())
    assert stop.value.code == 2 and message in capsys.readouterr().err
