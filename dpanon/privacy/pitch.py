"""Pitch with one budget for the utterance that does not grow with its length: Gaussian where paper A has Laplace."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import fft

from dpanon.privacy import clip
from dpanon.privacy.checks import count, positive, scale_in_range, shaped
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import Guarantee
from dpanon.privacy.mechanisms import NO_BASELINE, Released, above, to_float32
from dpanon.privacy.sampling import NoiseSource, SystemNoise

if TYPE_CHECKING:
    from dpanon.privacy.layers import TrainNoise


class PitchGaussian:
    """Make the pitch of an utterance mu-GDP by Gaussian noise on a sigmoid latent in [0, 1].

    Two latents of K frames and C channels differ by at most ``sqrt(C K)`` in L2, where ``PitchBox`` has to
    cover ``C K`` in L1: at 1,500 frames its noise is 13 times as large for one channel.

    Args:
        mu: privacy parameter of one utterance; finite and > 0.
        channels: C.

    Shape:
        h: ``(C, T)``, clipped to [0, 1] here; returns ``Released`` with ``value`` ``(C, T)`` float32.
    """

    def __init__(self, mu: float, channels: int):
        self.mu = positive("mu", mu, NO_BASELINE)
        self.channels = count("channels", channels)
        self.sigma(1)

    def sigma(self, num_frames: int) -> float:
        """Deviation of the noise of every entry of an utterance of ``num_frames`` frames."""
        diameter = clip.unit_box_l2_diameter(self.channels, count("num_frames", num_frames))
        return scale_in_range("mu", above(diameter / self.mu))

    def clip(self, h: Any) -> np.ndarray:
        """(C, T) -> (C, T) float64 in [0, 1]."""
        return clip.unit_box(shaped("pitch latent", h, "(C, T)", self.channels, None))

    def release(self, h: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        clipped = self.clip(h)
        noisy = noise.add_gaussian(clipped, self.sigma(clipped.shape[1]), 1.0)
        return Released(to_float32(noisy), self.guarantee(noise.sampler))

    def guarantee(self, sampler: str = "exact") -> Guarantee:
        return Guarantee.gdp(
            self.mu, "utterance", mechanism="pitch", public_side_info=("the number of frames",), sampler=sampler
        )

    def train_noise(self) -> TrainNoise:
        """The same clip and noise as a fast layer for training; it promises nothing."""
        from dpanon.privacy.layers import TrainNoise

        return TrainNoise(self)

    def __repr__(self) -> str:
        return f"PitchGaussian(mu={self.mu:g}, channels={self.channels})"


class LowRankPitch:
    """Make the pitch of an utterance mu-GDP by Gaussian noise on the first coefficients of its contour.

    The contour (log f0 without its mean, in units of a public deviation) becomes ``rank`` coefficients of an
    orthonormal DCT, divided by the root of the number of frames: their L2 norm is then at most the contour's root
    mean square, whatever the length. They are clipped to a ball of ``radius`` around public ``centre``; two utterances
    differ by at most ``2 radius``, so sigma = ``2 radius / mu`` per coefficient and not per frame.

    Args:
        mu: privacy parameter of one utterance; finite and > 0.
        rank: coefficients kept, from the slowest; the mean is not among them.
        radius: of the ball, in the contour's units.
        centre: ``(rank,)`` public mean of the coefficients; by default 0.

    Shape:
        contour: ``(T,)`` floats, of any T; returns ``Released`` with ``value`` ``(rank,)`` float32.
    """

    def __init__(self, mu: float, rank: int = 6, radius: float = 1.0, centre: Any = None):
        self.mu = positive("mu", mu, NO_BASELINE)
        self.rank = count("rank", rank)
        self.radius = scale_in_range("radius", positive("radius", radius))
        self.sigma = scale_in_range("mu", above(clip.l2_ball_diameter(self.radius) / self.mu))
        self.centre = np.zeros(self.rank) if centre is None else shaped("centre", centre, "(rank,)", self.rank).copy()
        if not np.isfinite(self.centre).all():
            raise PrivacyError("centre must be finite")

    def coefficients(self, contour: Any) -> np.ndarray:
        """(T,) -> (rank,) float64, before the clip; a short utterance has zeros at the end."""
        values = clip.sanitise(shaped("contour", contour, "(T,)", None))
        result = np.zeros(self.rank)
        found = fft.dct(np.clip(values, -clip.HUGE, clip.HUGE), norm="ortho")[1 : self.rank + 1]
        result[: len(found)] = found / math.sqrt(len(values))
        return result

    def contour(self, coefficients: Any, num_frames: int, shrink: bool = False) -> np.ndarray:
        """(rank,) -> (num_frames,) float32: the curve of (released) coefficients.

        Args:
            shrink: scale what differs from the centre down by its signal's share of the energy, as if it
                were uniform in the ball: nearer to the true contour in the mean, and of the same shape.
        """
        values = shaped("coefficients", coefficients, "(rank,)", self.rank)
        if shrink:
            signal = self.radius**2 / (self.rank + 2)  # variance per axis of a uniform point of the ball
            values = self.centre + (values - self.centre) * signal / (signal + self.sigma**2)
        return to_float32(_curve(values, count("num_frames", num_frames)))

    def correct(self, coefficients: Any, expected: Any, variance: Any) -> np.ndarray:
        """The contour expected of something else, corrected by released coefficients. Post-processing.

        Args:
            coefficients: (rank,), released.
            expected: (T,) a contour that does not depend on what was released here but through other releases.
            variance: (rank,) mean square error of its coefficients; each is corrected by this one's share of the
                variance, beside that of the noise.

        Returns:
            (T,) float32.
        """
        values = shaped("coefficients", coefficients, "(rank,)", self.rank)
        contour = shaped("expected contour", expected, "(T,)", None)
        variance = shaped("variance", variance, "(rank,)", self.rank)
        share = variance / (variance + self.sigma**2)
        return to_float32(contour + _curve(share * (values - self.coefficients(contour)), len(contour)))

    def clip(self, coefficients: np.ndarray) -> np.ndarray:
        """(rank,) -> (rank,) float64 minus the centre, provably in the ball."""
        return clip.l2_ball(coefficients - self.centre, self.radius)

    def release(self, contour: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        clipped = self.clip(self.coefficients(contour))
        noisy = noise.add_gaussian(clipped, self.sigma, self.radius) + self.centre
        return Released(to_float32(noisy), self.guarantee(noise.sampler))

    def guarantee(self, sampler: str = "exact") -> Guarantee:
        return Guarantee.gdp(self.mu, "utterance", mechanism="pitch contour", sampler=sampler)

    def __repr__(self) -> str:
        return f"LowRankPitch(mu={self.mu:g}, rank={self.rank}, radius={self.radius:g})"


def _curve(coefficients: np.ndarray, num_frames: int) -> np.ndarray:
    """The contour (num_frames,) of slow coefficients (rank,), the mean of a contour not among them."""
    padded = np.zeros(num_frames)
    used = coefficients[: num_frames - 1]
    padded[1 : len(used) + 1] = used * math.sqrt(num_frames)
    return fft.idct(padded, norm="ortho")
