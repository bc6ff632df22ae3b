"""Gaussian pitch, contours of low rank, clipped latents, and the ladder of lengths."""

import math

import numpy as np
import pytest
import torch

from dpanon.privacy import (
    BottleneckFrames,
    ClippedLatent,
    LowRankPitch,
    PitchBox,
    PitchGaussian,
    PrivacyError,
    SpeakerGaussian,
    accounting,
    audit,
    clip,
    lengths,
)


def test_gaussian_pitch_needs_a_thirteenth_of_the_laplace_noise():
    """Deviations 2121 and 163.6 at 1,500 frames and epsilon 1 (delta 1e-6)."""
    mu = accounting.gdp_mu(1.0, 1e-6)
    assert PitchBox(1.0, 1).scale(1500) * math.sqrt(2) == pytest.approx(2121, abs=1)
    assert PitchGaussian(mu, 1).sigma(1500) == pytest.approx(163.6, abs=0.2)


def test_gaussian_pitch_has_its_deviation_for_the_opposite_corners():
    for corner in clip.unit_box_pair(2, 5000):
        released = PitchGaussian(0.5, 2).release(corner)
        assert not audit.gaussian_scale(released.value - corner, math.sqrt(2 * 5000) / 0.5).broken
        assert released.guarantee.mu() == 0.5 and released.guarantee.unit == "utterance"


@pytest.mark.parametrize("frames", [7, 50, 1500])
def test_the_noise_of_a_contour_does_not_depend_on_its_length(frames):
    mechanism = LowRankPitch(1.0, rank=5, radius=0.8)
    contour = 1e6 * np.sin(np.arange(frames))
    inside = mechanism.clip(mechanism.coefficients(contour))
    assert clip.exact_squared_l2_norm(inside) <= clip.Fraction(0.8) ** 2
    assert mechanism.sigma == pytest.approx(1.6)
    residual = np.stack([mechanism.release(contour).value - inside for _ in range(400)])
    assert not audit.gaussian_scale(residual, 1.6).broken
    assert audit.gaussian_scale(residual / 2, 1.6).broken


def test_a_slow_contour_survives_its_coefficients():
    time = np.linspace(0, 1, 240)
    contour = np.cos(np.pi * time) + 0.5 * np.cos(3 * np.pi * time)
    mechanism = LowRankPitch(1.0, rank=6)
    coefficients = mechanism.coefficients(contour)
    assert np.linalg.norm(coefficients) == pytest.approx(np.sqrt((contour**2).mean()), rel=1e-3)
    for frames in (240, 120):  # the same curve at another length
        made = mechanism.contour(coefficients, frames)
        wanted = np.interp(np.linspace(0, 1, frames), time, contour)
        assert np.corrcoef(made, wanted)[0, 1] > 0.999


def test_short_and_broken_contours_give_finite_coefficients():
    mechanism = LowRankPitch(2.0, rank=8)
    for contour in (np.ones(1), np.ones(3), np.full(20, np.nan), np.full(20, np.inf), np.array([1e308, -1e308] * 9)):
        released = mechanism.release(contour).value
        assert released.shape == (8,) and np.isfinite(released).all()
        assert np.isfinite(mechanism.contour(released, len(contour))).all()


def test_the_centre_is_where_nothing_is_known():
    centre = np.array([0.5, -0.2, 0.0])
    mechanism = LowRankPitch(1e-3, rank=3, centre=centre)
    shrunk = mechanism.contour(np.array([900.0, 5.0, -700.0]), 100, shrink=True)
    public = mechanism.contour(centre, 100)
    assert np.corrcoef(shrunk, public)[0, 1] > 0.9


def test_what_is_expected_of_a_contour_is_corrected_by_its_share():
    time = np.linspace(0, 1, 240)
    expected = np.sin(9 * time)
    errors = np.full(3, 0.5)
    weak, strong = LowRankPitch(1e-3, rank=3, radius=0.8), LowRankPitch(1e4, rank=3, radius=0.8)
    true = np.array([0.3, -0.2, 0.1])
    np.testing.assert_allclose(weak.correct(true, expected, errors), expected, atol=1e-4)
    np.testing.assert_allclose(strong.coefficients(strong.correct(true, expected, errors)), true, atol=1e-4)
    half = LowRankPitch(2.0, rank=3, radius=0.5)  # sigma^2 = 0.25
    middle = half.correct(true, expected, np.full(3, 0.25))
    np.testing.assert_allclose(half.coefficients(middle), (true + half.coefficients(expected)) / 2, atol=1e-5)
    for wrong in ((true[:2], expected, errors), (true, expected[None], errors), (true, expected, errors[:1])):
        with pytest.raises(PrivacyError):
            half.correct(*wrong)


def test_a_latent_is_clipped_and_gets_2_c_over_epsilon():
    mechanism = ClippedLatent(15.0, 18.35, 20_000)
    assert mechanism.scale == pytest.approx(2.44667, abs=1e-4)
    for z in (np.zeros(20_000), 1e9 * np.ones(20_000), np.full(20_000, np.nan)):
        inside = mechanism.clip(z)
        assert clip.exact_l1_norm(inside) <= clip.Fraction(18.35)
        assert not audit.laplace_scale(mechanism.release(z).value - inside, 36.7 / 15).broken
    assert mechanism.guarantee().params == {"epsilon": 15.0}


def test_a_latent_within_the_ball_is_left_as_it_is():
    z = np.linspace(-1, 1, 64)
    assert np.allclose(ClippedLatent(1.0, 1000.0, 64).clip(z), z, rtol=1e-11)


@pytest.mark.parametrize(
    "mechanism, shape", [(PitchGaussian(1.0, 3), (2, 3, 40)), (ClippedLatent(1.0, 2.0, 40), (2, 40))]
)
def test_training_noise_is_that_of_the_release_and_promises_nothing(mechanism, shape):
    layer = mechanism.train_noise()
    x = torch.zeros(shape, requires_grad=True)
    noisy = torch.stack([layer(x) for _ in range(300)])
    expected = math.sqrt(120) if len(shape) == 3 else math.sqrt(2) * 4.0
    assert noisy.std().item() == pytest.approx(expected, rel=0.06)
    noisy.sum().backward()
    assert x.grad is not None and torch.isfinite(x.grad).all()
    assert layer.guarantee.kind == "none"


def test_a_speaker_budget_takes_the_analytic_gaussian():
    """sigma 3.7306 per unit of sensitivity at (1, 1e-5), where the classic formula has 4.8448."""
    assert SpeakerGaussian.for_budget(1.0, 1e-5, 0.5, 8).sigma == pytest.approx(3.730631635, rel=1e-6)


def test_the_ladder_tells_nothing_but_the_rung():
    rungs = {lengths.rung(num) for num in range(1, 5000)}
    assert all(lengths.rung(rung) == rung for rung in rungs)
    assert all(lengths.rung(num) >= num for num in range(1, 5000))
    ordered = sorted(rungs)
    assert ordered[0] == 100 and all(a < b <= a * 1.25 + 2 for a, b in zip(ordered, ordered[1:], strict=False))
    assert all(rung % 2 == 0 for rung in rungs)


@pytest.mark.parametrize(
    "call",
    [
        lambda: PitchGaussian(0, 1),
        lambda: PitchGaussian(math.nan, 1),
        lambda: PitchGaussian(1.0, 2).release(np.ones((3, 5))),
        lambda: LowRankPitch(math.inf),
        lambda: LowRankPitch(1.0, radius=0.0),
        lambda: LowRankPitch(1.0, rank=0),
        lambda: LowRankPitch(1.0, rank=2, centre=np.array([np.nan, 0.0])),
        lambda: LowRankPitch(1.0).release(np.ones((2, 3))),
        lambda: LowRankPitch(1.0).release(np.ones(0)),
        lambda: ClippedLatent(1.0, 0.0, 4),
        lambda: ClippedLatent(True, 1.0, 4),
        lambda: ClippedLatent(1.0, 1.0, 4).release(np.ones(5)),
        lambda: ClippedLatent(1e-40, 1.0, 4),
        lambda: lengths.rung(0),
        lambda: lengths.rung(10, ratio=1.0),
        lambda: lengths.rung(10**9),
        lambda: SpeakerGaussian.for_budget(1.0, 1.0, 1.0, 4),
        lambda: PitchGaussian(1.0, 2).guarantee().compose(BottleneckFrames(1.0, 4).guarantee(num_frames=3)),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(PrivacyError):
        call()
