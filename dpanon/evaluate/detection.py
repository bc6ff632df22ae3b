"""Figures of a detector's scores beyond its EER: minDCF, TPR at a low FPR, Cllr and minCllr.

All of them need no more than how many trials of each kind have each distinct score, so the scores are sorted once
(``tally``, O(N log N), a few arrays of N: 10 million trials within 1 GB) and every figure is a pass over that table.
Counts may be fractions or zero: the bootstrap by speaker weights them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.eer import crossing, stack

MAX_FPR = 0.01
Weighted = tuple[np.ndarray, np.ndarray]
_BLOCK = 1 << 20  # distinct scores looked at once


@dataclass(frozen=True)
class Tally:
    """``values``: distinct scores, rising, ``(K,)``; ``target``, ``nontarget``: how many trials have each, ``(K,)``."""

    values: np.ndarray
    target: np.ndarray
    nontarget: np.ndarray

    @property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """The counts as shares of their kind. (K,), (K,)"""
        return self.target / self.target.sum(), self.nontarget / self.nontarget.sum()

    def error_rates(self) -> tuple[np.ndarray, np.ndarray]:
        """FNR and FPR at every threshold, from "accept all" to "accept none". (K + 1,), (K + 1,)"""
        rates = []
        for count in (self.target, self.nontarget):
            rejected = np.zeros(len(count) + 1)
            np.cumsum(count, out=rejected[1:])
            rejected /= rejected[-1]
            rates.append(rejected)
        fnr, fpr = rates
        return fnr, np.subtract(1.0, fpr, out=fpr)


def tally(target, nontarget) -> Tally:
    """Table of the scores of same-speaker and of different-speaker trials.

    Raises:
        EvaluationError: a kind is absent, or a score is NaN or infinite.
    """
    scores, is_target = stack(target, nontarget)
    num = int(is_target.sum())
    own, same = _counted(scores[:num])
    values, different = _counted(scores[num:])
    place = np.searchsorted(values, own)
    new = np.append(values, np.inf)[place] != own  # scores are finite
    values, different = (
        np.insert(old, place[new], fresh) for old, fresh in ((values, own[new]), (different, np.zeros(new.sum())))
    )
    counts = np.zeros(len(values))
    counts[np.searchsorted(values, own)] = same
    return Tally(values, counts, different)


def _counted(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores, rising, and how many have each. (N,) -> (K,), (K,)"""
    ordered = np.sort(scores)
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[first], np.diff(first, append=len(ordered)).astype(np.float64)


def distinct(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores, rising, and which of them each score is. (N,) -> (K,), (N,)"""
    order = np.argsort(scores)
    ordered = scores[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    index = np.empty(len(scores), dtype=np.int64)
    index[order] = np.cumsum(first) - 1
    return ordered[first], index


def weighted_tally(values: np.ndarray, target: Weighted, nontarget: Weighted) -> Tally:
    """Table of trials that count as often as their weights say.

    Args:
        values: distinct scores, rising, ``(K,)``.
        target, nontarget: which of the values each trial of the kind has, and its weight. (N,), (N,)
    """
    return Tally(values, *(np.bincount(index, weights, len(values)) for index, weights in (target, nontarget)))


def eer_of(table: Tally) -> float:
    """Equal error rate as in ``dpanon.evaluate.eer``."""
    return float(crossing(*table.error_rates()))


def min_dcf(table: Tally, p_target: float = 0.01, c_miss: float = 1.0, c_false: float = 1.0) -> float:
    """Least detection cost over all thresholds, in units of the better blind decision (NIST SRE): at most 1.

    ``C(t) = c_miss p FNR(t) + c_false (1 - p) FPR(t)``, divided by ``min(c_miss p, c_false (1 - p))``.
    """
    if not (0 < p_target < 1 and 0 < c_miss < np.inf and 0 < c_false < np.inf):
        raise EvaluationError(f"minDCF needs 0 < p_target < 1 and costs > 0, got {p_target}, {c_miss}, {c_false}")
    fnr, fpr = table.error_rates()
    miss, false = c_miss * p_target, c_false * (1 - p_target)
    return min(1.0, float((miss * fnr + false * fpr).min() / min(miss, false)))


def tpr_at_fpr(table: Tally, fpr: float = MAX_FPR) -> float:
    """Largest share of same-speaker trials accepted at a threshold whose false acceptances are at most ``fpr``.

    No line is drawn between thresholds: what is printed was reached. A small ``fpr`` needs at least ``1 / fpr``
    different-speaker trials to mean something; with fewer it is the share above every one of them. (VoxGuard, 2025)
    """
    if not 0 <= fpr <= 1:
        raise EvaluationError(f"a false positive rate is within [0, 1], got {fpr}")
    fnr, found = table.error_rates()
    return float(1.0 - fnr[np.argmax(found <= fpr + 1e-12)])  # fpr falls along the thresholds; 1e-12: rounding of sums


def cllr(table: Tally) -> float:
    """Cost of scores taken as natural log-likelihood ratios, in bits: 1 when they say nothing.

    ``(mean over targets of log2(1 + exp(-s)) + mean over nontargets of log2(1 + exp(s))) / 2`` (Brümmer & du Preez
    2006). Cosine scores are no log-likelihood ratios, and their Cllr says so; ``min_cllr`` is what is left when they
    are calibrated.
    """
    same, different = table.shares
    return _bits(same, different, table.values)


def min_cllr(table: Tally) -> float:
    """Cllr after the best monotone calibration, by pool adjacent violators on these very trials: within [0, 1]."""
    same, different = table.shares
    return float(np.clip(_bits(same, different, calibrated_llr(table)), 0.0, 1.0))


def calibrated_llr(table: Tally) -> np.ndarray:
    """Natural log-likelihood ratio of each distinct score: the monotone one that fits these trials best. (K,)

    Pool adjacent violators on shares that make both kinds equally frequent, so the fitted posterior ``p`` gives
    ``log(p / (1 - p))``; -inf and inf where a pool holds one kind only. Scores of weight 0 take their neighbour's.
    Neighbours that hold the same one kind always end in one pool and are one from the start, which saves most of the
    work when few trials are of the same speaker.
    """
    kind = (table.target > 0) + 2 * (table.nontarget > 0).astype(np.uint8)  # 0: not used, 3: both
    first = np.flatnonzero(np.append(True, (kind[1:] != kind[:-1]) | (kind[1:] == 3)))  # of each run of one kind
    same = np.add.reduceat(table.target, first) / table.target.sum()
    weight = same + np.add.reduceat(table.nontarget, first) / table.nontarget.sum()
    used = weight > 0
    posterior = isotonic_regression(same[used] / weight[used], weights=weight[used]).x
    posterior = np.where(posterior > 1 - 1e-12, 1.0, np.where(posterior < 1e-12, 0.0, posterior))
    with np.errstate(divide="ignore"):
        llr = np.log(posterior) - np.log1p(-posterior)
    return np.repeat(llr[np.maximum(np.cumsum(used) - 1, 0)], np.diff(first, append=len(kind)))


def mean_cost(share: np.ndarray, llr: np.ndarray, cost: Callable[[np.ndarray], np.ndarray]) -> float:
    """Sum of ``share * cost(llr)``; a share of 0 costs nothing, whatever its ratio. (K,), (K,) -> float"""
    total = 0.0
    for start in range(0, len(share), _BLOCK):
        part = share[start : start + _BLOCK]
        met = part > 0
        total += float(part[met] @ cost(llr[start : start + _BLOCK][met]))
    return total


def _bits(same: np.ndarray, different: np.ndarray, llr: np.ndarray) -> float:
    missed = mean_cost(same, llr, lambda ratio: np.logaddexp(0.0, -ratio))
    return (missed + mean_cost(different, llr, lambda ratio: np.logaddexp(0.0, ratio))) / (2 * np.log(2))
