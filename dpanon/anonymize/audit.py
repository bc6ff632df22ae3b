"""Audit of a whole system: is the noise drawn that its claim needs, and does nothing pass it by?

The mechanisms are audited by ``dpanon.privacy.suites``; here is what only shows with the networks around them.
"""

from typing import Any

import numpy as np

from dpanon.data.audio import SAMPLE_RATE, SHIFT
from dpanon.privacy import KeyedNoise
from dpanon.privacy.audit import Finding

SECONDS = 2.0


class RecordingNoise(KeyedNoise):
    """Keyed noise that notes what was asked of it: ``draws`` holds (family, scale, clipped value)."""

    def __init__(self, seed: int):
        super().__init__(seed, "audit", "audit")
        self.draws: list[tuple[str, float, np.ndarray]] = []

    def add_laplace(self, x: np.ndarray, scale: float, bound: float) -> np.ndarray:
        self.draws.append(("laplace", scale, x.copy()))
        return super().add_laplace(x, scale, bound)

    def add_gaussian(self, x: np.ndarray, sigma: float, bound: float) -> np.ndarray:
        self.draws.append(("gaussian", sigma, x.copy()))
        return super().add_gaussian(x, sigma, bound)


class BlindNoise(KeyedNoise):
    """Answers with the noise alone, whatever the value: what is made from it knows nothing of the recording."""

    def __init__(self, seed: int):
        super().__init__(seed, "audit", "audit")

    def add_laplace(self, x: np.ndarray, scale: float, bound: float) -> np.ndarray:
        return super().add_laplace(np.zeros_like(x), scale, bound)

    def add_gaussian(self, x: np.ndarray, sigma: float, bound: float) -> np.ndarray:
        return super().add_gaussian(np.zeros_like(x), sigma, bound)


def audit_system(system: Any) -> list[Finding]:
    """Findings about a system dp: ``anonymize`` and the mechanisms in its content (frames) and prosody (box).

    The recordings are made here: two unlike signals of equal length. With the values that enter the mechanisms taken
    away, both must give the same waveform bit by bit: what differs has gone around the noise.
    """
    target = system.pool.choose(system.pool.ids[0])
    one, other = recordings()
    watched = RecordingNoise(1)
    result = system.anonymize(one, target, watched)
    blind = [system.anonymize(x, target, BlindNoise(2)).samples for x in (one, other)]
    quiet = [system.anonymize(one, target, RecordingNoise(seed)).samples for seed in (3, 4)]
    differs = float(np.mean(blind[0] != blind[1]))
    same = float(np.mean(quiet[0] == quiet[1]))
    return [
        *_scales(system, result, watched),
        Finding("samples that know what went around the noise", differs > 0.0, differs, 0.0, tier=2),
        Finding("samples that other noise leaves as they are", same > 0.5, same, 0.5, tier=2),
    ]


def recordings() -> tuple[np.ndarray, np.ndarray]:
    """A low hum with pauses, and two rising tones; (L,) float32 each, of equal length."""
    time = np.arange(int(SECONDS * SAMPLE_RATE)) / SAMPLE_RATE
    hum = np.sign(np.sin(2 * np.pi * 110 * time)) * (np.sin(2 * np.pi * 1.5 * time) > -0.3)
    tone = np.sin(2 * np.pi * (200 * time + 60 * time**2)) + 0.3 * np.sin(2 * np.pi * 2000 * time**3)
    return (0.2 * hum).astype(np.float32), (0.3 * tone).astype(np.float32)


def _scales(system: Any, result: Any, watched: RecordingNoise) -> list[Finding]:
    """The noise that was drawn against the one that the two claims need, worked out from the claims alone."""
    num, channels = result.num_frames, system.prosody.box.channels
    found = []
    for name, entries, diameter, claim in (
        ("bn", num * system.extractor.width, 2.0, result.guarantee_frame.epsilon()),
        ("f0", num * channels, float(num * channels), result.guarantee_f0.epsilon()),
    ):
        needed = diameter / claim
        sizes = [x.size for family, scale, x in watched.draws if family == "laplace" and scale >= needed]
        covered = entries if entries in sizes else 0
        found.append(Finding(f"entries of {name} with noise", covered < entries, float(covered), float(entries)))
    biggest = max(float(np.abs(x).sum(-1).max()) for _, _, x in watched.draws if x.shape[-1] == system.extractor.width)
    found.append(Finding("largest L1 norm of a frame before the noise", biggest > 1.0, biggest, 1.0))
    frames = result.samples.size / SHIFT
    found.append(Finding("frames of the waveform", frames != num, frames, float(num)))
    return found
