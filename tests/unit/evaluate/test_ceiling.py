"""Recognised text against what the noise lets through."""

import json
import math

import numpy as np
import pytest

from dpanon.cli import score_asr
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.ceiling import channel_bits, text_bits
from dpanon.privacy import capacity

WORDS = "the quick brown fox jumps over the lazy dog and runs home again"


def test_bits_of_text_fall_with_errors_and_never_below_zero():
    bits = [text_bits(100, wer) for wer in (0.0, 0.2, 0.5, 0.9, 1.0, 3.0)]
    assert bits == sorted(bits, reverse=True) and bits[0] == 500.0 and bits[-1] == 0.0
    assert text_bits(100, 0.5) == pytest.approx(150.0)  # half of 5 bits, less one bit of doubt


def test_the_channel_carries_what_the_tables_say():
    """15.4 bits per second at epsilon 1 and 100 frames, 0.18 bit of pitch."""
    row = {"num_frames": 1000, "epsilon_bn": 1.0, "epsilon_f0": 1.0}
    assert channel_bits([row]) == pytest.approx(10 * 15.37 + 0.178, abs=0.1)
    assert channel_bits([row, row]) == pytest.approx(2 * channel_bits([row]))
    assert channel_bits([row | {"mu": 4.0}]) - channel_bits([row]) == pytest.approx(2.0 / math.log(2))  # mu^2 / 8 nats
    assert channel_bits([row, {"num_frames": 5, "epsilon_bn": None, "epsilon_f0": None}]) == math.inf
    token = {"num_frames": 100, "epsilon_token": 8.0, "num_tokens": 12, "mu_f0": 1.0}
    assert channel_bits([token]) == pytest.approx((12 * capacity.pure_nats(8.0) + 0.125) / math.log(2))
    assert channel_bits([token | {"mu_f0": None}]) == math.inf, "pitch without noise says what it likes"


def scored(tmp_path, epsilon, heard):
    """Ten seconds of speech with this claim, of which ``heard`` was recognised."""
    wav = tmp_path / "a.wav"
    write_wav(wav, np.zeros(160_000, np.float32))
    tables = {
        "wav.scp": {"a": str(wav)},
        "utt2spk": {"a": "a"},
        "utt2num_samples": {"a": "160000"},
        "text": {"a": WORDS},
    }
    data = write_data_dir(tmp_path / "set", tables)
    (data.path / "privacy.json").write_text(json.dumps({"system": "dp"}))
    row = {"utt": "a", "num_frames": 1000, "epsilon_bn": epsilon, "epsilon_f0": 1.0}
    (data.path / "privacy.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "text").write_text(f"a {heard}\n")
    score_asr.main(["score", str(data.path), str(tmp_path / "text"), str(tmp_path / "out")])
    return json.loads((tmp_path / "out" / "metrics.json").read_text())


def test_more_text_than_the_noise_allows_fails_and_says_so(tmp_path):
    with pytest.raises(EvaluationError, match="65 bits of text .* at most"):
        scored(tmp_path, 0.5, WORDS)
    assert (tmp_path / "out" / "metrics.json").exists(), "the figures stay to be looked at"


@pytest.mark.parametrize("epsilon, heard", [(10.0, WORDS), (0.5, "nothing of it was said")])
def test_text_within_the_ceiling_passes(tmp_path, epsilon, heard):
    metrics = scored(tmp_path, epsilon, heard)
    assert metrics["text_bits"] <= metrics["channel_bits"]
