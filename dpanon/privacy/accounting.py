"""Composition and conversion, with every sensitivity in the open.

Privacy-loss distributions come from dp-accounting's low-level constructors. Its event interface
with replace-one adjacency is never used (it under-reports Gaussians by half), nor its
``get_epsilon_for_delta`` (a quantile once exp(-loss) underflows): epsilon is found by our bisection
on delta. What is reported is the least of basic composition, Renyi and loss distribution, each of
which is an upper bound; the grid of losses is coarse enough that time and memory stay bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from dpanon.privacy import floors, mixture, rdp
from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError

if TYPE_CHECKING:
    from dpanon.privacy.guarantee import Part

GRID = 300_000  # points of a composed loss distribution: well under 300 MB, under 2 s
SAMPLED_GRID = 100_000  # one step of a sub-sampled Gaussian takes as long as its whole composition
FINEST = 1e-7  # of the grid of losses: below it the differences of exponentials lose their digits
STAGE = 5_000  # compositions at a time; more widen the array that the transform needs
STEEP = 200.0  # loss of one use; far beyond, dp-accounting's Laplace overflows, and nothing is gained
MOST = 10**7  # compositions of one mechanism in a loss distribution; beyond, Renyi
CLOSED = 2_000  # terms of the exact sum for pure DP
TAIL = 1e-15  # mass that the range of the grid may leave out (it counts as lost)


def epsilon(parts: Iterable[Part], delta: float) -> float:
    """The least epsilon known for (epsilon, delta)-DP of all parts together; inf if there is none.

    Never above basic composition. Raises PrivacyError for a delta outside (0, 1).
    """
    return _profile(tuple(parts), GRID).epsilon(delta)


def delta(parts: Iterable[Part], epsilon: float) -> float:
    """The least delta known for (epsilon, delta)-DP of all parts together; 1 if there is none."""
    return _profile(tuple(parts), GRID).delta(
        0.0 if type(epsilon) in (int, float) and epsilon == 0 else positive("epsilon", epsilon)
    )


def renyi_epsilon(parts: Iterable[Part], delta: float) -> float:
    """epsilon by Renyi divergences alone, for comparison."""
    return rdp.epsilon_at(rdp.of_parts(parts), delta)


def advanced_epsilon(parts: Iterable[Part], delta: float) -> float:
    """Advanced composition in its tanh form (Dwork, Rothblum, Vadhan 2010), for comparison; inf if not pure."""
    parts = tuple(parts)
    if any(part.family not in ("pure", "response", "laplace") for part in parts):
        return math.inf
    mean = math.fsum(part.times * part.value * math.tanh(part.value / 2.0) for part in parts)
    square = math.fsum(part.times * part.value * part.value for part in parts)
    return mean + math.sqrt(-2.0 * math.log(probability("delta", delta)) * square)


def eer_floor(parts: Iterable[Part]) -> float:
    """Equal error rate floor of all parts together, from the composed loss distribution."""
    profile = _profile(tuple(parts), GRID // 10)  # coarse and quick: it errs on the safe side
    return floors.eer_from_delta(profile.delta, min(60.0, profile.largest))


class Profile:
    """delta as a function of epsilon for all parts together; the loss distribution is made once.

    Args:
        parts: what is composed, adaptively or not.
        points: of the loss grid, about: more are tighter and slower; any number is sound.
    """

    def __init__(self, parts: Iterable[Part], points: int = GRID):
        parts = tuple(parts)
        if not parts:
            raise PrivacyError("no parts: nothing to account for")
        approx = tuple(part for part in parts if part.family == "approx")
        self.extra = math.fsum(part.times * part.delta for part in approx)  # of delta
        self.shift = math.fsum(part.times * part.value for part in approx)  # of epsilon
        self.parts = tuple(part for part in parts if part.family != "approx")
        self.points = points
        self._closed = _closed(self.parts)

    def epsilon(self, delta: float) -> float:
        """Least epsilon; see the function of this name."""
        slack = probability("delta", delta) - self.extra
        if slack <= 0.0:
            return math.inf
        if not self.parts:
            return self.shift
        if self._closed:
            return self.shift + least_epsilon(self._closed, slack, min(self.basic, _gaussian_range(self.parts)))
        most = min(self.basic, self.by_renyi(slack))
        return self.shift + min(most, least_epsilon(self._delta, slack, most))

    def delta(self, epsilon: float) -> float:
        """Least delta; see the function of this name."""
        left = epsilon - self.shift
        if left < 0.0:
            return 1.0
        if not self.parts or left >= self.basic:
            return min(1.0, self.extra)
        return min(1.0, self.extra + (self._closed or self._delta)(left))

    @cached_property
    def basic(self) -> float:
        """Sum of the losses (without approximate parts): inf with Gaussian parts."""
        if any(part.family in ("gaussian", "sampled") for part in self.parts):
            return math.inf
        return math.fsum(part.times * part.value for part in self.parts)

    @cached_property
    def largest(self) -> float:
        """A loss beyond which delta is negligible."""
        if not self.parts:
            return self.shift
        return self.shift + min(self.basic, _gaussian_range(self.parts) if self._closed else self.by_renyi(TAIL))

    def by_renyi(self, delta: float) -> float:
        """epsilon of the Renyi accountant, rounded up: the bound for any number of parts of any size."""
        return rdp.epsilon_at(self._curve, delta) * (1.0 + 1e-9)

    def by_loss(self, delta: float) -> float:
        """epsilon of the loss distribution alone; inf where it cannot be had."""
        slack = probability("delta", delta) - self.extra
        most = min(self.basic, self.by_renyi(TAIL)) if self.parts else 0.0
        return self.shift + least_epsilon(self._loss, slack, most) if slack > 0.0 else math.inf

    @cached_property
    def _curve(self):
        return rdp.of_parts(self.parts)

    def _delta(self, epsilon: float) -> float:
        if epsilon >= self.basic:
            return 0.0
        return min(1.0, self._loss(epsilon), rdp.delta_at(self._curve, epsilon) * (1.0 + 1e-9))

    @cached_property
    def _loss(self) -> Callable[[float], float]:
        """delta by the loss distribution, with what its arithmetic may have lost added."""
        interval = loss_interval(self.parts, self.points)
        bounded = tuple(p for p in self.parts if p.family in ("pure", "response", "laplace"))
        coarse = tuple(p for p in bounded if not 2.0 * interval <= p.value <= STEEP)  # the grid would not help them
        fine = tuple(part for part in self.parts if part not in coarse)
        if not fine or interval > STEEP or any(part.times > MOST for part in fine):
            return lambda epsilon: 1.0
        shift = math.fsum(part.times * part.value for part in coarse)
        loss = loss_distribution(fine, interval)
        # Transforms lose 1e-16 of the whole mass, a power n of them n times as much; and no mass may be missing.
        lost = 1e-12 + 1e-15 * math.fsum(part.times for part in fine)
        lost += max(0.0, 1.0 - float(loss.get_delta_for_epsilon(-1e9)))

        def delta(epsilon: float) -> float:
            value = lost + float(loss.get_delta_for_epsilon(epsilon - shift)) if epsilon >= shift else 1.0
            return max(lost, value) if value < 1.0 else 1.0  # NaN is 1, too

        return delta


@lru_cache(maxsize=4)
def _profile(parts: tuple[Part, ...], points: int) -> Profile:
    return Profile(parts, points)


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
            flip = 2.0 / (1.0 + math.exp(part.value))
            one = pld.from_randomized_response(flip, num_buckets=2, value_discretization_interval=interval)
        elif part.family == "response":
            one = _response(pld, part, interval)
        elif part.family == "gaussian":
            # Gaussians add up exactly: one of mu times the root of their number.
            mu = math.sqrt(part.times) * part.value
            one = pld.from_gaussian_mechanism(1.0 / mu, sensitivity=1.0, value_discretization_interval=interval)
        elif part.family == "sampled":
            one = _sampled(pld, part, interval)
        else:
            raise PrivacyError(f"a part of family {part.family!r} has no loss distribution")
        many = one if part.family == "gaussian" else _power(one, part.times)
        total = many if total is None else total.compose(many)
    if total is None:
        raise PrivacyError("no parts: nothing to account for")
    return total


def _power(one: Any, times: int) -> Any:
    """Self-composition in stages: of very many at once the array would grow as their number, not its root."""
    if times <= STAGE:
        return one.self_compose(times) if times > 1 else one
    many = _power(one.self_compose(STAGE), times // STAGE)
    return many.compose(_power(one, times % STAGE)) if times % STAGE else many


def _sampled(pld: Any, part: Part, interval: float) -> Any:
    """Poisson sub-sampled Gaussian, or the mixture over the number of teachers that hold the unit."""
    noise = 1.0 / part.value
    if part.teachers == 1:
        return pld.from_gaussian_mechanism(noise, sampling_prob=part.rate, value_discretization_interval=interval)
    shifts, masses = mixture.shifts(part.teachers, part.rate)
    return pld.from_mixture_gaussian_mechanism(noise, shifts, masses, value_discretization_interval=interval)


def _response(pld: Any, part: Part, interval: float) -> Any:
    """Three outcomes: losses +epsilon, 0, -epsilon. The same from either input."""
    yes, no = part.mass, part.mass * math.exp(-part.value)
    upper, lower = {1: math.log(yes), -1: math.log(no)}, {1: math.log(no), -1: math.log(yes)}
    if (rest := 1.0 - yes - no) > 0.0:
        upper[0] = lower[0] = math.log(rest)
    return pld.from_two_probability_mass_functions(lower, upper, value_discretization_interval=interval)


def loss_interval(parts: Iterable[Part], points: int = GRID) -> float:
    """Width of the loss grid: the range of the composed loss, or of one use, over ``points``."""
    parts = tuple(parts)
    if any(part.family == "sampled" for part in parts):
        points = min(points, SAMPLED_GRID)
    whole = rdp.epsilon_at(rdp.of_parts(parts), TAIL)
    if all(part.family not in ("gaussian", "sampled") for part in parts):
        basic = math.fsum(part.times * part.value for part in parts)
        # What the transform holds: 17 standard deviations, and some widths of one use.
        width = math.fsum(7.0 * p.value + 17.0 * math.sqrt(p.times) * _deviation(p) for p in parts)
        whole = min(whole, basic, width)
    return max(FINEST, whole / points, _gaussian_range(parts, 10.0) / points)


def _deviation(part: Part) -> float:
    """At least the standard deviation of the loss of one use."""
    if part.family == "laplace":  # epsilon - 2 |x| near the end, x exponential of mean 1
        return min(part.value, 2.0)
    return min(part.value, 2.0 * part.value * math.exp(-part.value / 2.0))


def gdp_delta(mu: float, epsilon: float) -> float:
    """delta of mu-GDP at epsilon: ``Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)``."""
    mu = positive("mu", mu)
    first = floors.normal_tail(epsilon / mu - mu / 2.0)
    return max(0.0, first - math.exp(epsilon + floors.log_normal_tail(epsilon / mu + mu / 2.0)))


def gdp_epsilon(mu: float, delta: float) -> float:
    """epsilon of mu-GDP at delta, by bisection of ``gdp_delta``."""
    mu, delta = positive("mu", mu), probability("delta", delta)
    return least_epsilon(lambda x: gdp_delta(mu, x), delta, mu * mu / 2.0 + 40.0 * mu)


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


def pure_composition_delta(epsilon: float, times: int, total: float) -> float:
    """Exact delta at ``total`` of ``times`` pure epsilon-DP releases (Kairouz, Oh, Viswanath)."""
    epsilon, times = positive("epsilon", epsilon), count("times", times)
    log_one = epsilon + math.log1p(math.exp(-epsilon))
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
    return least_epsilon(
        lambda x: pure_composition_delta(epsilon, times, x), delta, times * positive("epsilon", epsilon)
    )


def _closed(parts: tuple[Part, ...]) -> Callable[[float], float] | None:
    """delta in closed form, where there is one."""
    if parts and all(part.family == "gaussian" for part in parts):
        mu = math.hypot(*(math.sqrt(part.times) * part.value for part in parts))
        return (lambda epsilon: gdp_delta(mu, epsilon)) if math.isfinite(mu) else (lambda epsilon: 1.0)
    if len(parts) != 1:
        return None
    part = parts[0]
    if part.family == "laplace" and part.times == 1:
        return lambda epsilon: -math.expm1(min(0.0, epsilon - part.value) / 2.0)
    if part.family == "pure" and part.times <= CLOSED:
        return lambda epsilon: pure_composition_delta(part.value, part.times, epsilon)
    if part.family == "sampled" and part.times == 1:
        return lambda epsilon: mixture.delta(part.value, part.teachers, part.rate, epsilon)
    return None


def _gaussian_range(parts: tuple[Part, ...], deviations: float = 40.0) -> float:
    """Loss that many deviations out, sub-samples taken as the whole; of one use, and the basic sum of the rest."""
    square = 0.0
    rest = 0.0
    for part in parts:
        if part.family == "gaussian":
            square += part.times * part.value * part.value
        elif part.family == "sampled":
            square += part.teachers * part.value * part.teachers * part.value
        else:
            rest += part.value if deviations < 40.0 else part.times * part.value
    return rest + square / 2.0 + deviations * math.sqrt(square)


def least_epsilon(profile: Callable[[float], float], delta: float, largest: float) -> float:
    """Least epsilon in [0, largest] with profile(epsilon) <= delta, from above; inf if there is none."""
    if profile(0.0) <= delta:
        return 0.0
    low, high = 0.0, largest
    if not math.isfinite(high) or profile(high) > delta:
        return math.inf
    for _ in range(200):
        if high - low <= 1e-10 * high:
            break
        middle = (low + high) / 2.0
        if profile(middle) <= delta:
            high = middle
        else:
            low = middle
    return high
