import numpy as np
import pytest

from dpanon.features.fbank import fbank
from dpanon.features.level import ACTIVE_RMS, normalise_level


@pytest.mark.parametrize("num", [1600, 1601, 16000, 16079, 16081])
def test_one_frame_per_10_ms(num):
    x = np.random.default_rng(0).standard_normal(num).astype(np.float32) * 0.1
    assert fbank(x).shape == ((num + 80) // 160, 80)


def test_same_recording_same_features():
    x = np.random.default_rng(0).standard_normal(8000).astype(np.float32) * 0.1
    np.testing.assert_array_equal(fbank(x), fbank(x))  # no dither


def test_level_of_a_recording_is_gone():
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(16000) * np.repeat([0.1, 0.0, 0.1, 0.001], 4000)).astype(np.float32)
    a, b = normalise_level(x), normalise_level(0.01 * x + 0.2)
    np.testing.assert_allclose(a, b, atol=2e-3)
    active = np.concatenate([a[:4000], a[8000:12000]])
    assert np.sqrt((active**2).mean()) == pytest.approx(ACTIVE_RMS, rel=0.05)


@pytest.mark.parametrize("x", [np.zeros(16000), np.full(16000, 0.7), np.zeros(3)])
def test_silence_stays_silent(x):
    np.testing.assert_allclose(normalise_level(x), 0, atol=1e-6)
