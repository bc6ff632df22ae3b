"""What ``dpanon audit`` does to a mechanism: white-box checks, event odds and an attacker's guesses, against its claim.

Every suite is given a way to build the mechanism and the claim, and works the rest out by itself: the clip, the
scale, the worst pair. A mechanism cannot vouch for itself. Where a claim is too large for its tail event to be seen,
inputs are put closer together, at a distance whose predicted loss is ``NEAR``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from dpanon.privacy import clip, floors
from dpanon.privacy.audit import (
    Finding,
    additive,
    awkward_rows,
    eer_check,
    event,
    gaussian_scale,
    norms,
    one_run_check,
    reuse,
)
from dpanon.privacy.audit import shape as law
from dpanon.privacy.discrete import CodebookChoice, IntegerLaplace, SubsetSelection, TokenResponse
from dpanon.privacy.latent import ClippedLatent
from dpanon.privacy.mechanisms import BottleneckFrames, PitchBox, SpeakerGaussian
from dpanon.privacy.pitch import LowRankPitch, PitchGaussian
from dpanon.privacy.votes import NoisyVotes

NEAR = 1.0  # predicted loss of the pair that is tried when the claim is beyond ``FAR``
FAR = 4.0
NUM = 8000  # releases of each input, where one call makes them
FEW = 3000  # where each is a call of its own
RADIUS = 3.0  # of the balls


def frames(epsilon: float, make: Callable[[float, int], Any] = BottleneckFrames, alarm: float = 1e-9) -> list[Finding]:
    """Bottleneck frames: epsilon per L1-normalised frame."""
    mechanism, pair = make(epsilon, 64), make(epsilon, 4)
    x = awkward_rows(600, 64)
    found = [norms(mechanism.clip(x[:40]), 1.0, 1)]
    found += additive(lambda v: mechanism.release(v).value, x, clip.l1_sphere(x), 2.0 / epsilon, 1.0, "laplace", alarm)
    found += reuse(_Value(mechanism), np.ones((40, 64)))
    if epsilon <= FAR:
        high, low, loss = *clip.l1_ball_pair(4), epsilon
    else:
        low, loss = np.array([0.5, 0.5, 0.0, 0.0]), NEAR
        high = low + np.array([1.0, -1.0, 0.0, 0.0]) * loss / epsilon
    # the plateau of the likelihood ratio: beyond the high input in every entry where the two differ
    return found + odds(lambda v: pair.release(v).value, high, low, loss, alarm, NUM)


def f0(epsilon: float, make: Callable[[float, int], Any] = PitchBox, alarm: float = 1e-9) -> list[Finding]:
    """Pitch box: epsilon per utterance, all 0 against all 1."""
    mechanism, single = make(epsilon, 4), make(epsilon, 1)
    x = awkward_rows(4, 5000)[[1, 2, 3, 0]]
    scale = 4 * 5000 / epsilon
    found = additive(_Value(mechanism), x, clip.unit_box(x), scale, 1.0, "laplace", alarm)
    found += reuse(_Value(mechanism), np.full((4, 500), 0.5))
    loss = _predicted(epsilon)
    return found + odds(_each(single, (1, 1)), np.array([loss / epsilon]), np.zeros(1), loss, alarm)


def embedding(
    epsilon: float, make: Callable[[float, float, int], Any] = ClippedLatent, alarm: float = 1e-9
) -> list[Finding]:
    """Clipped latent: epsilon per embedding, antipodes of the L1 ball."""
    mechanism, single = make(epsilon, RADIUS, 20_000), make(epsilon, RADIUS, 2)
    found = []
    for row in awkward_rows(10, 20_000)[[1, 3, 8]]:
        inside, scale = clip.l1_ball(row, RADIUS), 2.0 * RADIUS / epsilon
        found += [norms(mechanism.clip(row), RADIUS, 1)]
        found += additive(_Value(mechanism), row, inside, scale, RADIUS, "laplace", alarm)
    found += reuse(_Value(mechanism), np.ones(20_000))
    loss = _predicted(epsilon)
    high = np.array([RADIUS, 0.0])
    return found + odds(_each(single, (2,)), high, high * (1.0 - 2.0 * loss / epsilon), loss, alarm)


def f0_gaussian(mu: float, make: Callable[[float, int], Any] = PitchGaussian, alarm: float = 1e-9) -> list[Finding]:
    """Gaussian pitch: mu per utterance, all 0 against all 1."""
    mechanism, single = make(mu, 4), make(mu, 1)
    x = awkward_rows(4, 5000)[[1, 2, 3, 0]]
    found = additive(_Value(mechanism), x, clip.unit_box(x), math.sqrt(4 * 5000) / mu, 1.0, "gaussian", alarm)
    found += reuse(_Value(mechanism), np.full((4, 500), 0.5))
    loss = _predicted(mu)
    return found + [_errors(_each(single, (1, 1)), np.array([loss / mu]), np.zeros(1), loss, alarm)]


def f0_contour(mu: float, make: Callable[..., Any] = LowRankPitch, alarm: float = 1e-9) -> list[Finding]:
    """Low-rank pitch: mu per utterance, antipodal contours, whatever their length."""
    mechanism = make(mu, rank=4000, radius=RADIUS)
    found = []
    for contour in (1e6 * np.cos(np.arange(8000) ** 1.5), np.full(4500, np.nan), np.linspace(-1, 1, 9000)):
        inside = clip.l2_ball(LowRankPitch(1.0, 4000).coefficients(contour), RADIUS)
        found.append(norms(mechanism.clip(mechanism.coefficients(contour))[None], RADIUS, 2))
        found += additive(_Value(mechanism), contour, inside, 2.0 * RADIUS / mu, RADIUS, "gaussian", alarm)
    found += reuse(_Value(mechanism), np.ones(300))
    loss, single = _predicted(mu), make(mu, rank=1, radius=RADIUS)
    slope = np.cos(math.pi * (np.arange(50) + 0.5) / 50) * math.sqrt(2.0)  # its coefficient is 1

    def noisy(rows: np.ndarray) -> np.ndarray:
        return np.stack([single.release(row[0] * slope).value for row in rows])

    return found + [_errors(noisy, np.array([RADIUS * loss / mu]), np.array([-RADIUS * loss / mu]), loss, alarm)]


def speaker(
    mu: float, make: Callable[[float, float, int], Any] = SpeakerGaussian, alarm: float = 1e-9
) -> list[Finding]:
    """Speaker latent: mu per release, antipodes of the L2 ball."""
    mechanism, single = make(mu, RADIUS, 20_000), make(mu, RADIUS, 1)
    found = []
    for row in awkward_rows(10, 20_000)[[1, 3, 8]]:
        inside, sigma = clip.l2_ball(row, RADIUS), 2.0 * RADIUS / mu
        found += [norms(mechanism.clip(row), RADIUS, 2)]
        found += additive(_Value(mechanism), row, inside, sigma, RADIUS, "gaussian", alarm)
    found += reuse(_Value(mechanism), np.ones(20_000))
    far = np.array([RADIUS * (NEAR / mu if mu > FAR else 1e6)])  # far outside, so that a missing clip shows
    return found + [_errors(_each(single, (1,)), far, -far, _predicted(mu), alarm)]


def tokens(
    epsilon: float,
    make: Callable[[float, int], Any] = TokenResponse,
    alarm: float = 1e-9,
) -> list[Finding]:
    """Randomized response or subset selection: the law of the answers, and the odds of a pair of tokens."""
    size, num = 8, 4 * NUM
    mechanism = make(epsilon, size)
    answers = [np.reshape(mechanism.release(np.full(num, token)).value, (num, -1)) for token in (0, 1)]
    per = answers[0].shape[1]
    inside = 1.0 / (1.0 + (size - per) / per * math.exp(-epsilon))
    law = np.array([inside, *[(per - inside) / (size - 1)] * (size - 1)])
    hits = np.array([(answers[0] == symbol).any(1).sum() for symbol in range(size)])
    # each symbol's count is binomial; Bonferroni over the symbols
    tails = [min(stats.binom.cdf(k, num, p), stats.binom.sf(k - 1, num, p)) for k, p in zip(hits, law, strict=True)]
    least = float(min(tails)) * 2 * size
    found = [Finding("law of the answers (p-value)", least < alarm, least, alarm)]
    if epsilon > 15.0:  # the event never happens under the other token
        return found
    events = [int(((a == 0).any(1) & ~(a == 1).any(1)).sum()) for a in answers]
    return [*found, event(events[0], events[1], num, epsilon, alarm)]


def subsets(epsilon: float, make: Callable[[float, int], Any] = SubsetSelection, alarm: float = 1e-9) -> list[Finding]:
    """As ``tokens``."""
    return tokens(epsilon, make, alarm)


def codes(
    epsilon: float, make: Callable[[float, np.ndarray], Any] = CodebookChoice, alarm: float = 1e-9
) -> list[Finding]:
    """Exponential mechanism over two opposite codes: the most that a pair of inputs can be told apart."""
    num = 4 * NUM
    mechanism = make(epsilon, np.array([[1.0, 0.0], [-1.0, 0.0]]))
    drawn = [mechanism.release(np.tile([x, 0.0], (num, 1))).value for x in (1e9, -1e9)]
    hits = [int((answer == 0).sum()) for answer in drawn]
    found = [event(hits[0], hits[1], num, epsilon, alarm)]
    keep = 1.0 / (1.0 + math.exp(-epsilon / 2.0))  # distances 0 and 2 D / 2: exponents 0 and -epsilon / 2
    least = 2.0 * float(min(stats.binom.cdf(hits[0], num, keep), stats.binom.sf(hits[0] - 1, num, keep)))
    return [*found, Finding("law of the answers (p-value)", least < alarm, least, alarm)]


def counts(epsilon: float, make: Callable[[float, int], Any] = IntegerLaplace, alarm: float = 1e-9) -> list[Finding]:
    """Discrete Laplace noise on counts that differ by at most one."""
    mechanism, num = make(epsilon, 1), 4 * NUM
    noise = mechanism.release(np.zeros(num, dtype=np.int64)).value
    ratio = math.exp(-epsilon)
    zero = (1.0 - ratio) / (1.0 + ratio)
    hits = int((noise == 0).sum())
    least = 2.0 * float(min(stats.binom.cdf(hits, num, zero), stats.binom.sf(hits - 1, num, zero)))
    found = [Finding("share of zeros (p-value)", least < alarm, least, alarm)]
    found += reuse(_Value(mechanism), np.full(2000, 7)) if zero < 0.005 else []
    if epsilon > 15.0:
        return found
    other = mechanism.release(np.ones(num, dtype=np.int64)).value
    return [*found, event(int((other > 0).sum()), int((noise > 0).sum()), num, epsilon, alarm)]


def _noisy_votes(mu: float, teachers: int, queries: int) -> NoisyVotes:
    return NoisyVotes(teachers, queries, mu=mu)


def votes(mu: float, make: Callable[[float, int, int], Any] = _noisy_votes, alarm: float = 1e-9) -> list[Finding]:
    """Noisy votes: mu of one teacher's share in all answers; a teacher that shouts, and one that changes its mind."""
    teachers, num, states = 5, 500, 40
    sigma = math.sqrt(2.0 * num) / (teachers * mu)
    found = []
    for loud in (0.0, 1e6):
        posteriors, mean = np.zeros((teachers, num, states)), np.zeros((num, states))
        posteriors[0, :, 0], mean[:, 0] = loud, (loud > 0.0) / teachers
        residual = make(mu, teachers, num).release(posteriors).value - mean
        found += [gaussian_scale(residual, sigma, alarm), law(residual, sigma, "gaussian", alarm)]
    loss = _predicted(mu)
    sides = []
    for choice in (0, 1):
        posteriors = np.zeros((teachers, NUM, 2))
        posteriors[0, :, 0] = 1.0 if choice == 0 else 1.0 - loss / mu
        posteriors[0, :, 1] = 1.0 - posteriors[0, :, 0]
        noisy = make(mu * math.sqrt(NUM), teachers, NUM).release(posteriors).value  # each answer costs mu
        sides.append(noisy[:, 0] - noisy[:, 1])
    edge = float(sides[0].mean() + sides[1].mean()) / 2.0
    misses, alarms = int((sides[0] < edge).sum()), int((sides[1] >= edge).sum())
    return [*found, eer_check(misses, NUM, alarms, NUM, floor=floors.eer_gdp(loss), false_alarm=alarm)]


SUITES: dict[str, tuple[str, Callable[..., list[Finding]]]] = {
    "bn": ("epsilon", frames),
    "f0": ("epsilon", f0),
    "f0-gaussian": ("mu", f0_gaussian),
    "f0-contour": ("mu", f0_contour),
    "speaker": ("mu", speaker),
    "embedding": ("epsilon", embedding),
    "tokens": ("epsilon", tokens),
    "subsets": ("epsilon", subsets),
    "codes": ("epsilon", codes),
    "counts": ("epsilon", counts),
    "votes": ("mu", votes),
}


def _predicted(claim: float) -> float:
    """The loss of the pair that is tried."""
    return NEAR if claim > FAR else claim


class _Value:
    """The released values of a mechanism, as a function that can be copied."""

    def __init__(self, mechanism: Any):
        self.mechanism = mechanism

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.mechanism.release(x).value


def _each(mechanism: Any, shape: Sequence[int]) -> Callable[[np.ndarray], np.ndarray]:
    """Release every row by itself, as the shape that the mechanism takes."""
    return lambda rows: np.stack([np.ravel(mechanism.release(row.reshape(shape)).value) for row in rows])


def odds(
    release: Callable[[np.ndarray], np.ndarray],
    high: np.ndarray,
    low: np.ndarray,
    loss: float,
    alarm: float,
    num: int = FEW,
) -> list[Finding]:
    """A Laplace mechanism on a pair whose distance has this loss: odds of the best event, guesses in one run."""
    rise = np.sign(high - low)

    def beyond(y: np.ndarray, edge: np.ndarray) -> np.ndarray:
        return (((y - edge) * rise > 0.0) | (rise == 0.0)).all(-1)

    ups, downs = (release(np.tile(x, (num, 1))) for x in (high, low))
    found = [event(int(beyond(ups, high).sum()), int(beyond(downs, high).sum()), num, loss, alarm)]
    # one run: a coin chooses each input; a guess is made only where the ratio is at its largest on either side
    coins = np.random.default_rng().integers(0, 2, num).astype(bool)
    y = release(np.where(coins[:, None], high, low))
    says_high, says_low = beyond(y, high), (((low - y) * rise > 0.0) | (rise == 0.0)).all(-1)
    guesses = int(says_high.sum() + says_low.sum())
    correct = int((says_high & coins).sum() + (says_low & ~coins).sum())
    return [*found, one_run_check(correct, max(guesses, 1), loss, alarm)]


def _errors(
    release: Callable[[np.ndarray], np.ndarray], high: np.ndarray, low: np.ndarray, mu: float, alarm: float
) -> Finding:
    """A Gaussian mechanism on a pair mu apart: no test errs less than Phi(-mu / 2) on both sides."""
    ups, downs = (release(np.tile(x, (FEW, 1)))[:, 0] for x in (high, low))
    edge = float(ups.mean() + downs.mean()) / 2.0
    return eer_check(
        int((ups < edge).sum()), FEW, int((downs >= edge).sum()), FEW, floor=floors.eer_gdp(mu), false_alarm=alarm
    )
