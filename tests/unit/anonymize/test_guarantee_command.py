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


def test_noisy_votes(capsys):
    said = call(capsys, "--mechanism votes --mu 1 --queries 600 --teachers 3 --delta 1e-5")
    assert "1-GDP (mu) per utterance" in said and "add or remove one utterance" in said
    for figure in ("sigma = 11.547", "membership EER floor: 30.85 %", "epsilon = 4.37718 at delta = 1e-05"):
        assert figure in said


def test_psn_exact_and_as_published(capsys):
    said = call(capsys, "--mechanism psn --mu 1 --teachers 10 --gamma 0.1 --delta 1e-5 --unit speaker")
    assert "per speaker" in said and "add or remove one speaker" in said
    for figure in ("epsilon = 20.4033", "27.4178 if", "91.8173 if", "4.37718 with", "1.68454 as published"):
        assert figure in said


def test_dp_sgd(capsys):
    said = call(capsys, "--mechanism dp-sgd --sigma 4 --rate 0.004 --steps 2500 --delta 1e-5")
    assert said.startswith("INSECURE.") and "DP-SGD" in said
    tight, renyi = (
        float(part.split()[0]) for part in said.rpartition("cost: ")[2].replace("epsilon = ", "").split("; ")
    )
    assert tight == pytest.approx(0.1643, abs=2e-4) and renyi == pytest.approx(0.1825, abs=2e-3)


def test_cost_under_each_accountant(capsys):
    said = call(capsys, "--mechanism bn --epsilon 0.1 --frames 100")
    for figure in ("epsilon = 10 by basic", "4.69267 at", "4.98418 by Renyi", "5.75", "by advanced composition"):
        assert figure in said


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
        ("--mechanism votes --mu 1", "--mechanism votes needs --queries"),
        ("--mechanism votes --mu 1 --queries 5 --gamma 0.1", "--mechanism votes does not take --gamma"),
        ("--mechanism psn --mu 1 --teachers 3", "--mechanism psn needs --gamma"),
        ("--mechanism psn --mu 1 --teachers 3 --gamma 1.1", "a rate must be at most 1"),
        ("--mechanism dp-sgd --sigma 1 --rate 0 --steps 5", "must be finite and > 0"),
        ("--mechanism bn --epsilon 1 --unit speaker", "--mechanism bn does not take --unit"),
    ],
)
def test_misuse(capsys, text, message):
    with pytest.raises(SystemExit) as stop:
        run(guarantee.main, text.split())
    assert stop.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("f0-contour", "--mu", "1"), ["1-GDP (mu) per utterance", "EER floor: 30.85 %", "ceiling: 0.1803 bits"]),
        (("embedding", "--epsilon", "15"), ["15-DP (epsilon)", "EER floor: vacuous"]),
        (
            ("tokens", "--epsilon", "4", "--symbols", "256", "--segments", "25"),
            ["probability of 0.176", "100-DP (epsilon) per utterance", "59.6"],
        ),
    ],
)
def test_other_mechanisms(capsys, arguments, said):
    guarantee.main(["--mechanism", *arguments])
    printed = capsys.readouterr().out
    for words in said:
        assert words in printed, printed
