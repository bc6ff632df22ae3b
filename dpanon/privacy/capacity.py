"""How much a release can carry, in bits: the ceiling that catches noise which is not there.

For any input law the information that passes is at most these figures, per release. Text read
back from a release that carries more than this means that the claim is not true of it.
"""

from __future__ import annotations

import math

from dpanon.privacy.checks import positive

NAT = 1.0 / math.log(2.0)  # bits per nat


def pure_nats(epsilon: float) -> float:
    """Most nats through any epsilon-DP channel: max over p of ``p h ln h + (1 - p) l ln l``.

    ``h = e^epsilon l`` and ``l = 1 / (p e^epsilon + 1 - p)``: likelihood ratios of mean 1 whose range
    is e^epsilon; the extreme law has two points, and subset selection attains it.
    """
    p = best_share(epsilon)
    if p == 0.0:
        return epsilon - math.log(epsilon) - 1.0
    low = 1.0 / (1.0 + p * math.expm1(epsilon))
    return p * math.exp(epsilon) * low * epsilon + math.log(low)


def best_share(epsilon: float) -> float:
    """The p of ``pure_nats``: the share of inputs that an output should favour. 0 where it is under 1e-300.

    In p the value is ``p h eps + ln l`` with ``p h = p e^eps l``; the derivative vanishes there.
    """
    epsilon = positive("epsilon", epsilon)
    if epsilon >= 700.0:
        return 0.0
    return (epsilon + math.expm1(-epsilon)) / -math.expm1(-epsilon) / math.expm1(epsilon)


def laplace_frame_nats(epsilon: float) -> float:
    """Most nats through Laplace noise of scale 2 / epsilon on the unit L1 ball: ``e/2 - 1 + exp(-e/2)``."""
    half = positive("epsilon", epsilon) / 2.0
    return half + math.expm1(-half)


def gaussian_ball_nats(mu: float) -> float:
    """Most nats through Gaussian noise of sigma = 2 U / mu on the L2 ball of radius U: ``mu^2 / 8``."""
    return positive("mu", mu) ** 2 / 8.0


def pure_epsilon_for(nats: float) -> float:
    """The converse: no release of smaller epsilon carries this much, whatever the mechanism."""
    nats = positive("nats", nats)
    low, high = 1e-9, nats + 2.0 * math.log(nats + 3.0) + 10.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if pure_nats(middle) < nats else (low, middle)
    return low


def gaussian_mu_for(nats: float) -> float:
    """The converse for Gaussian noise on an L2 ball."""
    return math.sqrt(8.0 * positive("nats", nats))
