"""Confidence intervals. Trials of one speaker are not independent, so speakers are resampled, not trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.detection import Tally, distinct, eer_of, weighted_tally

REPLICATES = 1000
LEVEL = 0.95
SEED = 20_000  # of the resampling only: the same scores give the same interval


@dataclass(frozen=True)
class Interval:
    """Percentile interval; ``low = high = nan`` when nothing could be resampled."""

    low: float
    high: float


def bootstrap_eer(
    scores,
    is_target,
    enrol_speakers: Sequence[str],
    trial_speakers: Sequence[str],
    replicates: int = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """Interval of the EER when speakers are drawn again with replacement.

    One draw gives each speaker a count ``c``. A trial between two speakers counts ``c[enrol] * c[trial]`` times; a
    target trial counts ``c`` times, since two copies of a speaker are two speakers. Draws that leave no target or
    no nontarget trial are left out.

    Args:
        scores, is_target: ``(N,)``
        enrol_speakers, trial_speakers: of each trial, ``(N,)``. Both are names of people: the same name on both
            sides is the same person and is drawn once.
    """
    sides = enrol_speakers, trial_speakers
    return bootstrap_trials({"eer": eer_of}, scores, is_target, *sides, replicates, level, seed)["eer"]


def bootstrap_trials(
    statistics: Mapping[str, Callable[[Tally], float]],
    scores,
    is_target,
    enrol_speakers: Sequence[str],
    trial_speakers: Sequence[str],
    replicates: int = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
) -> dict[str, Interval]:
    """Intervals of any figures of the scores, all from the same draws of speakers as ``bootstrap_eer``.

    The scores are sorted once; a draw costs one pass. Memory: a few arrays of N.
    """
    order = np.argsort(scores)
    scores, is_target = np.asarray(scores, dtype=np.float64)[order], np.asarray(is_target, dtype=bool)[order]
    names, index = np.unique([*enrol_speakers, *trial_speakers], return_inverse=True)
    enrol, trial = index[: len(scores)][order], index[len(scores) :][order]
    values, place = distinct(scores)
    same, (enrolled, tried) = trial[is_target], (enrol[~is_target], trial[~is_target])
    of_same, of_different = place[is_target], place[~is_target]
    found: dict[str, list[float]] = {name: [] for name in statistics}
    for count in _draws(len(names), replicates, seed).astype(np.float64):
        table = weighted_tally(values, (of_same, count[same]), (of_different, count[enrolled] * count[tried]))
        if table.target.any() and table.nontarget.any():
            for name, statistic in statistics.items():
                found[name].append(statistic(table))
    return {name: percentile(np.asarray(value), level) for name, value in found.items()}


def bootstrap_speakers(
    statistic: Callable[[np.ndarray], float],
    speakers: Sequence[str],
    replicates: int = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """Interval of ``statistic(counts)``: how often each distinct speaker, in order of name, is drawn.

    Draws for which the statistic is not defined (NaN) are left out.
    """
    names = np.unique(list(speakers))
    values = np.asarray([statistic(count) for count in _draws(len(names), replicates, seed)], dtype=np.float64)
    return percentile(values[np.isfinite(values)], level)


def bootstrap_ratio(
    numerators,
    denominators,
    speakers: Sequence[str],
    replicates: int = REPLICATES,
    level: float = LEVEL,
    seed: int = SEED,
) -> Interval:
    """Interval of ``sum(numerators) / sum(denominators)`` when speakers are drawn again: WER, or a mean.

    Args:
        numerators, denominators: of each utterance, ``(N,)``; ones below for the mean over utterances.
        speakers: of each utterance, ``(N,)``
    """
    names, index = np.unique(list(speakers), return_inverse=True)
    over = np.bincount(index, np.asarray(numerators, dtype=np.float64), len(names))
    under = np.bincount(index, np.asarray(denominators, dtype=np.float64), len(names))
    counts = _draws(len(names), replicates, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = (counts @ over) / (counts @ under)
    return percentile(values[np.isfinite(values)], level)


def clopper_pearson(errors: int, trials: int, level: float = LEVEL) -> Interval:
    """Exact interval of a rate, for ``errors`` of ``trials`` independent trials."""
    if not 0 <= errors <= trials or trials < 1:
        raise EvaluationError(f"{errors} errors of {trials} trials: not a rate")
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, errors, trials - errors + 1)) if errors else 0.0
    high = float(beta.ppf(1 - tail, errors + 1, trials - errors)) if errors < trials else 1.0
    return Interval(low, high)


def eer_upper_bound(scores, is_target, threshold: float, level: float = 0.99) -> float:
    """Upper Clopper-Pearson bound of both error rates at the EER threshold, each at half the error probability.

    It takes the trials as independent and so is too small when speakers differ: use it together with
    ``bootstrap_eer``, which says nothing when no error was seen.
    """
    scores, is_target = np.asarray(scores), np.asarray(is_target, dtype=bool)
    missed = int((scores[is_target] <= threshold).sum())
    accepted = int((scores[~is_target] > threshold).sum())
    return max(
        clopper_pearson(missed, int(is_target.sum()), level).high,
        clopper_pearson(accepted, int((~is_target).sum()), level).high,
    )


def percentile(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Middle ``level`` of the values, of which the largest may be infinite."""
    if not len(values):
        return Interval(float("nan"), float("nan"))
    tails = [(1 - level) / 2, (1 + level) / 2]
    if np.isfinite(values).all():
        low, high = np.quantile(values, tails)
    else:
        low, high = np.quantile(values, tails, method="higher")  # no line can be drawn to infinity
    return Interval(float(low), float(high))


def _draws(num_speakers: int, replicates: int, seed: int) -> np.ndarray:
    """How often each speaker is drawn. (replicates, num_speakers)"""
    if num_speakers < 1:
        raise EvaluationError("no speakers to resample")
    return np.random.default_rng(seed).multinomial(num_speakers, np.full(num_speakers, 1 / num_speakers), replicates)
