"""The pair of inputs that is furthest apart: the claim holds for it, and is not far too cautious.

Both sides are tested: too little noise is a leak, too much is utility thrown away.
"""

import math

import numpy as np
import pytest

from dpanon.privacy import BottleneckFrames, PitchBox, PrivacyError, SpeakerGaussian, audit, clip, floors

N = 40_000
SIGMAS = 6.0  # of the log ratio: a false alarm in 1e9


def log_ratio(high, low):
    """ln of the ratio of two hit rates, and SIGMAS of its standard deviation."""
    p, q = high.mean(), low.mean()
    return math.log(p / q), SIGMAS * math.sqrt((1 - p) / (high.size * p) + (1 - q) / (low.size * q))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_antipodal_frames_meet_epsilon_exactly(epsilon):
    """For x = e1 and x' = -e1 the event {y1 > 1} has likelihood ratio exp(epsilon)."""
    high, low = (np.tile(v, (N, 1)) for v in clip.l1_ball_pair(2))
    release = BottleneckFrames(epsilon, dim=2).release
    ratio, slack = log_ratio(release(high).value[:, 0] > 1, release(low).value[:, 0] > 1)
    assert abs(ratio - epsilon) < slack


def test_frames_of_disjoint_support_meet_epsilon_exactly():
    """e1 against e2, as non-negative features have it: {y1 > 1, y2 < 0}."""
    release = BottleneckFrames(1.0, dim=2).release
    high, low = (release(np.tile(v, (N, 1))).value for v in np.eye(2))
    ratio, slack = log_ratio(
        (high[:, 0] > 1) & (high[:, 1] < 0),
        (low[:, 0] > 1) & (low[:, 1] < 0),
    )
    assert abs(ratio - 1.0) < slack


@pytest.mark.parametrize("channels, frames", [(1, 1), (2, 3)])
def test_opposite_corners_of_the_pitch_box_meet_epsilon_exactly(channels, frames):
    """All-0 against all-1, the half-spaces beyond 1 in every entry: the ratio is exp(epsilon)."""
    mechanism, epsilon = PitchBox(2.0, channels), 2.0
    num = 4_000
    high, low = (
        np.stack([mechanism.release(corner).value for _ in range(num)])
        for corner in reversed(clip.unit_box_pair(channels, frames))
    )
    scale = channels * frames / epsilon
    # ln of the likelihood ratio is sum(|y| - |y - 1|) / scale; its plateau is where all y > 1
    hits = [(y > 1).all(axis=(1, 2)) for y in (high, low)]
    ratio, slack = log_ratio(*hits)
    assert abs(ratio - epsilon) < slack
    assert mechanism.scale(frames) == pytest.approx(scale)


@pytest.mark.parametrize("mu", [0.5, 2.0])
def test_antipodal_speakers_are_mu_apart_and_no_more(mu):
    """The best test of two normals 2U apart with sigma 2U / mu errs at Phi(-mu / 2) on both sides."""
    mechanism = SpeakerGaussian(mu, radius=3.0, dim=1)
    num = 3_000
    misses = sum(float(mechanism.release(np.array([99.0])).value[0]) < 0 for _ in range(num))
    expected = floors.eer_gdp(mu)
    slack = SIGMAS * math.sqrt(expected * (1 - expected) / num)
    assert abs(misses / num - expected) < slack


def test_inputs_beyond_the_ball_are_no_easier_to_tell_apart():
    """1e6 * e1 against -1e6 * e1: without the clip the event is certain."""
    high, low = (np.tile(1e6 * v, (8000, 1)) for v in clip.l1_ball_pair(3))
    release = BottleneckFrames(1.0, dim=3).release
    assert not audit.event_audit(lambda x: release(x).value, high, low, lambda y: y[:, 0] > 1, 1.0).broken


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 0.0, 1e308, 5e-324])
def test_special_values_leave_no_mark_on_the_output(special):
    """A frame of NaN, of infinities or of nothing releases finite noise like any other."""
    y = BottleneckFrames(1.0, dim=64).release(np.full((500, 64), special)).value
    assert np.isfinite(y).all() and not audit.laplace_scale(y, 2.0).broken
    h = PitchBox(1.0, 2).release(np.full((2, 500), special)).value
    assert np.isfinite(h).all() and np.abs(h).mean() == pytest.approx(1000.0, rel=0.3)
    z = SpeakerGaussian(1.0, 1.0, 5000).release(np.full(5000, special)).value
    assert np.isfinite(z).all() and not audit.gaussian_scale(z, 2.0).broken


def test_high_epsilon_is_audited_at_a_reduced_distance():
    """At epsilon 20 the tail event has probability 1e-9: inputs at distance 2 / 20 must differ by epsilon 1."""
    epsilon, num = 20.0, N
    near = np.zeros((num, 2))
    near[:, 0], near[:, 1] = 0.5 + 1 / epsilon, 0.5 - 1 / epsilon
    far = np.full((num, 2), 0.5)
    release = BottleneckFrames(epsilon, dim=2).release
    a, b = release(near).value, release(far).value
    x1, x2 = 0.5 + 1 / epsilon, 0.5 - 1 / epsilon
    ratio, slack = log_ratio(
        (a[:, 0] > x1) & (a[:, 1] < x2),
        (b[:, 0] > x1) & (b[:, 1] < x2),
    )
    assert abs(ratio - 1.0) < slack


def test_padding_is_noised_and_counts():
    """Frames appended as padding get noise, and the pitch box scales with the padded length."""
    padded = np.vstack([np.ones((50, 8)), np.zeros((50, 8))])
    y = BottleneckFrames(1.0, dim=8).release(padded).value
    assert not audit.laplace_scale(y[50:], 2.0).broken
    assert PitchBox(1.0, 4).scale(100) == pytest.approx(2 * PitchBox(1.0, 4).scale(50))


def test_one_frame_and_one_entry_are_enough():
    assert BottleneckFrames(1.0, dim=1).release(np.ones((1, 1))).value.shape == (1, 1)
    assert PitchBox(1.0, 1).release(np.ones((1, 1))).value.shape == (1, 1)
    assert SpeakerGaussian(1.0, 1.0, 1).release(np.ones(1)).value.shape == (1,)


def test_one_run_and_eer_audits_agree_with_the_tables():
    assert audit.one_run(1000, 1000, 0.05) == pytest.approx(5.81, abs=0.01)
    assert audit.one_run(500, 1000) == 0.0
    paper = audit.eer_check(411, 997, 4110, 9970, floor=0.4602, false_alarm=0.01)
    assert paper.broken and paper.measured < 0.4602  # 41.2 % measured, 46.0 % promised
    assert not audit.eer_check(459, 997, 4588, 9970, floor=0.4602).broken
    assert audit.eer_upper(10, 10, 0, 10) == 1.0


def test_audits_refuse_what_they_cannot_judge():
    with pytest.raises(PrivacyError):
        audit.laplace_scale(np.zeros(0), 1.0)
    with pytest.raises(PrivacyError):
        audit.event_audit(lambda x: x, np.ones((2, 1)), np.ones((3, 1)), lambda y: y[:, 0] > 0, 1.0)
    assert "BROKEN" in str(audit.laplace_scale(np.zeros(100), 1.0))
    assert audit.event(0, 5, 10, 1.0).measured == -math.inf
    assert audit.lag_correlation(np.ones((4, 4))).broken
