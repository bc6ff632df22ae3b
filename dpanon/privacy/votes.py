"""Answers of an ensemble of teachers with noise: mean posteriors, every query of which is counted.

Each teacher is trained on its own part of a private set. With disjoint parts a unit (utterance or
speaker) moves one teacher; with Poisson sub-samples it moves Binomial(T, rate) of them, see ``psn``.
"""

from __future__ import annotations

import math
import os
import threading
from typing import Any

import numpy as np

from dpanon.privacy import clip
from dpanon.privacy.checks import count, positive, scale_in_range, shaped
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import CENTRAL, Guarantee, Part
from dpanon.privacy.mechanisms import Released, above, to_float32
from dpanon.privacy.sampling import NoiseSource, SystemNoise

NOT_COVERED = (
    "weights, number of teachers or stopping chosen on private data",
    "who is in the public set that is queried",
)


class QueryBudget:
    """So many queries and no more. It stays in one process and cannot be copied: both copies would spend it."""

    def __init__(self, queries: int):
        self.queries = count("queries", queries)
        self.used = 0
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def left(self) -> int:
        return self.queries - self.used

    def spend(self, queries: int) -> None:
        """Count them before they are answered; PrivacyError if they are too many."""
        queries = count("queries", queries)
        if os.getpid() != self._process:
            raise PrivacyError("a query budget was taken into another process: ask where it was made")
        with self._lock:
            if queries > self.left:
                raise PrivacyError(f"{queries} queries asked, {self.left} of {self.queries} left: none is answered")
            self.used += queries

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise PrivacyError("a query budget cannot be copied or stored: both copies would spend it")


class NoisyVotes:
    """Mean posteriors of T teachers with Gaussian or Laplace noise, for a declared number of queries.

    A posterior is clipped to the simplex, whose diameter is sqrt(2) in L2 and 2 in L1; one unit moves
    one teacher, hence the mean by ``sqrt(2) / T`` or ``2 / T`` per query. Q queries share the budget:
    sigma of the mean is ``sqrt(2 Q) / (T mu)``, the Laplace scale ``2 Q / (T epsilon)``.
    (Papernot et al. 2017; Yang et al. 2023, equation 2, with the queries counted.)

    Args:
        teachers: T.
        queries: Q, all that will ever be asked of these teachers; a frame of speech is a query.
        mu: of all Gaussian answers together (of one teacher's share); give mu or epsilon.
        epsilon: of all Laplace answers together.
        unit: what the parts are disjoint in: ``utterance`` or ``speaker``.
        rate: of Poisson sub-samples drawn once, instead of disjoint parts (Gaussian only). All queries are
            then asked in one call, fixed beforehand, since the secret sub-samples are the same for all.
        weights: (T,) public weights of the teachers, >= 0; equal if None.

    Shape:
        posteriors: ``(T, Q', S)`` = (teachers, queries, states), any float dtype; rows that are not
        finite count as 0. Returns ``Released`` with ``value`` ``(Q', S)`` float32, not clipped again.

    >>> votes = NoisyVotes(teachers=10, queries=600, mu=1.0)
    >>> round(votes.sigma, 3)
    3.464
    """

    def __init__(
        self,
        teachers: int,
        queries: int,
        mu: float | None = None,
        epsilon: float | None = None,
        unit: str = "utterance",
        rate: float | None = None,
        weights: Any = None,
    ):
        self.teachers = count("teachers", teachers)
        self.budget = QueryBudget(queries)
        if (mu is None) == (epsilon is None):
            raise PrivacyError("noisy votes need either mu (Gaussian) or epsilon (Laplace) of all queries together")
        self.mu = None if mu is None else positive("mu", mu)
        self.epsilon = None if epsilon is None else positive("epsilon", epsilon)
        self.unit = known_unit(unit)
        self.rate = None if rate is None else _sampling(rate, self.teachers, self.mu)
        self.weights, self.share = _weights(weights, self.teachers)
        if self.mu is not None:
            scale = clip.simplex_l2_diameter() * math.sqrt(queries) / self.mu
        else:
            assert self.epsilon is not None
            scale = clip.simplex_l1_diameter() * queries / self.epsilon
        self._scale = scale_in_range("mu" if self.epsilon is None else "epsilon", above(above(scale)))

    @property
    def sigma(self) -> float:
        """Of the mean posterior: standard deviation (Gaussian) or scale (Laplace)."""
        return self._scale * self.share

    def clip(self, posteriors: Any) -> np.ndarray:
        """(T, Q, S) -> (Q, S) float64: the sum over teachers, without any rounding.

        Each row is cut to a grid of the simplex, in which it provably stays, so that sums are exact.
        """
        rows = clip.simplex(shaped("posteriors", posteriors, "(T, Q, S)", self.teachers, None, None))
        bits = 52 - self.teachers.bit_length()
        cells = np.floor(rows * self.weights[:, None, None] * 2.0**bits).astype(np.int64)
        cells[cells.sum(axis=-1) > 2**bits] = 0
        return cells.sum(axis=0) * 2.0**-bits

    def release(self, posteriors: Any, noise: NoiseSource | None = None) -> Released:
        """Answer Q' queries; raises PrivacyError before any noise is drawn if fewer are left."""
        noise = SystemNoise() if noise is None else noise
        total = self.clip(posteriors)
        asked = len(total)
        if self.rate is not None and asked != self.budget.queries:
            raise PrivacyError(
                f"{asked} of {self.budget.queries} queries: sub-sampled teachers answer all of them at once or none"
            )
        self.budget.spend(asked)
        add = noise.add_gaussian if self.epsilon is None else noise.add_laplace
        value = to_float32(add(total, self._scale, float(self.teachers)) * self.share)
        return Released(value, self.guarantee(asked, sampler=noise.sampler))

    def guarantee(self, queries: int | None = None, sampler: str = "exact") -> Guarantee:
        """Of so many queries; of all that are declared if None."""
        declared = self.budget.queries
        asked = declared if queries is None else count("queries", queries)
        if asked > declared or (self.rate is not None and asked != declared):
            raise PrivacyError(f"no claim about {asked} queries: {declared} are declared")
        if self.rate is not None:
            part = Part("sampled", self.mu or 0.0, rate=self.rate, teachers=self.teachers)
        elif self.mu is not None:
            part = Part("gaussian", self.mu / math.sqrt(declared), asked)
        else:
            part = Part("laplace", (self.epsilon or 0.0) / declared, asked)
        how = "disjoint parts" if self.rate is None else f"Poisson sub-samples of rate {self.rate:g}"
        return Guarantee(
            parts=(part,),
            unit=self.unit,
            adjacency=CENTRAL[self.unit],
            mechanism=f"noisy mean posteriors of {self.teachers} teachers trained on {how}",
            public_side_info=("the queries and their number",),
            not_covered=NOT_COVERED,
            n_releases=asked,
            sampler=sampler,
        )

    def __repr__(self) -> str:
        budget = f"mu={self.mu:g}" if self.mu is not None else f"epsilon={self.epsilon:g}"
        return f"NoisyVotes(teachers={self.teachers}, queries={self.budget.queries}, {budget}, unit={self.unit!r})"


def known_unit(unit: Any) -> str:
    """``utterance`` or ``speaker``: what is added to a private set, or removed."""
    if not isinstance(unit, str) or unit not in CENTRAL:
        raise PrivacyError(f"the unit of a private set is one of {', '.join(CENTRAL)}, got {unit!r}")
    return unit


def _sampling(rate: Any, teachers: int, mu: float | None) -> float:
    if mu is None:
        raise PrivacyError("sub-sampled teachers are accounted for Gaussian noise only: give mu, not epsilon")
    if teachers < 2:
        raise PrivacyError("sub-sampling among one teacher: a second query would not be fresh; train at least two")
    if positive("rate", rate) > 1.0:
        raise PrivacyError(f"rate must be in (0, 1], got {rate}")
    return float(rate)


def _weights(weights: Any, teachers: int) -> tuple[np.ndarray, float]:
    """Relative to the largest; and that one's share of the mean."""
    if weights is None:
        return np.ones(teachers), 1.0 / teachers
    values = shaped("weights", weights, "(T,)", teachers)
    if not (np.isfinite(values).all() and (values >= 0.0).all() and values.max() > 0.0):
        raise PrivacyError("weights must be finite, >= 0 and not all 0")
    return values / values.max(), float(values.max() / values.sum())
