"""PATE on labels: GNMax and Confident-GNMax, with accounting that may be published and accounting that may not.

What mechanisms state is data-independent: each answer is a Gaussian release of the vote counts. The
data-dependent bounds of Papernot et al. (2018) are much smaller when teachers agree, but they are
functions of the private votes: whoever publishes them tells about the votes. They come as
``PrivateEpsilon``, which no guarantee is made of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from dpanon.privacy import rdp
from dpanon.privacy.checks import count, positive, probability, scale_in_range
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import CENTRAL, Guarantee, Part
from dpanon.privacy.mechanisms import Released
from dpanon.privacy.sampling import NoiseSource, SystemNoise
from dpanon.privacy.votes import NOT_COVERED, QueryBudget, known_unit

NO_ANSWER = -1
VOTES_L2 = math.sqrt(2.0)  # a teacher that changes its vote moves two counts by one
TOP_L1 = 1.0  # and the largest count by at most one
ORDERS = np.concatenate([1.0 + np.arange(1, 100) / 10.0, np.arange(11.0, 64.0), 2.0 ** np.arange(6, 16)])


class GNMax:
    """Label of most votes after Gaussian noise on the counts (Papernot et al. 2018, section 4.1).

    The teachers are trained on disjoint parts, so one unit moves one vote: sqrt(2) in L2. Each answer is
    ``sqrt(2) / sigma``-GDP and Q of them ``sqrt(2 Q) / sigma``.

    Args:
        teachers: T. classes: S >= 2. sigma: of the noise on each count.
        queries: Q, all that will ever be asked; more are refused.
        unit: what the parts are disjoint in: ``utterance`` or ``speaker``.

    Shape:
        labels: ``(T, Q')`` integers in [0, S); returns ``Released`` with ``value`` ``(Q',)`` int64.
    """

    def __init__(self, teachers: int, classes: int, sigma: float, queries: int, unit: str = "utterance"):
        self.teachers = count("teachers", teachers)
        self.classes = count("classes", classes, least=2)
        self.sigma = scale_in_range("sigma", positive("sigma", sigma))
        self.budget = QueryBudget(queries)
        self.unit = known_unit(unit)

    def counts(self, labels: Any) -> np.ndarray:
        """(T, Q) labels -> (Q, S) votes; every teacher has exactly one."""
        labels = np.asarray(labels)
        if labels.ndim != 2 or labels.shape[0] != self.teachers or labels.shape[1] == 0:
            raise PrivacyError(f"labels must have shape (T, Q) with T = {self.teachers}, got {labels.shape}")
        if not np.issubdtype(labels.dtype, np.integer):
            raise PrivacyError(f"labels must be integers, got {labels.dtype}")
        if labels.min() < 0 or labels.max() >= self.classes:
            raise PrivacyError(f"labels must be in [0, {self.classes}), got {labels.min()} to {labels.max()}")
        votes = np.zeros((labels.shape[1], self.classes))
        for row in labels:
            votes[np.arange(len(row)), row] += 1.0
        return votes

    def release(self, labels: Any, noise: NoiseSource | None = None) -> Released:
        """Answer Q' queries; raises PrivacyError before any noise is drawn if fewer are left."""
        noise = SystemNoise() if noise is None else noise
        votes = self.counts(labels)
        self.budget.spend(len(votes))
        return Released(self._noisy_label(votes, noise), self.guarantee(len(votes), sampler=noise.sampler))

    def guarantee(self, queries: int | None = None, sampler: str = "exact") -> Guarantee:
        """Of so many answers; of all that are declared if None."""
        asked = self.budget.queries if queries is None else count("queries", queries)
        if asked > self.budget.queries:
            raise PrivacyError(f"no claim about {asked} queries: {self.budget.queries} are declared")
        return self._claim((Part("gaussian", VOTES_L2 / self.sigma, asked),), asked, sampler)

    def _noisy_label(self, votes: np.ndarray, noise: NoiseSource) -> np.ndarray:
        return noise.add_gaussian(votes, self.sigma, float(self.teachers)).argmax(axis=1)

    def _claim(self, parts: tuple[Part, ...], asked: int, sampler: str) -> Guarantee:
        return Guarantee(
            parts=parts,
            unit=self.unit,
            adjacency=CENTRAL[self.unit],
            mechanism=f"labels by noisy votes of {self.teachers} teachers trained on disjoint parts",
            public_side_info=("the queries and their number",),
            not_covered=NOT_COVERED,
            n_releases=asked,
            sampler=sampler,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(teachers={self.teachers}, sigma={self.sigma:g}, queries={self.budget.queries})"


class ConfidentGNMax(GNMax):
    """GNMax that answers only where the teachers agree (Papernot et al. 2018, algorithm 1).

    Every query is checked: the largest count plus noise of ``sigma_check`` against ``threshold``, which is
    ``1 / sigma_check``-GDP. What passes is answered, up to ``answers`` times in all; after that nothing is.
    The claim is of all declared checks and answers, whatever part of them was used, so that it says nothing
    about the votes.

    Args:
        threshold: least noisy count of the winner. sigma_check: noise of the check.
        answers: most answers ever given, at most ``queries``. Others as ``GNMax``.

    Shape:
        labels: ``(T, Q')``; returns ``value`` ``(Q',)`` int64, -1 where there is no answer.
    """

    def __init__(
        self,
        teachers: int,
        classes: int,
        sigma: float,
        queries: int,
        *,
        threshold: float,
        sigma_check: float,
        answers: int,
        unit: str = "utterance",
    ):
        super().__init__(teachers, classes, sigma, queries, unit)
        self.threshold = positive("threshold", threshold)
        self.sigma_check = scale_in_range("sigma_check", positive("sigma_check", sigma_check))
        self.answers = QueryBudget(answers)
        if self.answers.queries > self.budget.queries:
            raise PrivacyError(f"answers must be at most queries, {self.budget.queries}; got {answers}")

    def release(self, labels: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        votes = self.counts(labels)
        self.budget.spend(len(votes))
        top = noise.add_gaussian(votes.max(axis=1), self.sigma_check, float(self.teachers))
        passed = np.flatnonzero(top >= self.threshold)[: self.answers.left]
        value = np.full(len(votes), NO_ANSWER, dtype=np.int64)
        if len(passed):
            self.answers.spend(len(passed))
            value[passed] = self._noisy_label(votes[passed], noise)
        return Released(value, self.guarantee(sampler=noise.sampler))

    def guarantee(self, queries: int | None = None, sampler: str = "exact") -> Guarantee:
        """Of all declared checks and answers: fewer were perhaps used, but which is the teachers' business."""
        if queries is not None and queries != self.budget.queries:
            raise PrivacyError("the claim of Confident-GNMax is about all declared queries and answers")
        parts = (
            Part("gaussian", TOP_L1 / self.sigma_check, self.budget.queries),
            Part("gaussian", VOTES_L2 / self.sigma, self.answers.queries),
        )
        return self._claim(parts, self.budget.queries, sampler)


@dataclass(frozen=True)
class PrivateEpsilon:
    """A data-dependent epsilon. It is computed from the private votes and itself tells about them."""

    value: float
    delta: float

    def __str__(self) -> str:
        return (
            f"epsilon = {self.value:.6g} at delta = {self.delta:g}, DATA-DEPENDENT: NOT FOR PUBLICATION, "
            "since it is computed from the private votes; the guarantee is the data-independent one"
        )


def log_flip(votes: Any, sigma: float) -> float:
    """ln of a bound on the probability that noise changes the winner (Papernot et al. 2018, proposition 7)."""
    votes, sigma = _votes(votes), positive("sigma", sigma)
    gaps = np.delete(votes.max() - votes, int(votes.argmax()))
    found = float(special.logsumexp(special.log_ndtr(-gaps / (VOTES_L2 * sigma))))
    return min(found, math.log1p(-1.0 / len(votes)))


def votes_rdp(log_q: float, sigma: float, order: float) -> float:
    """Renyi divergence of one GNMax answer: the least of ``order / sigma^2`` and the data-dependent bound.

    (Papernot et al. 2018, theorem 6, at the orders of proposition 10.) ``log_q`` is that of ``log_flip``.
    """
    sigma, order = positive("sigma", sigma), positive("order", order)
    if order <= 1.0 or not log_q <= 0.0:
        raise PrivacyError(f"order must be > 1 and ln q <= 0, got {order} and {log_q}")
    plain = order / sigma**2
    if log_q == -math.inf:
        return 0.0
    second = math.sqrt(-log_q) * sigma
    first = second + 1.0
    if order >= first or second <= 1.0 or log_q == 0.0:
        return plain
    rdp_first, rdp_second = first / sigma**2, second / sigma**2
    rising = (second - 1.0) * rdp_second - second * (math.log1p(1.0 / (first - 1.0)) + math.log1p(1.0 / (second - 1.0)))
    if log_q > rising or -log_q <= rdp_second:
        return plain
    log_stay = _log1mexp(log_q)
    log_a = (order - 1.0) * (log_stay - _log1mexp((log_q + rdp_second) * (1.0 - 1.0 / second)))
    log_b = (order - 1.0) * (rdp_first - log_q / (first - 1.0))
    return min(plain, float(np.logaddexp(log_stay + log_a, log_q + log_b)) / (order - 1.0))


def log_answered(votes: Any, threshold: float, sigma: float) -> float:
    """ln of the probability that the check of Confident-GNMax passes."""
    top = float(_votes(votes).max())
    return float(special.log_ndtr((top - positive("threshold", threshold)) / positive("sigma", sigma)))


def check_rdp(log_answer: float, sigma: float, order: float) -> float:
    """Renyi divergence of one check: at most ``order / (2 sigma^2)``; less where the outcome is sure."""
    log_q = min(log_answer, _log1mexp(log_answer) if log_answer < 0.0 else -math.inf)
    return votes_rdp(log_q, VOTES_L2 * positive("sigma", sigma), order)


def data_dependent_epsilon(votes: Iterable[Any], sigma: float, delta: float) -> PrivateEpsilon:
    """Of GNMax answers to these (Q, S) votes. NOT FOR PUBLICATION, see ``PrivateEpsilon``."""
    delta = probability("delta", delta)
    total = np.zeros_like(ORDERS)
    for row in votes:
        log_q = log_flip(row, sigma)
        total += [votes_rdp(log_q, sigma, order) for order in ORDERS.tolist()]
    if not total.any():
        raise PrivacyError("no votes: nothing to account for")
    return PrivateEpsilon(rdp.epsilon_at((ORDERS, total), delta), delta)


def _votes(votes: Any) -> np.ndarray:
    votes = np.asarray(votes, dtype=np.float64)
    if votes.ndim != 1 or len(votes) < 2 or not np.isfinite(votes).all() or votes.min() < 0.0:
        raise PrivacyError(f"votes of one query are (S,) counts >= 0 of at least two classes, got {votes!r}")
    return votes


def _log1mexp(x: float) -> float:
    """ln(1 - e^x) for x < 0, with all digits."""
    return math.log(-math.expm1(x)) if x > -math.log(2.0) else math.log1p(-math.exp(x))
