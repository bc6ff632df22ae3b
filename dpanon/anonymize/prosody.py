"""The f0 of a release: kept, moved to the target's range, or made private in one of four ways.

Kept       as it is (Anon of paper A, table 2)
Converted  the contour, in the target's mean and deviation (Anon+PC)
Naive      Laplace noise on f0 itself, as wide as voices are: the baseline of the paper
Boxed      Laplace noise in the pitch auto-encoder's latent (DP pitch)
Contour    a few coefficients with Gaussian noise: one budget for the utterance, whatever its length. They correct the
           contour that the released content lets expect, where there is a network that tells it
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from dpanon.features.f0 import interpolate_log_f0, normalise_log_f0
from dpanon.models.pitch_autoencoder import PitchAutoencoder
from dpanon.privacy import Guarantee, LowRankPitch, PitchBox
from dpanon.privacy.sampling import NoiseSource
from dpanon.synth.targets import Target

LIMIT = 3.0  # deviations; f0 stays in a range that a voice has
LOW, HIGH = np.log(60.0), np.log(400.0)  # of voices, log Hz
_UNVOICED = np.log(150.0)  # of a recording without a voiced frame


@dataclass(frozen=True)
class Pitch:
    """Log f0 (T,): in Hz, or in the deviations of a speaker around the mean."""

    values: np.ndarray
    relative: bool
    guarantee: Guarantee | None

    def of(self, target: Target) -> np.ndarray:
        """(T,) float32 Hz, in the voice of ``target`` unless it is a pitch of its own."""
        if not self.relative:
            return np.exp(self.values).astype(np.float32)
        contour = np.clip(self.values, -LIMIT, LIMIT)
        return np.exp(target.log_f0_mean + target.log_f0_std * contour).astype(np.float32)


@dataclass(frozen=True)
class Expected:
    """A contour (T,) in deviations, told by released content, and the mean square errors of its slow coefficients."""

    contour: np.ndarray
    errors: np.ndarray


class Prosody(Protocol):
    """A way to release f0."""

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee | None:
        """Of the utterance; None without noise."""

    def release(self, f0: np.ndarray, noise: NoiseSource, expected: Expected | None = None) -> Pitch:
        """f0 (T,) in Hz, 0 where there is none; ``expected`` depends on the recording through releases only."""


class Kept:
    def guarantee(self, num_frames: int, sampler: str) -> None:
        return None

    def release(self, f0: np.ndarray, noise: NoiseSource, expected: Expected | None = None) -> Pitch:
        return Pitch(_log(f0), False, None)


class Converted:
    def guarantee(self, num_frames: int, sampler: str) -> None:
        return None

    def release(self, f0: np.ndarray, noise: NoiseSource, expected: Expected | None = None) -> Pitch:
        return Pitch(normalise_log_f0(f0), True, None)


class Naive:
    """The box of ``PitchBox`` around log f0 itself, one value a frame, and no network behind it."""

    def __init__(self, box: PitchBox):
        self.box = box

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee:
        return self.box.guarantee(sampler)

    def release(self, f0: np.ndarray, noise: NoiseSource, expected: Expected | None = None) -> Pitch:
        released = self.box.release(((_log(f0) - LOW) / (HIGH - LOW))[None], noise)
        return Pitch(LOW + (HIGH - LOW) * np.clip(released.value[0], 0.0, 1.0), False, released.guarantee)


class Boxed:
    def __init__(self, network: PitchAutoencoder, box: PitchBox):
        self.network, self.box = network, box

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee:
        return self.box.guarantee(sampler)

    def release(self, f0: np.ndarray, noise: NoiseSource, expected: Expected | None = None) -> Pitch:
        latent = self.network.encode(torch.from_numpy(normalise_log_f0(f0))[None])[0]
        released = self.box.release(latent, noise)
        decoded = self.network.decode(torch.from_numpy(released.value)[None], self.box.scale(len(f0)))
        return Pitch(decoded[0].numpy(), True, released.guarantee)


class Contour:
    def __init__(self, mechanism: LowRankPitch):
        self.mechanism = mechanism

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee:
        return self.mechanism.guarantee(sampler)

    def release(self, f0: np.ndarray, noise: NoiseSource, expected: Expected | None = None) -> Pitch:
        released = self.mechanism.release(normalise_log_f0(f0), noise)
        if expected is None:
            values = self.mechanism.contour(released.value, len(f0), shrink=True)
        else:
            values = self.mechanism.correct(released.value, expected.contour, expected.errors[: self.mechanism.rank])
        return Pitch(values, True, released.guarantee)


def _log(f0: np.ndarray) -> np.ndarray:
    """Log f0 without gaps."""
    if not (f0 > 0).any():
        return np.full(len(f0), _UNVOICED)
    return np.asarray(interpolate_log_f0(f0), dtype=np.float64)
