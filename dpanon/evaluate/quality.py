"""Predicted listening quality: DNSMOS P.835 (SIG, BAK, OVRL, 1 to 5) by speechmos, whose package holds the weights."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dpanon.data.audio import SAMPLE_RATE, read_audio
from dpanon.errors import MissingDependencyError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import bootstrap_ratio

SCORES = ("ovrl", "sig", "bak")


def dnsmos(samples: np.ndarray) -> dict[str, float]:
    """Predicted scores of a 16 kHz recording ``(L,)``; short ones are repeated to 9 s by the model's own code."""
    try:
        from speechmos import dnsmos as model
    except ImportError as error:
        raise MissingDependencyError(
            f"DNSMOS needs speechmos: pip install speechmos librosa onnxruntime ({error})"
        ) from None
    samples = np.asarray(samples, dtype=np.float32)
    if not len(samples) or not np.isfinite(samples).all():
        raise EvaluationError("no samples, or NaN or infinite ones: DNSMOS is not defined")
    values = model.run(np.clip(samples, -1.0, 1.0), SAMPLE_RATE)
    return {name: float(values[f"{name}_mos"]) for name in SCORES}


def mean_dnsmos(scores: Mapping[str, Mapping[str, float]], speakers: Mapping[str, str]) -> dict:
    """Mean over utterances, with a bootstrap-by-speaker interval of OVRL."""
    if not scores:
        raise EvaluationError("no utterance to rate")
    utts = sorted(scores)
    values = {name: np.asarray([scores[utt][name] for utt in utts]) for name in SCORES}
    if not all(np.isfinite(value).all() for value in values.values()):
        raise EvaluationError("DNSMOS gave NaN for some utterance")
    interval = bootstrap_ratio(values["ovrl"], np.ones(len(utts)), [speakers[utt] for utt in utts])
    out: dict = {f"dnsmos_{name}": float(value.mean()) for name, value in values.items()}
    return out | {"dnsmos_ovrl_low": interval.low, "dnsmos_ovrl_high": interval.high, "num_utterances": len(utts)}


def rate_set(wavs: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """DNSMOS of every utterance."""
    return {utt: dnsmos(read_audio(path)) for utt, path in wavs.items()}
