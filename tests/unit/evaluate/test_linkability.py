"""D_sys against quadrature for two Gaussians, closed forms and its bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.linkability import METHODS, linkability, local_linkability


def gaussian_d_sys(mu, omega=1.0):
    """Scores N(mu, 1) and N(0, 1): likelihood ratio exp(mu x - mu^2 / 2)."""

    def integrand(x):
        odds = omega * math.exp(mu * x - mu * mu / 2)
        return norm.pdf(x, mu) * max(0.0, (odds - 1) / (odds + 1))

    return quad(integrand, -10, 10 + mu, limit=200, points=[mu / 2 - math.log(omega) / mu])[0]


@pytest.mark.parametrize(("mu", "reference"), [(0.5, 0.12818), (1, 0.29349), (2, 0.61654), (3, 0.83457)])
def test_quadrature_agrees_with_the_reference_table(mu, reference):
    assert gaussian_d_sys(mu) == pytest.approx(reference, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("omega", [1.0, 0.25])
def test_two_gaussians(method, mu, omega):
    rng = np.random.default_rng(1)
    value = linkability(rng.normal(mu, 1, 100_000), rng.normal(0, 1, 100_000), omega, method)
    assert value == pytest.approx(gaussian_d_sys(mu, omega), abs=0.02)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_response_has_the_closed_form(epsilon):
    """Scores 0 and 1 with odds exp(epsilon): e (e - 1) / (1 + e)^2 with e = exp(epsilon)."""
    e, n = math.exp(epsilon), 1_000_000
    ones = round(n * e / (1 + e))
    same = np.repeat([1.0, 0.0], [ones, n - ones])
    expected = e * (e - 1) / (1 + e) ** 2
    for method in METHODS:
        assert linkability(same, 1 - same, method=method) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_ends_of_the_scale(method):
    rng = np.random.default_rng(2)
    assert linkability(rng.random(1000) + 2, rng.random(1000), method=method) == pytest.approx(1.0)
    assert linkability(np.ones(50), np.ones(70), method=method) == pytest.approx(0.0, abs=1e-9)
    assert linkability(rng.random(20_000), rng.random(20_000), method=method) < 0.03


values = st.lists(st.floats(-5, 5), min_size=1, max_size=40)


@settings(deadline=None, max_examples=60)
@given(values, values, st.sampled_from(METHODS))
def test_within_0_and_1(target, nontarget, method):
    assert 0.0 <= linkability(target, nontarget, method=method) <= 1.0


def test_monotone_ignores_what_is_linked_by_low_scores():
    """Same-speaker scores below all others: the histogram calls them linked, a rising likelihood ratio does not."""
    target, nontarget = np.linspace(-2, -1, 100), np.linspace(1, 2, 100)
    assert linkability(target, nontarget) == pytest.approx(1.0)
    assert linkability(target, nontarget, method="monotone") == 0.0


def test_local_linkability():
    np.testing.assert_allclose(local_linkability([0.0, 0.5, 1.0, 3.0, np.inf]), [0, 0, 0, 0.5, 1])


@pytest.mark.parametrize("omega", [0.0, -1.0, float("inf"), float("nan")])
def test_omega_is_checked(omega):
    with pytest.raises(EvaluationError, match="omega"):
        linkability([1.0], [0.0], omega)


def test_nan_is_refused():
    with pytest.raises(EvaluationError, match="NaN"):
        linkability([float("nan")], [0.0])
