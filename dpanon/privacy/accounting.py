"""Composition and conversion, with every sensitivity in the open.

Privacy-loss distributions come from dp-accounting's low-level constructors. Its event interface
with replace-one adjacency is never used (it under-reports Gaussians by half), nor its
``get_epsilon_for_delta`` (a quantile once exp(-loss) underflows): epsilon is found by our bisection
on delta, and is never above basic composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dpanon.privacy import floors
from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError

if TYPE_CHECKING:
    from dpanon.privacy.guarantee import Part

GRID = 300_000  # points of a composed loss distribution: well under 300 MB, under 2 s
FINEST = 1e-6  # of the grid of losses; finer needs too much memory and buys nothing


def epsilon(parts: Iterable[Part], delta: float) -> float:
    """The least epsilon known for (epsilon, delta)-DP of all parts together: min(basic, tight)."""
    parts, delta = tuple(parts), probability("delta", delta)
    slack = delta - math.fsum(part.times * part.delta for part in parts if part.family == "approx")
    if slack <= 0.0:
        return math.inf
    fixed = math.fsum(part.times * part.value for part in parts if part.family == "approx")
    parts = tuple(part for part in parts if part.family != "approx")
    if not parts:
        return fixed
    if all(part.family == "gaussian" for part in parts):
        return fixed + gdp_epsilon(_mu(parts), slack)
    basic = math.inf
    if all(part.family != "gaussian" for part in parts):
        basic = math.fsum(part.times * part.value for part in parts)
        if len(parts) == 1 and parts[0].times == 1 and parts[0].family == "laplace":
            # delta(e) = 1 - exp((e - eps) / 2) of one Laplace pair, in closed form
            return fixed + max(0.0, basic + 2.0 * math.log1p(-slack))
        if len(parts) == 1 and parts[0].family == "pure":
            return fixed + min(basic, pure_composition_epsilon(parts[0].value, parts[0].times, slack))
    loss = loss_distribution(parts)
    return fixed + min(basic, _bisect(loss.get_delta_for_epsilon, slack, min(basic, _largest(parts))))


def delta(parts: Iterable[Part], epsilon: float) -> float:
    """The least delta known for (epsilon, delta)-DP of all parts together."""
    parts = tuple(parts)
    extra = math.fsum(part.times * part.delta for part in parts if part.family == "approx")
    rest = tuple(part for part in parts if part.family != "approx")
    left = epsilon - math.fsum(part.times * part.value for part in parts if part.family == "approx")
    if left < 0.0:
        return 1.0
    if not rest:
        return min(1.0, extra)
    if all(part.family == "gaussian" for part in rest):
        return min(1.0, extra + gdp_delta(_mu(rest), left))
    if all(part.family != "gaussian" for part in rest) and left >= math.fsum(p.times * p.value for p in rest):
        return min(1.0, extra)
    return min(1.0, extra + float(loss_distribution(rest).get_delta_for_epsilon(left)))


def eer_floor(parts: Iterable[Part]) -> float:
    """Equal error rate floor of all parts together, from the composed loss distribution."""
    parts = tuple(parts)
    if any(part.family == "approx" for part in parts):
        return floors.eer_from_delta(lambda loss: delta(parts, loss), min(60.0, _largest(parts)))
    loss = loss_distribution(parts, 10.0 * loss_interval(parts))  # coarse and quick: it errs on the safe side
    return floors.eer_from_delta(lambda x: float(loss.get_delta_for_epsilon(x)), min(60.0, _largest(parts)))


def loss_distribution(parts: Iterable[Part], interval: float | None = None) -> Any:
    """The (pessimistic) privacy-loss distribution of all parts, as dp-accounting holds it."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    parts = tuple(parts)
    interval = loss_interval(parts) if interval is None else interval
    total = None
    for part in parts:
        if part.family == "laplace":
            # The scalar pair with the whole shift in one coordinate dominates any vector of the same L1 shift.
            one = pld.from_laplace_mechanism(1.0 / part.value, sensitivity=1.0, value_discretization_interval=interval)
        elif part.family == "pure":
            keep = 1.0 / (1.0 + math.exp(-part.value))
            one = pld.from_randomized_response(
                2.0 * (1.0 - keep), num_buckets=2, value_discretization_interval=interval
            )
        elif part.family == "response":
            one = _response(pld, part, interval)
        elif part.family == "gaussian":
            one = pld.from_gaussian_mechanism(1.0 / part.value, sensitivity=1.0, value_discretization_interval=interval)
        else:
            raise PrivacyError(f"a part of family {part.family!r} has no loss distribution")
        many = one.self_compose(part.times) if part.times > 1 else one
        total = many if total is None else total.compose(many)
    if total is None:
        raise PrivacyError("no parts: nothing to account for")
    return total


def _response(pld: Any, part: Part, interval: float) -> Any:
    """Three outcomes: losses +epsilon, 0, -epsilon. The same from either input."""
    yes, no = part.mass, part.mass * math.exp(-part.value)
    upper, lower = {1: math.log(yes), -1: math.log(no)}, {1: math.log(no), -1: math.log(yes)}
    if (rest := 1.0 - yes - no) > 0.0:
        upper[0] = lower[0] = math.log(rest)
    return pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=interval)


def loss_interval(parts: Iterable[Part]) -> float:
    """Width of the loss grid: the range of the composed loss over ``GRID`` points."""
    parts = tuple(parts)
    range_of_loss = math.fsum(part.times * part.value for part in parts if part.family != "gaussian")
    mu = _mu(parts)
    range_of_loss += mu * mu / 2.0 + 10.0 * mu
    return max(FINEST, range_of_loss / GRID)


def gdp_delta(mu: float, epsilon: float) -> float:
    """delta of mu-GDP at epsilon: ``Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)``."""
    mu = positive("mu", mu)
    first = floors.normal_tail(epsilon / mu - mu / 2.0)
    return max(0.0, first - math.exp(epsilon + _log_normal_tail(epsilon / mu + mu / 2.0)))


def gdp_epsilon(mu: float, delta: float) -> float:
    """epsilon of mu-GDP at delta, by bisection of ``gdp_delta``."""
    mu, delta = positive("mu", mu), probability("delta", delta)
    return _bisect(lambda x: gdp_delta(mu, x), delta, mu * mu / 2.0 + 40.0 * mu)


def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose mu-GDP implies (epsilon, delta)-DP."""
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    low, high = 0.0, 1.0
    while gdp_delta(high, epsilon) < delta:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle == 0.0 or gdp_delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def analytic_gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Least sigma for (epsilon, delta)-DP at this L2 sensitivity (Balle and Wang 2018); any epsilon > 0."""
    return positive("sensitivity", sensitivity) / gdp_mu(epsilon, delta)


def laplace_rdp(epsilon: float, order: float) -> float:
    """Renyi divergence of one Laplace pair a loss epsilon apart."""
    epsilon, order = positive("epsilon", epsilon), positive("order", order)
    if order == 1.0:
        return epsilon + math.expm1(-epsilon)
    if order < 1.0:
        raise PrivacyError(f"order must be >= 1, got {order}")
    first = math.log(order / (2.0 * order - 1.0)) + (order - 1.0) * epsilon
    second = math.log((order - 1.0) / (2.0 * order - 1.0)) - order * epsilon
    return (first + math.log1p(math.exp(second - first))) / (order - 1.0)


def laplace_zcdp(epsilon: float) -> float:
    """rho of one Laplace pair a loss epsilon apart: ``epsilon - 1 + e^-epsilon``."""
    return laplace_rdp(epsilon, 1.0)


def pure_composition_delta(epsilon: float, times: int, total: float) -> float:
    """Exact delta at ``total`` of ``times`` pure epsilon-DP releases (Kairouz, Oh, Viswanath)."""
    epsilon, times = positive("epsilon", epsilon), count("times", times)
    log_one = math.log1p(math.exp(epsilon))
    terms = []
    for i in range(times + 1):
        loss = (times - 2 * i) * epsilon
        if loss > total:
            log_p = math.lgamma(times + 1) - math.lgamma(i + 1) - math.lgamma(times - i + 1)
            log_p += (times - i) * epsilon - times * log_one
            terms.append(math.exp(log_p) * -math.expm1(total - loss))
    return math.fsum(terms)


def pure_composition_epsilon(epsilon: float, times: int, delta: float) -> float:
    """Least total epsilon of ``times`` pure epsilon-DP releases at delta: best for pure DP in general."""
    delta = probability("delta", delta)
    return _bisect(lambda x: pure_composition_delta(epsilon, times, x), delta, times * positive("epsilon", epsilon))


def _mu(parts: Iterable[Part]) -> float:
    return math.sqrt(math.fsum(part.times * part.value**2 for part in parts if part.family == "gaussian"))


def _largest(parts: tuple[Part, ...]) -> float:
    """A loss beyond which delta is negligible."""
    return math.fsum(p.times * p.value for p in parts if p.family != "gaussian") + _mu(parts) ** 2 / 2 + 40 * _mu(parts)


def _bisect(profile: Callable[[float], float], delta: float, largest: float) -> float:
    """Least epsilon in [0, largest] with profile(epsilon) <= delta, from above; inf if there is none."""
    if profile(0.0) <= delta:
        return 0.0
    low, high = 0.0, largest
    if profile(high) > delta:
        return math.inf
    while high - low > 1e-10 * max(1.0, high):
        middle = (low + high) / 2.0
        if profile(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _log_normal_tail(x: float) -> float:
    if x < 30.0:
        return math.log(floors.normal_tail(x))
    return -x * x / 2.0 - math.log(x * math.sqrt(2.0 * math.pi)) + math.log1p(-1.0 / (x * x))
