"""f0 of what breaks estimators: silence, DC, clicks, very short and unvoiced-only recordings (amfm_decompy #2-#12)."""

import numpy as np
import pytest

from dpanon.features.f0 import METHODS, extract_f0, interpolate_log_f0, normalise_log_f0

RATE = 16000


def available(method):
    if method == "harvest":
        pytest.importorskip("pyworld")


def buzz(hz, seconds):
    """A pulse-like voice: many harmonics of one fundamental."""
    t = np.arange(int(seconds * RATE)) / RATE
    return 0.1 * sum(np.sin(2 * np.pi * hz * k * t) / k for k in range(1, 20))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(16000),
        np.full(16000, 0.5),
        np.zeros(1),
        np.zeros(0),
        np.random.default_rng(0).standard_normal(16000) * 0.1,
        np.random.default_rng(1).standard_normal(800) * 0.1,
        np.eye(1, 16000, 8000)[0],
        np.sign(buzz(120, 0.05)),
    ],
    ids=["silence", "dc", "one-sample", "empty", "noise", "50ms-noise", "click", "50ms-clipped"],
)
def test_odd_input_gives_frames_not_errors(method, samples):
    available(method)
    f0 = extract_f0(samples, method)
    assert f0.shape == ((len(samples) + 80) // 160,) and f0.dtype == np.float32
    assert np.isfinite(f0).all() and ((f0 == 0) | ((f0 >= 60) & (f0 <= 600))).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("hz", [110.0, 220.0])
def test_a_steady_voice_has_its_f0(method, hz):
    available(method)
    if method == "yaapt" and hz > 200:
        pytest.skip("YAAPT takes a perfectly periodic sound for one of twice its period; speech is none")
    f0 = extract_f0(buzz(hz, 1.0), method)
    assert (f0 > 0).mean() > 0.7
    assert np.median(f0[f0 > 0]) == pytest.approx(hz, rel=0.03)


@pytest.mark.parametrize("method", ["swift"])
@pytest.mark.parametrize("samples", [np.zeros(16000), np.full(16000, 0.3)])
def test_silence_is_unvoiced(method, samples):
    assert not extract_f0(samples, method).any()


def test_unknown_method_is_named():
    with pytest.raises(ValueError, match="swift, yaapt, harvest"):
        extract_f0(np.zeros(16000), "crepe")


def test_interpolation_bridges_gaps_and_holds_the_ends():
    f0 = np.array([0, 100, 0, 400, 0], dtype=np.float32)
    np.testing.assert_allclose(np.exp(interpolate_log_f0(f0)), [100, 100, 200, 400, 400], rtol=1e-5)


def test_normalised_contour_says_nothing_of_range():
    f0 = np.array([0, 100, 150, 120, 0, 180], dtype=np.float32)
    np.testing.assert_allclose(normalise_log_f0(f0), normalise_log_f0(1.7 * f0), atol=1e-5)
    assert not normalise_log_f0(np.zeros(5, np.float32)).any()
