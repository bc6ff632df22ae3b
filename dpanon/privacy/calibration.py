"""The noise for a wanted total: inversions of the accountant, always on the safe side.

Each is a bisection over a bound that is itself sound at every point, so what is returned meets the
budget; the search uses a coarser grid of losses than the accountant, and costs a little noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpanon.privacy import accounting, rdp
from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import Part

POINTS = 30_000  # of the grid of losses
PRECISION = 1e-4  # relative, of what is returned


def frame_epsilon(epsilon: float, delta: float, frames: int) -> float:
    """Largest loss of one Laplace frame so that ``frames`` of them are (epsilon, delta)-DP together."""
    epsilon, frames = positive("epsilon", epsilon), count("frames", frames)
    return _largest(lambda x: [Part("laplace", x, frames)], epsilon, delta, low=epsilon / frames * (1.0 - 1e-9))


def frame_mu(epsilon: float, delta: float, frames: int) -> float:
    """Largest mu of one Gaussian frame so that ``frames`` of them are (epsilon, delta)-DP together; exact."""
    return share_of_mu(accounting.gdp_mu(epsilon, delta), frames)


def share_of_mu(mu: float, times: int) -> float:
    """mu of one of ``times`` Gaussian releases that are mu-GDP together: squares add."""
    return positive("mu", mu) / math.sqrt(count("times", times))


def dp_sgd_noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Least sigma / C of a DP-SGD run that is (epsilon, delta)-DP; see ``dpsgd.DpSgd``."""
    steps = count("steps", steps)
    low = 1e-3 * accounting.gdp_mu(epsilon, delta) / math.sqrt(steps)
    mu = _largest(lambda x: [Part("sampled", x, steps, rate=rate)], epsilon, delta, low=low)
    return math.nextafter(1.0 / mu, math.inf)


def psn_mu(epsilon: float, delta: float, teachers: int, rate: float) -> float:
    """Largest mu of one teacher's share so that PSN is (epsilon, delta)-DP for all queries together; see ``psn``."""
    teachers = count("teachers", teachers)
    low = accounting.gdp_mu(epsilon, delta) / teachers * (1.0 - 1e-6)
    return _largest(lambda x: [Part("sampled", x, rate=rate, teachers=teachers)], epsilon, delta, low=low)


def _largest(parts: Callable[[float], list[Part]], epsilon: float, delta: float, low: float) -> float:
    """Largest value whose parts are within the budget: by Renyi first, which is quick. ``low`` is known to fit."""
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    low = _climb(lambda value: rdp.epsilon_at(rdp.of_parts(parts(value)), delta) <= epsilon, low, 2.0, 0.01)
    low = _climb(lambda value: accounting.Profile(parts(value), POINTS).epsilon(delta) <= epsilon, low, 1.2, PRECISION)
    if accounting.Profile(parts(low), POINTS).epsilon(delta) > epsilon:
        raise PrivacyError(f"no noise found for epsilon = {epsilon:g} at delta = {delta:g}")
    return low


def _climb(fits: Callable[[float], bool], low: float, factor: float, precision: float) -> float:
    """The largest value that fits, to a relative precision; ``low`` itself if nothing above does."""
    high = factor * low
    for _ in range(60):
        if not fits(high):
            break
        low, high = high, factor * high
    while high > low * (1.0 + precision):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
