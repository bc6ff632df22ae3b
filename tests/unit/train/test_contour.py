"""The public shape of contours: found again in made ones, and never promising more than the noise lets through."""

import numpy as np
import pytest

from dpanon.features.f0 import normalise_log_f0
from dpanon.privacy import KeyedNoise, LowRankPitch
from dpanon.train.contour import fit_contour


def contours(num=60, spread=0.1):
    """Falling f0 with a slower and a faster wave of random size."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(num):
        t = np.linspace(0, 1, int(rng.integers(200, 400)))
        wave = 0.2 * np.cos(np.pi * t) + spread * rng.normal() * np.cos(2 * np.pi * t)
        rows.append(np.exp(5.0 + wave + 0.02 * rng.normal(size=len(t))))
    return rows


def test_the_common_fall_is_public_and_costs_nothing():
    shape = fit_contour(contours(), mu=0.1)
    assert shape["centre"][0] > 0.5 and shape["correlation"] > 0.7, "the fall is in the centre, which needs no noise"


def test_what_is_expected_is_what_a_release_has():
    rows = contours(spread=0.3)
    shape = fit_contour(rows, mu=20.0)
    mechanism = LowRankPitch(20.0, shape["rank"], shape["radius"], np.array(shape["centre"]))
    both, ours, theirs = 0.0, 0.0, 0.0
    for i, row in enumerate(rows):
        true = normalise_log_f0(row)
        seen = mechanism.contour(mechanism.release(true, KeyedNoise(1, str(i), "release")).value, len(row), shrink=True)
        both, ours, theirs = both + np.mean(seen * true), ours + np.mean(seen**2), theirs + np.var(true)
    assert both / np.sqrt(ours * theirs) == pytest.approx(shape["correlation"], abs=0.05)


def test_nothing_voiced_is_said():
    with pytest.raises(ValueError, match="20 voiced"):
        fit_contour([np.zeros(100)])
