"""f0 correlation and DNSMOS averages on toy data."""

import numpy as np
import pytest

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.pitch import f0_correlation, mean_f0_correlation
from dpanon.evaluate.quality import dnsmos, mean_dnsmos


@pytest.fixture
def f0():
    return 120 + 20 * np.sin(np.arange(200) / 9)


def test_same_scaled_and_mirrored_tracks(f0):
    assert f0_correlation(f0, f0) == pytest.approx(1)
    assert f0_correlation(f0, 1.7 * f0 + 10) == pytest.approx(1)
    assert f0_correlation(f0, 300 - f0) == pytest.approx(-1)


def test_equals_numpy(f0):
    other = f0 + np.random.default_rng(1).normal(0, 20, len(f0))
    assert f0_correlation(f0, other) == pytest.approx(np.corrcoef(f0, other)[0, 1])


def test_only_frames_voiced_in_both_count(f0):
    first, second = f0.copy(), f0.copy()
    first[:50], second[40:90] = 0, 0
    assert f0_correlation(first, second) == pytest.approx(1)


def test_undefined_is_nan_not_zero(f0):
    assert np.isnan(f0_correlation(f0, np.full(200, 100.0)))
    assert np.isnan(f0_correlation(f0, np.zeros(200)))
    assert np.isnan(f0_correlation(f0[:5], f0[:5]))


def test_mean_counts_what_is_undefined(f0):
    original = {"a-1": f0, "a-2": f0, "b-1": f0}
    released = {"a-1": f0, "a-2": 300 - f0, "b-1": np.zeros(200)}
    result = mean_f0_correlation(original, released, {"a-1": "a", "a-2": "a", "b-1": "b"})
    assert result["f0_correlation"] == pytest.approx(0)
    assert result["num_undefined"] == 1 and result["num_utterances"] == 3
    flat = mean_f0_correlation({"a-1": f0}, {"a-1": np.zeros(200)}, {"a-1": "a"})
    assert flat["f0_correlation"] is None and flat["num_undefined"] == 1


def test_other_timing_and_missing_originals_are_errors(f0):
    with pytest.raises(EvaluationError, match="shorter|longer"):
        mean_f0_correlation({"a-1": f0}, {"a-1": f0[:150]}, {"a-1": "a"})
    with pytest.raises(EvaluationError, match="no original"):
        mean_f0_correlation({}, {"a-1": f0}, {"a-1": "a"})


def test_dnsmos_average():
    scores = {"a-1": {"ovrl": 3.0, "sig": 3.5, "bak": 4.0}, "b-1": {"ovrl": 2.0, "sig": 2.5, "bak": 3.0}}
    result = mean_dnsmos(scores, {"a-1": "a", "b-1": "b"})
    assert result["dnsmos_ovrl"] == 2.5 and result["dnsmos_sig"] == 3.0 and result["num_utterances"] == 2
    assert result["dnsmos_ovrl_low"] == 2.0 and result["dnsmos_ovrl_high"] == 3.0
    with pytest.raises(EvaluationError, match="no utterance"):
        mean_dnsmos({}, {})


def test_dnsmos_of_noise_and_bad_samples():
    pytest.importorskip("speechmos")
    noise = np.random.default_rng(1).normal(0, 0.1, 16000).astype(np.float32)
    assert 1 <= dnsmos(noise)["ovrl"] < 3
    for bad in (np.zeros(0, np.float32), np.full(1600, np.nan, np.float32)):
        with pytest.raises(EvaluationError, match="NaN"):
            dnsmos(bad)
