"""One loudness for every recording, so that its level neither reaches the features nor the release."""

import numpy as np

ACTIVE_RMS = 0.06
_FRAME = 400


def normalise_level(samples: np.ndarray) -> np.ndarray:
    """DC removed and scaled so that its active frames have an RMS of ACTIVE_RMS. (L,) -> (L,) float32

    Active frames are those within 30 dB of the loudest twentieth. Silence stays silence.
    """
    samples = np.asarray(samples, dtype=np.float32)
    samples = samples - np.float32(samples.mean(dtype=np.float64))
    num = len(samples) // _FRAME
    if num == 0:
        return samples
    power = (samples[: num * _FRAME].reshape(num, _FRAME).astype(np.float64) ** 2).mean(1)
    loud = np.quantile(power, 0.95)
    if loud < 1e-10:
        return samples
    active = float(np.sqrt(power[power >= loud * 1e-3].mean()))
    return samples * np.float32(ACTIVE_RMS / active)
