"""How much of the intonation is left: correlation of f0 before and after.

Pearson's correlation in Hz, per utterance, over the frames that are voiced in both recordings; then the mean over
utterances. No time shift is searched: the synthesizer keeps frames in place. ``challenge_f0_correlation`` is the figure
of VoicePrivacy 2022 beside it, for comparison with published numbers only.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.signal import correlate

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import bootstrap_ratio

MIN_FRAMES = 10
MAX_DIFFERENCE = 10  # frames of 10 ms by which two recordings of one utterance may differ in length


def f0_correlation(original: np.ndarray, released: np.ndarray) -> float:
    """Correlation of two f0 tracks, 0 where unvoiced. (T,), (T,) -> float

    nan where it is not defined: fewer than MIN_FRAMES frames voiced in both, or a constant track.
    """
    num = min(len(original), len(released))
    original = np.asarray(original[:num], dtype=np.float64)
    released = np.asarray(released[:num], dtype=np.float64)
    both = (original > 0) & (released > 0)
    if both.sum() < MIN_FRAMES:
        return float("nan")
    original, released = original[both] - original[both].mean(), released[both] - released[both].mean()
    scale = np.sqrt((original @ original) * (released @ released))
    if scale < 1e-9 * both.sum():
        return float("nan")
    return float(np.clip(original @ released / scale, -1.0, 1.0))


def challenge_f0_correlation(original: np.ndarray, released: np.ndarray) -> float:
    """rho^F0 as VoicePrivacy 2022 computes it, with its flaws. (T,), (T',) -> float

    The shorter track is stretched over the longer one, unvoiced zeros with it; values outside 75 to 500 Hz become 0;
    the released track is shifted *in a circle* to the largest cross-correlation; Pearson's correlation over all
    frames, so that a common voicing pattern alone correlates; 0 where it is not defined. The tracker is the
    caller's (the challenge took Praat's).
    """
    original, released = np.asarray(original, dtype=np.float64), np.asarray(released, dtype=np.float64)
    if not len(original) or not len(released):
        raise EvaluationError("no frames: f0 correlation is not defined")
    num = max(len(original), len(released))
    a, b = (np.interp(np.linspace(0, len(x) - 1, num), np.arange(len(x)), x) for x in (original, released))
    a, b = (np.where((x < 75) | (x > 500), 0.0, x) for x in (a, b))
    b = np.roll(b, int(np.argmax(correlate(a, b, "full"))) - (num - 1))
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def mean_f0_correlation(
    original: Mapping[str, np.ndarray], released: Mapping[str, np.ndarray], speakers: Mapping[str, str]
) -> dict:
    """Mean correlation over the released utterances, ours and the challenge's, with bootstrap-by-speaker intervals.

    Utterances without a defined correlation are left out of the mean and counted in ``num_undefined``; when none is
    defined, the value is None.

    Raises:
        EvaluationError: an utterance is missing in the original, or lengths differ by more than MAX_DIFFERENCE frames.
    """
    utts: Sequence[str] = sorted(released)
    missing = [utt for utt in utts if utt not in original]
    if missing or not utts:
        raise EvaluationError(f"{len(missing)} of {len(utts)} released utterances have no original ({missing[:3]})")
    values, challenge = [], []
    for utt in utts:
        difference = len(released[utt]) - len(original[utt])
        if abs(difference) > MAX_DIFFERENCE:
            raise EvaluationError(
                f"{utt}: the released recording is longer by {difference * 10} ms "
                "than the original; f0 correlation needs recordings of the same timing"
            )
        values.append(f0_correlation(original[utt], released[utt]))
        challenge.append(challenge_f0_correlation(original[utt], released[utt]))
    correlation = np.asarray(values)
    defined = np.isfinite(correlation)
    theirs = bootstrap_ratio(challenge, np.ones(len(utts)), [speakers[utt] for utt in utts])
    out: dict = {
        "f0_correlation": None,
        "f0_correlation_low": None,
        "f0_correlation_high": None,
        "f0_correlation_challenge": float(np.mean(challenge)),
        "f0_correlation_challenge_low": theirs.low,
        "f0_correlation_challenge_high": theirs.high,
        "num_utterances": len(utts),
        "num_undefined": int((~defined).sum()),
    }
    if defined.any():
        interval = bootstrap_ratio(
            correlation[defined],
            np.ones(defined.sum()),
            [speakers[utt] for utt, ok in zip(utts, defined, strict=True) if ok],
        )
        out["f0_correlation"] = float(correlation[defined].mean())
        out["f0_correlation_low"], out["f0_correlation_high"] = interval.low, interval.high
    return out
