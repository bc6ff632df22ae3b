"""Checks that a mechanism keeps its promise: white-box on the residual noise, black-box on events.

Every check has its false-alarm rate as an argument and says what it found; the suite's rates are
set so that an honest mechanism fails a run less than once in a million.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import special, stats

from dpanon.privacy import clip
from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.sampling import grid_bits

Release = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: ``broken`` is True when the claim is refuted at the given level.

    ``tier`` 1 looks at the noise itself, 2 at the odds of an event, 3 at what an attacker gets right.
    """

    check: str
    broken: bool
    measured: float
    limit: float
    tier: int = 1

    def __str__(self) -> str:
        return f"{self.check}: {'BROKEN' if self.broken else 'ok'} ({self.measured:.6g}, limit {self.limit:.6g})"


def laplace_scale(residual: np.ndarray, scale: float, false_alarm: float = 1e-9) -> Finding:
    """Too little Laplace noise? ``2 sum|n| / b`` is chi-squared with two degrees per entry."""
    size = _size(residual)
    limit = stats.chi2.ppf(false_alarm, 2 * size) / (2 * size)
    measured = float(np.abs(residual).mean()) / positive("scale", scale)
    return Finding("Laplace scale", measured < limit, measured, float(limit))


def gaussian_scale(residual: np.ndarray, sigma: float, false_alarm: float = 1e-9) -> Finding:
    """Too little Gaussian noise? ``sum n^2 / sigma^2`` is chi-squared with one degree per entry."""
    size = _size(residual)
    limit = stats.chi2.ppf(false_alarm, size) / size
    measured = float(np.square(residual).mean()) / positive("sigma", sigma) ** 2
    return Finding("Gaussian scale", measured < limit, measured, float(limit))


def shape(residual: np.ndarray, scale: float, family: str = "laplace", false_alarm: float = 1e-9) -> Finding:
    """Is the noise of the claimed law, too much of it included? Kolmogorov and Smirnov's distance."""
    x = np.sort(np.ravel(residual)) / positive("scale", scale)
    if family == "laplace":
        cdf = np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1.0 - 0.5 * np.exp(-np.abs(x)))
    else:
        cdf = special.ndtr(x)
    steps = np.arange(x.size + 1) / _size(x)
    measured = float(max((steps[1:] - cdf).max(), (cdf - steps[:-1]).max()))
    limit = math.sqrt(-0.5 * math.log(false_alarm / 2.0) / x.size)  # Massart's bound: holds for every size
    return Finding(f"{family} shape", measured > limit, measured, limit)


def grid(values: np.ndarray, bits: int) -> Finding:
    """Every output is finite, a multiple of 2^-bits and not -0.0: floating-point noise is not."""
    x = np.ravel(values).astype(np.float64)
    with np.errstate(over="ignore"):
        steps = x * 2.0**bits
    off = ~np.isfinite(x) | (steps != np.round(steps)) | ((x == 0) & np.signbit(x))
    return Finding(f"grid 2^-{bits}", bool(off.any()), float(off.mean()), 0.0)


def repeats(first: np.ndarray, second: np.ndarray, false_alarm: float = 1e-9) -> Finding:
    """Is the noise of two releases related? Equal entries and correlation of the residuals."""
    a, b = np.ravel(first).astype(np.float64), np.ravel(second).astype(np.float64)
    equal = float((a == b).mean())
    a, b = a - a.mean(), b - b.mean()
    energy = math.sqrt(float(a @ a) * float(b @ b))
    correlation = abs(float(a @ b)) / energy if energy else 1.0
    limit = math.sqrt(2.0 * math.log(2.0 / false_alarm) / a.size)
    return Finding("repeated noise", correlation > limit or equal > 0.5, max(correlation, equal), limit)


def lag_correlation(residual: np.ndarray, false_alarm: float = 1e-9, lags: int = 8) -> Finding:
    """Is noise shared between neighbouring rows or columns of (T, M)? Largest correlation at small lags."""
    x = residual - residual.mean()
    variance = float((x * x).mean())
    if variance == 0.0:
        return Finding("lag correlation", True, 1.0, 0.0)
    worst, limit = 0.0, math.sqrt(2.0 * math.log(4.0 * lags / false_alarm) / max(1, x.size // 2))
    for axis in (0, 1):
        for lag in range(1, min(lags, x.shape[axis] // 2) + 1):
            a, b = (x[lag:], x[:-lag]) if axis == 0 else (x[:, lag:], x[:, :-lag])
            worst = max(worst, abs(float((a * b).mean())) / variance)
    return Finding("lag correlation", worst > limit, worst, limit)


def event(hits_high: int, hits_low: int, num: int, epsilon: float, false_alarm: float = 1e-6) -> Finding:
    """Is an event more often seen from one input than ``e^epsilon`` times that from the other?

    ``num`` releases of each input; Clopper-Pearson bounds on both rates share the false-alarm rate.
    """
    num, half = count("num", num), probability("false_alarm", false_alarm) / 2.0
    low = stats.beta.ppf(half, hits_high, num - hits_high + 1) if hits_high else 0.0
    high = stats.beta.ppf(1.0 - half, hits_low + 1, num - hits_low) if hits_low < num else 1.0
    bound = math.log(low / high) if low > 0.0 else -math.inf
    return Finding("event", bound > epsilon, bound, epsilon, tier=2)


def event_audit(
    release: Callable[[np.ndarray], np.ndarray],
    high: np.ndarray,
    low: np.ndarray,
    is_event: Callable[[np.ndarray], np.ndarray],
    epsilon: float,
    false_alarm: float = 1e-6,
) -> Finding:
    """``event`` on the rows of two batches that repeat a pair of worst-case inputs."""
    if len(high) != len(low):
        raise PrivacyError(f"both batches need the same number of rows, got {len(high)} and {len(low)}")
    hits = [int(np.count_nonzero(is_event(release(x)))) for x in (high, low)]
    return event(hits[0], hits[1], len(high), epsilon, false_alarm)


def one_run(correct: int, guesses: int, false_alarm: float = 1e-6) -> float:
    """Lower bound of pure epsilon from ``correct`` of ``guesses`` coin flips of one run guessed right."""
    low, high = 0.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2.0
        refuted = stats.binom.sf(correct - 1, guesses, 1.0 / (1.0 + math.exp(-middle))) < false_alarm
        low, high = (middle, high) if refuted else (low, middle)
    return low


def one_run_check(correct: int, guesses: int, epsilon: float, false_alarm: float = 1e-6) -> Finding:
    """``one_run`` against a claim of pure epsilon-DP."""
    if not 0 <= correct <= count("guesses", guesses):
        raise PrivacyError(f"{correct} of {guesses} guesses cannot be right")
    bound = one_run(correct, guesses, false_alarm)
    return Finding("one-run guesses", bound > epsilon, bound, epsilon, tier=3)


def norms(rows: np.ndarray, radius: float, order: int) -> Finding:
    """Is every row (last axis) inside its ball? In exact arithmetic, so there is no false alarm. Slow: few rows."""
    largest = Fraction(0)
    for row in np.reshape(rows, (-1, np.shape(rows)[-1])):
        if not np.isfinite(row).all():
            return Finding(f"L{order} norm before the noise", True, math.inf, radius)
        largest = max(largest, clip.exact_l1_norm(row) if order == 1 else clip.exact_squared_l2_norm(row))
    limit = Fraction(float(radius)) ** order
    return Finding(f"L{order} norm before the noise", largest > limit, float(largest) ** (1 / order), radius)


def reuse(release: Release, x: np.ndarray, false_alarm: float = 1e-9) -> list[Finding]:
    """Is noise ever used twice: after seeding, in a copy, in two threads, in two forked processes?"""
    import copy
    import pickle

    def seeded(_: int) -> np.ndarray:
        np.random.seed(0)  # noqa: NPY002  # a mechanism that draws from a seeded global source repeats itself
        if torch := sys.modules.get("torch"):
            torch.manual_seed(0)
        return release(x)

    ways: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "seeding": (seeded(0), seeded(1)),
        "a copy": (copy.deepcopy(release)(x), release(x)),
    }
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: release(x), range(2))
    ways["two threads"] = (first, second)
    forked = []
    for _ in range(2):
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:  # no return from here, whatever happens
            try:
                with os.fdopen(writer, "wb") as sink:
                    sink.write(pickle.dumps(release(x)))
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            forked.append(pickle.loads(stream.read()))
        os.waitpid(child, 0)
    ways["two forks"] = (forked[0], forked[1])
    found = []
    for name, (one, other) in ways.items():
        same = float((np.ravel(one) == np.ravel(other)).mean())
        # of a million steps per scale two independent draws agree in about one in a million: 1 % never happens
        found.append(Finding(f"noise reused by {name}", same > 0.01, same, 0.01))
    return found


def eer_upper(misses: int, targets: int, alarms: int, nontargets: int, false_alarm: float = 0.01) -> float:
    """Upper confidence limit of an equal error rate, from both error counts at its threshold."""
    half = probability("false_alarm", false_alarm) / 2.0
    limits = (_upper(misses, targets, half), _upper(alarms, nontargets, half))
    return max(limits)


def eer_check(
    misses: int, targets: int, alarms: int, nontargets: int, floor: float, false_alarm: float = 0.01
) -> Finding:
    """Is a measured equal error rate under its floor? Then the claim does not hold end to end."""
    upper = eer_upper(misses, targets, alarms, nontargets, false_alarm)
    return Finding("EER floor", upper < floor, upper, floor, tier=3)


def frames(make: Callable[[float, int], Release], false_alarm: float = 1e-9) -> list[Finding]:
    """Audit a mechanism that claims epsilon per L1-normalised frame.

    ``make(epsilon, dim)`` builds its release of ``(T, dim)``. Everything is compared with the claim:
    a reference clip and scale computed here, never with numbers the mechanism states about itself.
    """
    findings = []
    for epsilon, x in ((1.0, awkward_rows(600, 64)), (2000.0, awkward_rows(600, 64)), (1.0, np.ones((600, 64)))):
        release = make(epsilon, 64)
        findings += additive(release, x, clip.l1_sphere(x), 2.0 / epsilon, 1.0, "laplace", false_alarm)
    for high, low in (clip.l1_ball_pair(4), (np.eye(4)[0], np.eye(4)[1])):
        plus, minus = np.tile(high, (8000, 1)), np.tile(low, (8000, 1))
        findings.append(event_audit(make(1.0, 4), plus, minus, lambda y: y[:, 0] > 1.0, 1.0, false_alarm))
    return findings


def speaker(make: Callable[[float, float, int], Release], false_alarm: float = 1e-9) -> list[Finding]:
    """Audit a mechanism that claims mu-GDP between any two latents; ``make(mu, radius, dim)`` builds it."""
    findings = []
    for mu, radius, dim in ((1.0, 3.0, 20_000), (500.0, 1.0, 20_000)):
        release = make(mu, radius, dim)
        for x in (np.linspace(-1.0, 1.0, dim), np.where(np.arange(dim) % 7 == 3, np.nan, 1e-3)):
            reference = clip.l2_ball(x, radius)
            findings += additive(release, x, reference, 2.0 * radius / mu, radius, "gaussian", false_alarm)
    return findings


def awkward_rows(num_rows: int, dim: int) -> np.ndarray:
    """Rows a clip can get wrong: zero, NaN, infinite, huge, denormal, one-hot, constant, dense, signed."""
    rows = np.zeros((num_rows, dim))
    kinds = np.arange(num_rows) % 10
    ramp = np.linspace(-1.0, 1.0, dim) + 0.01
    rows[kinds == 1, 0] = np.nan
    rows[kinds == 2, 1] = np.inf
    rows[kinds == 3] = 1e308 * ramp
    rows[kinds == 4] = 5e-324
    rows[kinds == 5, 2] = 1.0
    rows[kinds == 6, 2] = -1e6
    rows[kinds == 7] = 1.0
    rows[kinds == 8] = ramp
    rows[kinds == 9] = 1e-3 * ramp
    rows[(kinds == 1) | (kinds == 2), 5] = 3.0
    return rows


def additive(
    release: Release, x: np.ndarray, reference: np.ndarray, scale: float, bound: float, family: str, alarm: float
) -> list[Finding]:
    """All white-box checks of reference + noise of this scale."""
    np.random.seed(0)  # noqa: NPY002  # a mechanism that draws from a seeded global source repeats itself
    first = release(x)
    np.random.seed(0)  # noqa: NPY002
    second = release(x)
    lattice = grid(first, grid_bits(scale, bound))
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return [lattice]
    residual = first - reference
    of_scale = laplace_scale if family == "laplace" else gaussian_scale
    findings = [
        lattice,
        of_scale(residual, scale, alarm),
        shape(residual, scale, family, alarm),
        repeats(residual, second - reference, alarm),
    ]
    return findings + ([lag_correlation(residual, alarm)] if residual.ndim == 2 else [])


def _upper(hits: int, num: int, alpha: float) -> float:
    return float(stats.beta.ppf(1.0 - alpha, hits + 1, num - hits)) if hits < num else 1.0


def _size(x: np.ndarray) -> int:
    if x.size == 0:
        raise PrivacyError("nothing to audit: no residuals")
    return int(x.size)
