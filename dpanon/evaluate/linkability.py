"""Linkability D_sys (Gomez-Barrero et al. 2018): how surely a score tells that two recordings share a speaker.

With the likelihood ratio ``L`` of a score and prior ratio ``omega`` of same to different speakers,
``D = max(0, (omega L - 1) / (omega L + 1))`` is the local linkability and ``D_sys`` its mean over same-speaker
scores: 0 when the scores tell nothing, 1 when they tell all. It is an f-divergence, so a guarantee bounds it.

Both estimates are biased upwards: chance differences between two histograms look like linkability. Compare only
values of the same number of trials.
"""

import numpy as np

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.detection import Tally, calibrated_llr, tally

METHODS = ("histogram", "monotone")
MIN_BINS, MAX_BINS = 10, 100


def linkability(target, nontarget, omega: float = 1.0, method: str = "histogram", bins: int | None = None) -> float:
    """D_sys of the scores of same-speaker and of different-speaker trials.

    Args:
        target, nontarget: scores.
        omega: prior odds of a same-speaker trial; 1 is what the literature reports.
        method: ``histogram`` takes the likelihood ratio bin by bin, as VoicePrivacy does; ``monotone`` fits a
            likelihood ratio that never falls with the score (pool adjacent violators), so no bin width is chosen
            and scores of distant speakers that look linked by their rarity alone do not count.
        bins: of the histogram; None: a tenth of the number of same-speaker trials, as VoicePrivacy, but not
            below MIN_BINS: one bin would call every system unlinkable.
    """
    return linkability_of(tally(target, nontarget), omega, method, bins)


def linkability_of(table: Tally, omega: float = 1.0, method: str = "histogram", bins: int | None = None) -> float:
    """The same from a table of scores, whose trials may be weighted."""
    if not 0 < omega < float("inf"):
        raise EvaluationError(f"omega is a ratio of probabilities and has to be finite and > 0, got {omega}")
    if method == "histogram":
        return _histogram(table, omega, bins)
    if method == "monotone":
        return _monotone(table, omega)
    raise EvaluationError(f"unknown linkability method {method!r}; choose one of {', '.join(METHODS)}")


def local_linkability(likelihood_ratio, omega: float = 1.0) -> np.ndarray:
    """``max(0, (omega L - 1) / (omega L + 1))``; 1 for an infinite L."""
    odds = omega * np.asarray(likelihood_ratio, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(odds), 1.0, np.maximum(0.0, (odds - 1.0) / (odds + 1.0)))


def _histogram(table: Tally, omega: float, bins: int | None) -> float:
    """The integral over bins is a sum: both densities are constant in a bin, whose width cancels."""
    if bins is None:
        bins = int(np.clip(int(table.target.sum()) // 10, MIN_BINS, MAX_BINS))
    if len(table.values) == 1:
        return 0.0 if omega <= 1 else float(local_linkability(1.0, omega))
    edges = np.linspace(table.values[0], table.values[-1], bins + 1)
    same, different = (np.histogram(table.values, edges, weights=share)[0] for share in table.shares)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(same > 0, same / different, 0.0)
    return float(np.clip(same @ local_linkability(ratio, omega), 0.0, 1.0))


def _monotone(table: Tally, omega: float) -> float:
    llr = calibrated_llr(table)
    with np.errstate(over="ignore"):
        return float(np.clip(table.shares[0] @ local_linkability(np.exp(llr), omega), 0.0, 1.0))
