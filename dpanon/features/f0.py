"""Fundamental frequency, one value per 10 ms."""

import numpy as np

SAMPLE_RATE = 16000
SHIFT = 160
F0_MIN, F0_MAX = 60.0, 600.0
METHODS = ("swift", "yaapt", "harvest")
_SILENCE_PEAK = 1e-4


def extract_f0(samples: np.ndarray, method: str = "swift") -> np.ndarray:
    """f0 of a mono 16 kHz recording.

    ``yaapt`` is the estimator of paper A (60-600 Hz, 35 ms frames, 10 ms shift), by amfm_decompy;
    ``swift`` (swift-f0, the default) and ``harvest`` (pyworld) are faster.

    Args:
        samples: ``(L,)``, full scale is 1.
        method: one of METHODS.

    Returns:
        ``(T,)`` float32 in Hz, 0 where unvoiced; ``T = (L + 80) // 160``. Silent recordings
        and recordings in which the estimator finds no voiced frame give all zeros.

    Raises:
        ValueError: the method is unknown.
    """
    if method not in METHODS:
        raise ValueError(f"unknown f0 method {method!r}; choose one of {', '.join(METHODS)}")
    samples = np.asarray(samples, dtype=np.float64)
    num = (len(samples) + SHIFT // 2) // SHIFT
    peak = float(np.max(np.abs(samples - samples.mean()))) if len(samples) else 0.0
    if num == 0 or peak < _SILENCE_PEAK:  # silence and DC: YAAPT and Harvest divide by their energy
        return np.zeros(num, dtype=np.float32)
    times, f0 = {"swift": _swift, "yaapt": _yaapt, "harvest": _harvest}[method](samples)
    return _to_frames(times, f0, num)


def interpolate_log_f0(f0: np.ndarray) -> np.ndarray:
    """log f0 without gaps: linear across unvoiced frames, constant at the ends. (T,) -> (T,)

    An utterance with no voiced frame gives zeros.
    """
    voiced = f0 > 0
    if not voiced.any():
        return np.zeros(len(f0), dtype=np.float32)
    index = np.arange(len(f0))
    return np.interp(index, index[voiced], np.log(f0[voiced])).astype(np.float32)


def normalise_log_f0(f0: np.ndarray) -> np.ndarray:
    """Interpolated log f0 with the mean and deviation of its voiced frames taken away. (T,) -> (T,)"""
    voiced = f0 > 0
    if voiced.sum() < 2:
        return np.zeros(len(f0), dtype=np.float32)
    log_f0 = np.log(f0[voiced])
    return ((interpolate_log_f0(f0) - log_f0.mean()) / max(float(log_f0.std()), 0.02)).astype(np.float32)


def _swift(samples):
    from swift_f0 import SwiftF0

    result = SwiftF0(threads=1).detect(samples.astype(np.float32), SAMPLE_RATE, fmin=F0_MIN, fmax=F0_MAX)
    return np.asarray(result.timestamps), np.where(result.confidence >= 0.5, result.pitch_hz, 0.0)


def _yaapt(samples):
    import amfm_decompy.basic_tools as basic
    import amfm_decompy.pYAAPT as pYAAPT

    pad = int(0.5 * SAMPLE_RATE)  # shorter recordings and speech at the edges break its tracker
    quiet = 1e-5 * np.sin(np.arange(len(samples) + 2 * pad) * 0.7)  # exact zeros break it too
    quiet[pad : pad + len(samples)] += samples
    signal = basic.SignalObj(quiet, SAMPLE_RATE)
    try:
        pitch = pYAAPT.yaapt(signal, f0_min=F0_MIN, f0_max=F0_MAX, frame_length=35.0, frame_space=10.0)
    except (ValueError, IndexError, ZeroDivisionError):  # what it raises when no frame is voiced
        return np.zeros(1), np.zeros(1)
    f0 = np.nan_to_num(np.asarray(pitch.samp_values, dtype=np.float64))
    return np.asarray(pitch.frames_pos) / SAMPLE_RATE - pad / SAMPLE_RATE, f0


def _harvest(samples):
    import pyworld

    f0, times = pyworld.harvest(samples, SAMPLE_RATE, f0_floor=F0_MIN, f0_ceil=F0_MAX, frame_period=10.0)
    return times, f0


def _to_frames(times, f0, num) -> np.ndarray:
    """Values at the frame centres: linear between two voiced neighbours, else the nearest one."""
    if len(times) < 2:
        return np.zeros(num, dtype=np.float32)
    centres = (np.arange(num) + 0.5) * SHIFT / SAMPLE_RATE
    right = np.clip(np.searchsorted(times, centres), 1, len(times) - 1)
    left = right - 1
    weight = np.clip((centres - times[left]) / np.maximum(times[right] - times[left], 1e-9), 0.0, 1.0)
    both = (f0[left] > 0) & (f0[right] > 0)
    nearest = np.where(weight < 0.5, f0[left], f0[right])
    out = np.where(both, (1 - weight) * f0[left] + weight * f0[right], nearest)
    out[(out > 0) & ((out < F0_MIN) | (out > F0_MAX))] = 0.0
    return out.astype(np.float32)
