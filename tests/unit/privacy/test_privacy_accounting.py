"""The accountant is sound, monotone, never above basic composition, and refuses what is not a number."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpanon.privacy import PrivacyError, accounting, calibration, floors, mixture, psn, rdp
from dpanon.privacy.guarantee import Part

BAD_NUMBERS = [0, 0.0, -1.0, math.inf, -math.inf, math.nan, True, "1", None, [1.0]]
BAD_DELTAS = [*BAD_NUMBERS, 1.0, 1, 2.0]
MEAN = Part("laplace", 0.5, 3)


def brute_delta(epsilon: float, times: int, total: float, steps: int) -> float:
    """delta of composed Laplace pairs, by the midpoint rule over the loss of each."""
    edges = np.linspace(0.0, epsilon, steps + 1)
    x = (edges[1:] + edges[:-1]) / 2.0
    losses = np.concatenate([[epsilon], epsilon - 2.0 * x, [-epsilon]])
    masses = np.concatenate([[0.5], 0.5 * (np.exp(-edges[:-1]) - np.exp(-edges[1:])), [0.5 * math.exp(-epsilon)]])
    all_losses, all_masses = losses, masses
    for _ in range(times - 1):
        all_losses = np.add.outer(all_losses, losses).ravel()
        all_masses = np.multiply.outer(all_masses, masses).ravel()
    return float((all_masses * np.maximum(0.0, -np.expm1(np.minimum(0.0, total - all_losses)))).sum())


@pytest.mark.parametrize("epsilon, times, steps", [(1.0, 1, 20_000), (0.7, 2, 1000), (2.0, 2, 1000), (0.5, 3, 100)])
def test_laplace_composition_by_brute_force(epsilon, times, steps):
    profile = accounting.Profile([Part("laplace", epsilon, times)], 20_000)
    for share in (0.1, 0.5, 0.8):
        total = share * times * epsilon
        exact = brute_delta(epsilon, times, total, steps)
        assert exact * (1.0 - 1e-4) <= profile.delta(total) <= exact * (1.0 + 1e-3)


@pytest.mark.parametrize("mu, times", [(0.01, 10_000), (0.3, 11), (2.0, 3)])
def test_gaussians_have_their_closed_form_and_the_grid_is_above_it(mu, times):
    parts = [Part("gaussian", mu, times)]
    whole = mu * math.sqrt(times)
    for delta in (1e-3, 1e-6, 1e-9):
        exact = accounting.gdp_epsilon(whole, delta)
        assert accounting.epsilon(parts, delta) == pytest.approx(exact, rel=1e-9)
        assert exact * (1.0 - 1e-9) <= accounting.Profile(parts, 30_000).by_loss(delta) <= 1.001 * exact + 1e-3
        assert accounting.renyi_epsilon(parts, delta) >= exact


@pytest.mark.parametrize("teachers, rate", [(1, 0.01), (1, 1.0), (4, 0.2)])
def test_mixtures_by_two_ways(teachers, rate):
    part = Part("sampled", 0.8, rate=rate, teachers=teachers)
    exact = accounting.epsilon([part], 1e-5)
    loss = accounting.loss_distribution([part], 5e-3)
    assert mixture.delta(0.8, teachers, rate, exact) == pytest.approx(1e-5, rel=1e-6)
    assert float(loss.get_delta_for_epsilon(exact)) == pytest.approx(1e-5, rel=1e-2)
    assert accounting.renyi_epsilon([part], 1e-5) >= exact


@pytest.mark.parametrize("teachers, rate", [(1, 0.3), (5, 1.0), (300, 0.01), (5000, 0.999)])
def test_a_negligible_tail_counts_as_all_teachers(teachers, rate):
    moves, masses = mixture.shifts(teachers, rate)
    assert sum(masses) == pytest.approx(1.0, abs=1e-12) and moves[-1] == teachers and min(masses) > 0.0
    assert np.dot(moves, masses) == pytest.approx(teachers * rate, rel=1e-9)


def test_sampling_everyone_is_the_gaussian():
    assert accounting.epsilon([Part("sampled", 1.0)], 1e-5) == pytest.approx(accounting.gdp_epsilon(1.0, 1e-5))
    assert psn.epsilon(1.0, 4, 1.0, 1e-5) == pytest.approx(psn.all_teachers_epsilon(1.0, 4, 1e-5))


LOSSES = st.floats(0.01, 5.0)
BOUNDED = st.builds(Part, st.sampled_from(["pure", "laplace"]), LOSSES, st.integers(1, 30))
DELTAS = st.sampled_from([1e-3, 1e-6, 1e-9])


@settings(max_examples=12, deadline=None)
@given(BOUNDED, BOUNDED, DELTAS)
def test_more_costs_more_and_never_more_than_basic(first, second, delta):
    one = accounting.Profile([first], 20_000).epsilon(delta)
    both = accounting.Profile([first, second], 20_000)
    total = both.epsilon(delta)
    assert total <= both.basic * (1.0 + 1e-12)
    assert total >= one * (1.0 - 1e-3) - 1e-3  # up to the grid
    assert total <= accounting.renyi_epsilon([first, second], delta) * (1.0 + 1e-8)
    assert both.delta(total) <= delta * (1.0 + 1e-6)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 50), st.integers(1, 50), LOSSES)
def test_epsilon_rises_with_the_number_and_falls_with_delta(few, more, epsilon):
    small, large = Part("laplace", epsilon, few), Part("laplace", epsilon, few + more)
    found = [accounting.Profile([part], 20_000).epsilon(1e-6) for part in (small, large)]
    assert found[0] <= found[1] * (1.0 + 1e-4)
    assert accounting.Profile([large], 20_000).epsilon(1e-3) <= found[1]


@pytest.mark.parametrize(
    "value, times",
    [(1e-9, 10**6), (1e-300, 3), (1e-3, 10**6), (1e-5, 10**9), (1e-8, 10**15), (700.0, 1500), (1e5, 3), (1e300, 10)],
)
@pytest.mark.parametrize("family", ["pure", "laplace"])
def test_any_size_is_bounded_by_basic_and_renyi(family, value, times):
    parts = [Part(family, value, times)]
    found = accounting.epsilon(parts, 1e-6)
    assert 0.0 <= found <= value * times * (1.0 + 1e-12)
    assert found <= accounting.renyi_epsilon(parts, 1e-6) * (1.0 + 1e-8)
    if times * value * value < 10.0:  # half a Gaussian of this mu would be too good to be true
        gaussian = (
            accounting.gdp_epsilon(0.9 * value * math.sqrt(times), 1e-6) if value * math.sqrt(times) > 1e-6 else 0
        )
        assert found >= 0.9 * gaussian


@pytest.mark.parametrize("delta", [1e-12, 1e-14, 1e-100])
def test_a_tiny_delta_is_not_left_to_the_transform(delta):
    """dp-accounting's composed distribution says delta < 0 there."""
    parts = [Part("laplace", 0.1, 1500)]
    found = accounting.epsilon(parts, delta)
    assert accounting.epsilon(parts, 1e-9) < found <= 150.0
    assert found == pytest.approx(accounting.renyi_epsilon(parts, delta), rel=0.08)


def test_steep_losses_are_not_left_to_the_library():
    """dp-accounting's Laplace of loss 1000 has a total mass of 15, and NaN when composed."""
    found = accounting.epsilon([Part("laplace", 1000.0, 2), Part("laplace", 1.0, 50)], 1e-6)
    assert 2000.0 < found <= 2050.0
    assert accounting.epsilon([Part("pure", 50.0, 3000)], 1e-6) <= 150_000.0


def test_approximate_parts_add_to_the_rest():
    parts = [Part("approx", 0.3, 2, 1e-7), Part("gaussian", 0.5)]
    assert accounting.epsilon(parts, 1e-6) == pytest.approx(0.6 + accounting.gdp_epsilon(0.5, 8e-7))
    assert accounting.delta(parts, 0.5) == 1.0 and accounting.epsilon(parts, 2e-7) == math.inf
    assert 0.0 < accounting.eer_floor(parts) < floors.eer_gdp(0.5)


def test_advanced_composition_as_in_the_table():
    found = [accounting.advanced_epsilon([Part("laplace", e, k)], 1e-6) for e, k in ((0.1, 100), (1.0, 1500))]
    assert found == pytest.approx([5.76, 897.0], rel=1e-3)
    assert accounting.advanced_epsilon([Part("gaussian", 1.0)], 1e-6) == math.inf


@pytest.mark.parametrize("epsilon, order", [(1.0, 2.0), (0.01, 30.0), (5.0, 1.5)])
def test_laplace_diverges_less_than_any_pure_mechanism(epsilon, order):
    assert rdp.laplace(epsilon, order) < rdp.pure(epsilon, order) <= min(epsilon, order * epsilon**2 / 2.0)
    # (sinh(a e) - sinh((a - 1) e)) / sinh e, the textbook form
    textbook = (math.sinh(order * epsilon) - math.sinh((order - 1.0) * epsilon)) / math.sinh(epsilon)
    assert rdp.pure(epsilon, order) == pytest.approx(math.log(textbook) / (order - 1.0), rel=1e-9)


def test_responses_are_between_nothing_and_pure():
    keep = math.exp(4.0) / (math.exp(4.0) + 255.0)
    parts = [Part("response", 4.0, 25, mass=keep)]
    assert accounting.epsilon(parts, 1e-6) == pytest.approx(59.7, abs=0.1)
    assert accounting.epsilon(parts, 1e-6) < accounting.renyi_epsilon(parts, 1e-6)
    assert accounting.renyi_epsilon(parts, 1e-6) < accounting.renyi_epsilon([Part("pure", 4.0, 25)], 1e-6)


@pytest.mark.parametrize(
    "find, parts, budget, value",
    [
        (lambda: calibration.frame_epsilon(8.0, 1e-6, 1500), lambda x: Part("laplace", x, 1500), 8.0, 0.0399),
        (lambda: calibration.frame_epsilon(1.0, 1e-6, 50), lambda x: Part("laplace", x, 50), 1.0, 0.0346),
        (lambda: calibration.frame_mu(8.0, 1e-6, 1500), lambda x: Part("gaussian", x, 1500), 8.0, 2.0 / 50.6),
        (lambda: calibration.psn_mu(8.0, 1e-6, 3, 0.3), lambda x: Part("sampled", x, rate=0.3, teachers=3), 8.0, None),
        (
            lambda: 1.0 / calibration.dp_sgd_noise_multiplier(2.0, 1e-6, 0.02, 300),
            lambda x: Part("sampled", x, 300, rate=0.02),
            2.0,
            None,
        ),
    ],
    ids=["1500 Laplace frames", "50 Laplace frames", "Gaussian frames", "PSN", "DP-SGD"],
)
def test_calibrated_noise_spends_the_budget_and_no_more(find, parts, budget, value):
    found = find()
    assert 0.99 * budget <= accounting.epsilon([parts(found)], 1e-6) <= budget * (1.0 + 1e-8)
    if value is not None:
        assert found == pytest.approx(value, rel=3e-3)


@pytest.mark.parametrize("delta", BAD_DELTAS, ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda delta: accounting.epsilon([MEAN], delta),
        lambda delta: accounting.gdp_epsilon(1.0, delta),
        lambda delta: accounting.advanced_epsilon([MEAN], delta),
        lambda delta: psn.epsilon(1.0, 3, 0.3, delta),
        lambda delta: psn.published_epsilon(1.0, 3, 0.3, delta),
        lambda delta: psn.adaptive_epsilon(1.0, 3, 0.3, delta),
        lambda delta: calibration.frame_epsilon(1.0, delta, 10),
    ],
)
def test_delta_is_between_0_and_1(call, delta):
    with pytest.raises(PrivacyError):
        call(delta)


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: Part("laplace", x),
        lambda x: Part("sampled", x, rate=0.1),
        lambda x: Part("sampled", 1.0, rate=x),
        lambda x: Part("sampled", 1.0, teachers=x),
        lambda x: accounting.gdp_epsilon(x, 1e-5),
        lambda x: accounting.gdp_delta(x, 1.0),
        lambda x: psn.epsilon(x, 3, 0.3, 1e-5),
        lambda x: calibration.share_of_mu(x, 3),
        lambda x: calibration.dp_sgd_noise_multiplier(x, 1e-5, 0.1, 10),
        lambda x: rdp.laplace(x, 2.0),
        lambda x: rdp.pure(1.0, x),
    ],
)
def test_what_is_not_a_finite_number_above_0_is_refused(call, value):
    with pytest.raises(PrivacyError):
        call(value)


@pytest.mark.parametrize("epsilon", [-1.0, math.inf, math.nan, True, False, "1", None], ids=repr)
def test_delta_is_asked_at_a_finite_epsilon(epsilon):
    with pytest.raises(PrivacyError):
        accounting.delta([MEAN], epsilon)


def test_delta_at_0_is_the_total_variation():
    assert accounting.delta([Part("laplace", 1.0)], 0.0) == pytest.approx(0.3934693403)


def test_nothing_to_account_for():
    with pytest.raises(PrivacyError, match="no parts"):
        accounting.epsilon([], 1e-6)
