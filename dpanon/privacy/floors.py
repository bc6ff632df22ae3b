"""What no attacker can beat: error rates that follow from a guarantee alone.

Each figure is read off the trade-off curve f of a pair of distributions that dominates the
mechanism: ``pure`` (randomised response), ``laplace`` (two Laplace laws a loss epsilon apart;
much better than pure epsilon), ``gdp`` (two unit normals mu apart). They hold for any training
data and any enrolment speech, one trial utterance each, and for trials pooled over speakers,
since f is convex. Errors are lower bounds; AUC, linkability, re-identification and likelihood
ratios are upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError

VACUOUS = 0.01  # an error floor under this says nothing to a person; it is printed as "vacuous"
NORMAL = NormalDist()


def eer_pure(epsilon: float) -> float:
    """Equal error rate under pure epsilon-DP: ``1 / (1 + e^epsilon)``."""
    epsilon = positive("epsilon", epsilon)
    return math.exp(-epsilon) / (1.0 + math.exp(-epsilon))


def eer_approx(epsilon: float, delta: float) -> float:
    """Equal error rate under (epsilon, delta)-DP: ``(1 - delta) / (1 + e^epsilon)``."""
    return (1.0 - probability("delta", delta)) * eer_pure(epsilon)


def eer_response(epsilon: float, mass: float) -> float:
    """Equal error rate of a response with loss epsilon in ``mass`` of the cases (see ``guarantee.Part``), else 0.

    Telling the two inputs apart by the outcomes of loss +epsilon errs at rates that add up to
    ``1 - mass (1 - e^-epsilon)``, and the trade-off has slope -1 where they are equal.
    """
    return max(0.0, 0.5 * (1.0 - positive("mass", mass) * -math.expm1(-positive("epsilon", epsilon))))


def eer_laplace(epsilon: float) -> float:
    """Equal error rate of one Laplace release of loss epsilon: ``e^(-epsilon / 2) / 2``."""
    return 0.5 * math.exp(-positive("epsilon", epsilon) / 2.0)


def eer_gdp(mu: float) -> float:
    """Equal error rate under mu-GDP: ``Phi(-mu / 2)``."""
    return normal_tail(positive("mu", mu) / 2.0)


def epsilon_for_eer_pure(eer: float) -> float:
    """The pure epsilon whose floor is ``eer``."""
    return math.log(1.0 / _under_half(eer) - 1.0)


def epsilon_for_eer_laplace(eer: float) -> float:
    """The loss of a Laplace release whose floor is ``eer``."""
    return -2.0 * math.log(2.0 * _under_half(eer))


def mu_for_eer(eer: float) -> float:
    """The mu whose floor is ``eer``."""
    return -2.0 * NORMAL.inv_cdf(_under_half(eer))


def auc_pure(epsilon: float) -> float:
    """Area under the ROC curve under pure epsilon-DP."""
    return 1.0 - eer_pure(epsilon)


def auc_laplace(epsilon: float) -> float:
    """Area under the ROC curve of one Laplace release of loss epsilon."""
    epsilon = positive("epsilon", epsilon)
    return 1.0 - (0.5 + epsilon / 4.0) * math.exp(-epsilon)


def auc_gdp(mu: float) -> float:
    """Area under the ROC curve under mu-GDP."""
    return 1.0 - normal_tail(positive("mu", mu) / math.sqrt(2.0))


def linkability_pure(epsilon: float) -> float:
    """D_sys (weight 1) under pure epsilon-DP. An f-divergence, hence largest on the dominating pair."""
    return math.tanh(positive("epsilon", epsilon) / 2.0) * auc_pure(epsilon)


def linkability_laplace(epsilon: float) -> float:
    """D_sys (weight 1) of one Laplace release of loss epsilon."""
    epsilon = positive("epsilon", epsilon)
    if epsilon > 500.0:  # 1 to the last digit, and exp would overflow
        return 1.0
    between = _integral(lambda x: _link(2.0 * x - epsilon) * 0.5 * math.exp(-x), epsilon / 2.0, epsilon)
    return min(1.0, between + 0.5 * math.exp(-epsilon) * _link(epsilon))


def linkability_gdp(mu: float) -> float:
    """D_sys (weight 1) under mu-GDP."""
    mu = positive("mu", mu)
    return _integral(lambda z: _link_share(mu * (z + mu / 2.0)) * NORMAL.pdf(z), -mu / 2.0, 12.0)


def reid_pure(epsilon: float, num_speakers: int) -> float:
    """Accuracy of naming the speaker among N equally likely ones, under pure epsilon-DP."""
    others = count("num_speakers", num_speakers, least=2) - 1
    return 1.0 / (1.0 + others * math.exp(-positive("epsilon", epsilon)))


def reid_laplace(epsilon: float, num_speakers: int) -> float:
    """Accuracy of naming the speaker among N, one Laplace release of loss epsilon."""
    epsilon = min(positive("epsilon", epsilon), 500.0)  # the same to the last digit, and exp would overflow
    return _reid(lambda alpha: tradeoff_laplace(alpha, epsilon), num_speakers)


def reid_gdp(mu: float, num_speakers: int) -> float:
    """Accuracy of naming the speaker among N, under mu-GDP."""
    mu = positive("mu", mu)
    return _reid(lambda alpha: tradeoff_gdp(alpha, mu), num_speakers)


def max_log10_likelihood_ratio(epsilon: float) -> float:
    """ZEBRA's worst case: no output moves anyone's odds by more than ``10^this``, under pure epsilon-DP."""
    return positive("epsilon", epsilon) / math.log(10.0)


def tradeoff_laplace(alpha: float, epsilon: float) -> float:
    """Least false rejection at false acceptance alpha between Laplace laws a loss epsilon apart."""
    if alpha <= 0.5 * math.exp(-epsilon):
        return 1.0 - math.exp(epsilon) * alpha
    if alpha <= 0.5:
        return math.exp(-epsilon) / (4.0 * alpha)
    return (1.0 - alpha) * math.exp(-epsilon)


def tradeoff_gdp(alpha: float, mu: float) -> float:
    """Least false rejection at false acceptance alpha between unit normals mu apart."""
    if alpha <= 0.0 or alpha >= 1.0:
        return 1.0 if alpha <= 0.0 else 0.0
    return normal_tail(NORMAL.inv_cdf(alpha) + mu)


def eer_from_delta(delta: Callable[[float], float], largest: float) -> float:
    """``sup over epsilon of (1 - delta(epsilon)) / (1 + e^epsilon)`` on [0, largest]: any privacy profile.

    Every epsilon gives a valid floor, so an imperfect search only makes it smaller.
    """

    def floor(epsilon: float) -> float:
        return max(0.0, 1.0 - delta(epsilon)) * math.exp(-epsilon) / (1.0 + math.exp(-epsilon))

    best = max((largest * i / 64.0 for i in range(65)), key=floor)
    low, high = max(0.0, best - largest / 64.0), min(largest, best + largest / 64.0)
    return max(floor(best), floor(_argmax(floor, low, high)))


def normal_tail(x: float) -> float:
    """Probability that a unit normal exceeds x, accurate in the tail."""
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def log_normal_tail(x: float) -> float:
    """ln of the same, without underflow."""
    if x < 30.0:
        return math.log(normal_tail(x))
    return -x * x / 2.0 - math.log(x * math.sqrt(2.0 * math.pi)) + math.log1p(-1.0 / (x * x))


def _under_half(eer: float) -> float:
    if probability("eer", eer) >= 0.5:
        raise PrivacyError(f"eer must be in (0, 0.5), got {eer}: at 0.5 nothing may be told")
    return eer


def _link(log_ratio: float) -> float:
    """L * (L - 1) / (L + 1) for a likelihood ratio L = e^log_ratio > 1: its share of D_sys."""
    return math.exp(log_ratio) * math.tanh(log_ratio / 2.0)


def _link_share(log_ratio: float) -> float:
    """The same, under the mated law (whose density is L times the other)."""
    return math.tanh(log_ratio / 2.0)


def _reid(tradeoff: Callable[[float], float], num_speakers: int) -> float:
    """Solve ``acc = 1 - f((1 - acc) / (N - 1))`` by bisection; the upper end is returned."""
    others = count("num_speakers", num_speakers, least=2) - 1
    low, high = 1.0 / (others + 1.0), 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle <= 1.0 - tradeoff((1.0 - middle) / others):
            low = middle
        else:
            high = middle
    return high


def _integral(function: Callable[[float], float], low: float, high: float, steps: int = 4000) -> float:
    """Simpson's rule; the integrands are smooth inside their limits."""
    width = (high - low) / steps
    inner = sum((4.0 if i % 2 else 2.0) * function(low + i * width) for i in range(1, steps))
    return width / 3.0 * (function(low) + inner + function(high))


def _argmax(function: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(60):
        third = (high - low) / 3.0
        if function(low + third) < function(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2.0
