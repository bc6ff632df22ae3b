"""Voice similarity matrices and what follows from them: de-identification DeID and gain of distinctiveness G_VD.

``M(i, j) = sigmoid(mean of LLR(x, y) over recordings x of speaker i and y of speaker j)``; a recording never meets
itself. ``D_diag = |mean of the diagonal - mean of the rest|`` says how much a matrix looks like "each voice is like
itself only". With ``o`` original and ``a`` anonymized speech (Noé et al. 2020, "Speech pseudonymisation assessment
using voice similarity matrices"):

    DeID = 1 - D_diag(oa) / D_diag(oo)          1: an anonymized voice is like its original no more than like others
    G_VD = 10 log10(D_diag(aa) / D_diag(oo))  dB  0: anonymized voices are as distinct as the original ones

Scores have to be natural log-likelihood ratios. The matrix of all recordings is never held: blocks of rows are summed
by speaker, so memory grows with speakers squared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpanon.attack.backends import Backend
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import LEVEL, REPLICATES, Interval, bootstrap_speakers

_BLOCK = 256  # recordings of one side scored at once


@dataclass(frozen=True)
class Affine:
    """Scores of a back-end to log-likelihood ratios: ``scale * score + shift``."""

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit(cls, target, nontarget) -> "Affine":
        """Logistic regression, both kinds equally frequent; regularised a little, so that separable scores have one."""
        from sklearn.linear_model import LogisticRegression

        scores = np.concatenate([target, nontarget]).astype(np.float64)[:, None]
        if not len(target) or not len(nontarget) or not np.isfinite(scores).all():
            raise EvaluationError("calibration needs finite scores of both kinds of trials")
        labels = np.repeat([1, 0], [len(target), len(nontarget)])
        spread = max(float(scores.std()), 1e-12)
        model = LogisticRegression(C=1e3, class_weight="balanced", max_iter=1000).fit(scores / spread, labels)
        return cls(float(model.coef_[0, 0]) / spread, float(model.intercept_[0]))


def similarity_matrix(
    left: Mapping[str, np.ndarray],
    right: Mapping[str, np.ndarray],
    speakers: Mapping[str, str],
    backend: Backend,
    calibration: Affine | None = None,
) -> tuple[np.ndarray, list[str]]:
    """M of the speakers that both sides have, and their names in order. (S, S)

    Args:
        left, right: utterance -> embeddings ``(1, D)`` or ``(D,)``. An utterance of both sides is one recording.
        speakers: utterance -> speaker.
        backend: scores; as they come they are taken for log-likelihood ratios unless there is a ``calibration``.

    Raises:
        EvaluationError: fewer than two common speakers, or one with no pair of recordings.
    """
    names = sorted({speakers[utt] for utt in left} & {speakers[utt] for utt in right})
    if len(names) < 2:
        raise EvaluationError(f"a voice similarity matrix needs at least 2 speakers on both sides, found {len(names)}")
    place = {name: i for i, name in enumerate(names)}
    rows, columns = ([utt for utt in sorted(side) if speakers[utt] in place] for side in (left, right))
    column_speaker = np.asarray([place[speakers[utt]] for utt in columns])
    column_of = {utt: k for k, utt in enumerate(columns)}
    tested = np.stack([np.asarray(right[utt]).reshape(-1, np.shape(right[utt])[-1])[0] for utt in columns])
    calibration = calibration or Affine()
    sums, counts = np.zeros((2, len(names), len(names)))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        llr = backend.score([np.atleast_2d(left[utt]) for utt in block], tested)  # (rows, columns)
        llr = calibration.scale * llr + calibration.shift
        if not np.isfinite(llr).all():
            raise EvaluationError(f"{backend.name} gives NaN or infinite scores")
        for utt, values in zip(block, llr, strict=True):
            weight = np.ones(len(columns))
            if utt in column_of:
                weight[column_of[utt]] = 0.0
            i = place[speakers[utt]]
            sums[i] += np.bincount(column_speaker, weight * values, len(names))
            counts[i] += np.bincount(column_speaker, weight, len(names))
    if alone := [names[i] for i in range(len(names)) if not counts[i].all()]:
        raise EvaluationError(f"{len(alone)} speakers have one recording only (e.g. {alone[:3]}): no pair to compare")
    return expit(sums / counts), names


def d_diag(matrix: np.ndarray, counts: np.ndarray | None = None) -> float:
    """|mean of the diagonal - mean of the other entries|. (S, S) -> float

    With ``counts``, ``(S,)``: of speakers drawn so often each; copies of one speaker are never a pair of two. nan when
    fewer than two different ones are drawn.
    """
    count = np.ones(len(matrix)) if counts is None else np.asarray(counts, dtype=np.float64)
    pairs = np.outer(count, count)
    np.fill_diagonal(pairs, 0.0)
    if not pairs.any():
        return float("nan")
    return float(abs(count @ np.diag(matrix) / count.sum() - (pairs * matrix).sum() / pairs.sum()))


def deid(oo: np.ndarray, oa: np.ndarray, counts: np.ndarray | None = None) -> float:
    """De-identification, 1 when the anonymized voice is unlinked; may be below 0. nan when oo shows no voices."""
    reference = d_diag(oo, counts)
    return 1.0 - d_diag(oa, counts) / reference if reference > 0 else float("nan")


def gain_of_distinctiveness(oo: np.ndarray, aa: np.ndarray, counts: np.ndarray | None = None) -> float:
    """G_VD in dB; -inf when anonymized voices are all alike. nan when oo shows no voices."""
    reference, kept = d_diag(oo, counts), d_diag(aa, counts)
    if not reference > 0:
        return float("nan")
    return float(10 * np.log10(kept / reference)) if kept > 0 else float("-inf")


def voice_metrics(
    oo: np.ndarray, oa: np.ndarray, aa: np.ndarray, names: Sequence[str], replicates: int = REPLICATES, level=LEVEL
) -> dict[str, float]:
    """DeID and G_VD of matrices of the same speakers, with bootstrap-by-speaker intervals."""
    if not oo.shape == oa.shape == aa.shape == (len(names), len(names)):
        raise EvaluationError(f"matrices {oo.shape}, {oa.shape}, {aa.shape} of {len(names)} speakers: shapes differ")
    intervals: dict[str, Interval] = {
        "deid": bootstrap_speakers(lambda count: deid(oo, oa, count), names, replicates, level),
        "g_vd": bootstrap_speakers(lambda count: gain_of_distinctiveness(oo, aa, count), names, replicates, level),
    }
    out = {"deid": deid(oo, oa), "g_vd": gain_of_distinctiveness(oo, aa)}
    for name, interval in intervals.items():
        out |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
    return out
