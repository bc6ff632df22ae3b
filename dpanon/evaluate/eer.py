"""Equal error rate, exact, in O(N log N).

One definition for the whole project. A trial is accepted when its score is above the threshold. Sweeping the
threshold over the distinct scores gives the points ``(FPR, FNR)`` of the detector; trials of equal score are taken
in one step, so that ties favour nobody. The EER is where the straight line between two neighbouring points meets
``FNR = FPR``. Scores that tell nothing (all equal) thus give 0.5, perfect ones 0, perfectly wrong ones 1.

``method="hull"`` first takes the lower convex hull of the points (ROCCH): what an attacker reaches who may toss a
coin between two thresholds *and* chooses them on the test data. It is never above the default and biased low.
"""

import numpy as np

from dpanon.evaluate import EvaluationError

METHODS = ("interpolated", "hull")


def eer(target, nontarget, method: str = "interpolated") -> float:
    """Equal error rate of the scores of same-speaker and of different-speaker trials.

    >>> eer([2.0, 3.0, 4.0], [1.0, 1.5, 3.5])
    0.3333333333333333
    """
    return eer_and_threshold(target, nontarget, method)[0]


def eer_and_threshold(target, nontarget, method: str = "interpolated") -> tuple[float, float]:
    """The EER and the score nearest to it from below: accept what is above it."""
    if method not in METHODS:
        raise EvaluationError(f"unknown EER method {method!r}; choose one of {', '.join(METHODS)}")
    scores, is_target = stack(target, nontarget)
    thresholds, fnr, fpr = error_rates(scores, is_target)
    at = min(int(np.searchsorted(fnr - fpr, 0.0)), len(fnr) - 1)
    threshold = float(thresholds[max(at, 1)])
    if method == "hull":
        keep = _lower_hull(fpr[::-1], fnr[::-1])[::-1]
        fnr, fpr = fnr[::-1][keep], fpr[::-1][keep]
    return float(crossing(fnr, fpr)), threshold


def stack(target, nontarget) -> tuple[np.ndarray, np.ndarray]:
    """Checked scores of both kinds in one array and which of them are targets. (N,), (N,)

    Raises:
        EvaluationError: a kind is absent, or a score is not finite. A NaN would sort to one end and move the
            EER anywhere, down to 0.
    """
    kinds = []
    for name, values in (("target", target), ("nontarget", nontarget)):
        values = np.asarray(values, dtype=np.float64).ravel()
        if not len(values):
            raise EvaluationError(f"no {name} trial: the EER needs trials of the same and of different speakers")
        bad = int((~np.isfinite(values)).sum())
        if bad:
            raise EvaluationError(f"{bad} of {len(values)} {name} scores are NaN or infinite: find the bad embeddings")
        kinds.append(values)
    return np.concatenate(kinds), np.repeat([True, False], [len(kinds[0]), len(kinds[1])])


def error_rates(scores: np.ndarray, is_target: np.ndarray, weights: np.ndarray | None = None):
    """Error rates at every threshold that makes a difference.

    Args:
        scores, is_target: ``(N,)``
        weights: ``(..., N)``, how often each trial counts; None: once.

    Returns:
        ``(thresholds (K,), fnr (..., K), fpr (..., K))``; the first threshold is -inf and accepts everything,
        the last is the largest score and rejects everything. fnr rises and fpr falls along K. Rows of
        ``weights`` without a target or without a nontarget are NaN.
    """
    order = np.argsort(scores, kind="stable")
    scores, is_target = scores[order], is_target[order]
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # of each group of equal scores
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=np.float64)[..., order]
    rejected_targets = np.cumsum(np.where(is_target, weights, 0.0), axis=-1)[..., last]
    rejected_nontargets = np.cumsum(np.where(is_target, 0.0, weights), axis=-1)[..., last]
    with np.errstate(invalid="ignore", divide="ignore"):
        fnr = rejected_targets / rejected_targets[..., -1:]
        fpr = 1.0 - rejected_nontargets / rejected_nontargets[..., -1:]
    zero = np.zeros(fnr.shape[:-1] + (1,))
    return (
        np.append(-np.inf, scores[last]),
        np.concatenate([zero, fnr], axis=-1),
        np.concatenate([zero + 1.0, fpr], axis=-1),
    )


def crossing(fnr: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """Where the line through the points meets FNR = FPR. (..., K) -> (...)"""
    gap = fnr - fpr  # -1 at the first point, 1 at the last, never falling
    right = np.argmax(gap >= 0, axis=-1)[..., None]
    left = np.maximum(right - 1, 0)
    gap_left, gap_right = np.take_along_axis(gap, left, -1), np.take_along_axis(gap, right, -1)
    fnr_left, fnr_right = np.take_along_axis(fnr, left, -1), np.take_along_axis(fnr, right, -1)
    with np.errstate(invalid="ignore"):
        return (fnr_left + (fnr_right - fnr_left) * gap_left / (gap_left - gap_right))[..., 0]


def _lower_hull(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Indices of the lower convex hull of points sorted by x (rising) and, at equal x, by y (falling)."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (x[b] - x[a]) * (y[i] - y[a]) - (y[b] - y[a]) * (x[i] - x[a]) <= 0:
                hull.pop()
            else:
                break
        if len(hull) == 1 and x[i] == x[hull[0]] and y[i] <= y[hull[0]]:
            hull.pop()
        hull.append(i)
    return np.asarray(hull)
