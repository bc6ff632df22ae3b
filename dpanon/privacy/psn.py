"""PSN: teachers trained on Poisson sub-samples that overlap. What it costs, and what was published.

One unit lands in N ~ Binomial(T, rate) sub-samples and moves N teachers. Drawn once, the sub-samples
answer every query, so the whole of Q queries is one mixture of Gaussians: shift ``N mu`` with
probability Bin(N; T, rate), against no shift (Choquette-Choo et al. 2023, corollary 4.7, for vectors).
mu is what the same noise costs when each unit is in one teacher: ``sqrt(2 Q) / (T sigma)``.
"""

from __future__ import annotations

import math

from dpanon.privacy import accounting, mixture
from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import Part


def epsilon(mu: float, teachers: int, rate: float, delta: float) -> float:
    """Exact epsilon of all queries together, fixed beforehand; add or remove one unit."""
    return accounting.epsilon((Part("sampled", positive("mu", mu), rate=rate, teachers=teachers),), delta)


def adaptive_epsilon(mu: float, teachers: int, rate: float, delta: float) -> float:
    """Safe when later queries depend on earlier answers: ``delta <= sum_n Bin(n; T, rate) delta_GDP(n mu)``."""
    mu, delta = positive("mu", mu), probability("delta", delta)
    shifts, masses = mixture.shifts(teachers, _rate(rate))
    terms = [(n * mu, mass) for n, mass in zip(shifts, masses, strict=True) if n > 0]

    def profile(loss: float) -> float:
        return math.fsum(mass * accounting.gdp_delta(shift, loss) for shift, mass in terms)

    return accounting.least_epsilon(profile, delta, accounting.gdp_epsilon(max(terms)[0], delta))


def published_epsilon(mu: float, teachers: int, rate: float, delta: float) -> float:
    """AS PUBLISHED, and too small: ``ln(1 + rate (e^eps - 1))`` of the epsilon of disjoint parts.

    (Yang et al. 2023, after Li et al. 2012.) Amplification needs a fresh secret sub-sample for every
    query and ignores that sub-samples overlap; no guarantee is ever stated by it.
    """
    count("teachers", teachers)
    rate, delta = _rate(rate), probability("delta", delta)
    return math.log1p(rate * math.expm1(accounting.gdp_epsilon(mu, min(delta / rate, 1.0 - 2.0**-53))))


def all_teachers_epsilon(mu: float, teachers: int, delta: float) -> float:
    """If the unit were in every teacher: what holds whatever the sampling was."""
    return accounting.gdp_epsilon(count("teachers", teachers) * positive("mu", mu), delta)


def expected_cap(teachers: int, rate: float, chance: float) -> int:
    """Most teachers that a unit lands in, up to a probability: a public cap that rarely binds."""
    from scipy import stats

    return int(stats.binom.isf(probability("chance", chance), count("teachers", teachers), _rate(rate)))


def _rate(rate: float) -> float:
    if positive("rate", rate) > 1.0:
        raise PrivacyError(f"rate must be in (0, 1], got {rate}")
    return float(rate)
