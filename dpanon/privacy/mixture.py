"""A unit normal moved by ``n mu`` with probability Bin(n; T, rate), against one that is not moved.

T = 1 is the Poisson sub-sampled Gaussian of one step of DP-SGD; larger T are sub-sampled teachers.
"""

from __future__ import annotations

import math

import numpy as np

from dpanon.privacy import floors, rdp
from dpanon.privacy.checks import count, positive

FARTHEST = 1e6  # standard deviations; beyond, nothing is promised


def shifts(teachers: int, rate: float) -> tuple[list[float], list[float]]:
    """How many of the teachers hold the unit, and how probably; a negligible tail counts as all of them."""
    teachers, rate = count("teachers", teachers), positive("rate", rate)
    if rate >= 1.0:
        return [float(teachers)], [1.0]
    masses = np.exp(rdp.log_binomial(np.arange(teachers + 1.0), teachers, rate)).tolist()
    last = max(n for n, mass in enumerate(masses) if mass > 1e-20 or n == 0)
    kept = [(float(n), mass) for n, mass in enumerate(masses[: last + 1]) if mass > 1e-300]
    rest = 1.0 - math.fsum(mass for _, mass in kept)
    if last < teachers:
        kept.append((float(teachers), max(rest, 1e-20 * (teachers - last))))
    total = math.fsum(mass for _, mass in kept)
    return [n for n, _ in kept], [mass / total for _, mass in kept]


def delta(mu: float, teachers: int, rate: float, epsilon: float) -> float:
    """delta of one sampled part: ``sum_n Bin(n; T, rate) N(n mu, 1)`` against ``N(0, 1)``, either way.

    The likelihood ratio rises with the outcome, so the best event is a half line: its end is found by
    bisection, and an error there only lowers delta in second order.
    """
    mu = positive("mu", mu)
    if teachers * mu > FARTHEST:
        return 1.0
    moves, masses = shifts(teachers, rate)
    terms = [(math.log(mass), n * mu, mass) for n, mass in zip(moves, masses, strict=True)]

    def log_ratio(x: float) -> float:
        logs = [log_mass + shift * x - shift * shift / 2.0 for log_mass, shift, _ in terms]
        top = max(logs)
        return top + math.log(math.fsum(math.exp(value - top) for value in logs))

    def outcome(loss: float) -> float:
        low, high = -45.0, 45.0 + teachers * mu
        for _ in range(64):
            middle = (low + high) / 2.0
            low, high = (middle, high) if log_ratio(middle) < loss else (low, middle)
        return (low + high) / 2.0

    x = outcome(epsilon)
    remove = math.fsum(mass * floors.normal_tail(x - shift) for _, shift, mass in terms)
    remove -= math.exp(min(700.0, epsilon + floors.log_normal_tail(x)))
    x = outcome(-epsilon)
    add = floors.normal_tail(-x)
    other = math.fsum(mass * floors.normal_tail(shift - x) for _, shift, mass in terms)
    add -= math.exp(min(700.0, epsilon + math.log(other))) if other > 0.0 else 0.0
    return min(1.0, max(0.0, remove, add))
