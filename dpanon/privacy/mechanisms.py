"""The mechanisms of the papers: sensitivity + noise + guarantee, each in one class.

``release`` validates, sanitises, clips, adds noise and states the claim, always in this order;
there is no way to have the noise without the clip or the value without the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpanon.privacy import clip
from dpanon.privacy.checks import count, positive, scale_in_range, shaped
from dpanon.privacy.guarantee import Guarantee
from dpanon.privacy.sampling import NoiseSource, SystemNoise

if TYPE_CHECKING:
    from dpanon.privacy.layers import TrainNoise

_BLOCK = 4096  # frames
NO_BASELINE = "use a model without a noise layer for the non-private baseline"


@dataclass(frozen=True)
class Released:
    """A noisy value and what it promises."""

    value: np.ndarray  # float32; int64 of discrete mechanisms
    guarantee: Guarantee


class BottleneckFrames:
    """Make every frame epsilon-DP by Laplace noise on the unit L1 sphere.

    Each frame is scaled to unit L1 norm (zero stays zero), so two frames differ by at most 2 in L1
    and noise of scale ``2 / epsilon`` per entry gives epsilon-DP per frame. T frames of an utterance
    compose to ``T * epsilon``. (Shamsabadi et al. 2023, DP bottleneck features.)

    The value released is not normalised again: that is post-processing, and the decoder's business.

    Args:
        epsilon: privacy loss of one frame; finite and > 0.
        dim: features per frame.

    Shape:
        x: ``(T, M)`` = (frames, features), any float dtype; a tensor or an array.
        returns: ``Released`` with ``value`` ``(T, M)`` float32.

    >>> released = BottleneckFrames(epsilon=1.0).release(np.random.rand(5, 256))
    >>> released.guarantee.to_unit("utterance").epsilon()
    5.0
    """

    radius = 1.0

    def __init__(self, epsilon: float, dim: int = 256):
        self.epsilon = positive("epsilon", epsilon, NO_BASELINE)
        self.dim = count("dim", dim)
        self.scale = scale_in_range("epsilon", above(clip.l1_ball_diameter(self.radius) / self.epsilon))

    def clip(self, x: Any) -> np.ndarray:
        """(T, M) -> (T, M) float64 on the unit L1 sphere, or 0; provably in the ball."""
        return clip.l1_sphere(shaped("bottleneck frames", x, "(T, M)", None, self.dim), self.radius)

    def release(self, x: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        frames = shaped("bottleneck frames", x, "(T, M)", None, self.dim)
        value = np.empty(frames.shape, dtype=np.float32)
        for start in range(0, len(frames), _BLOCK):  # frames are independent; a long recording stays small
            part = slice(start, start + _BLOCK)
            value[part] = to_float32(noise.add_laplace(self.clip(frames[part]), self.scale, self.radius))
        return Released(value, self.guarantee(num_frames=len(frames), sampler=noise.sampler))

    def guarantee(self, num_frames: int | None = None, sampler: str = "exact") -> Guarantee:
        """Of one frame; with ``num_frames`` it can be restated ``to_unit("utterance")``."""
        return Guarantee.laplace(
            self.epsilon,
            unit="frame",
            mechanism="bottleneck features",
            public_side_info=("the number of frames",),
            not_covered=("audio wider than a frame, which moves as many frames as the encoder's context holds",),
            num_units=num_frames,
            sampler=sampler,
        )

    def train_noise(self) -> TrainNoise:
        """The same clip and noise as a fast layer for training; it promises nothing."""
        from dpanon.privacy.layers import TrainNoise

        return TrainNoise(self)

    def __repr__(self) -> str:
        return f"BottleneckFrames(epsilon={self.epsilon:g}, dim={self.dim})"


class PitchBox:
    """Make the pitch of an utterance epsilon-DP by Laplace noise on a sigmoid latent in [0, 1].

    Two latents of K frames and C channels differ by at most ``C * K`` in L1 (all 0 against all 1),
    so noise of scale ``C * K / epsilon`` per entry gives epsilon-DP per utterance, given K. K is the
    length of what gets the noise, padding included. (Shamsabadi et al. 2023, DP pitch.)

    Args:
        epsilon: privacy loss of one utterance; finite and > 0.
        channels: C.

    Shape:
        h: ``(C, T)``, clipped to [0, 1] here.
        returns: ``Released`` with ``value`` ``(C, T)`` float32, not clipped again.
    """

    def __init__(self, epsilon: float, channels: int):
        self.epsilon = positive("epsilon", epsilon, NO_BASELINE)
        self.channels = count("channels", channels)
        self.scale(1)

    def scale(self, num_frames: int) -> float:
        """Laplace scale of every entry of an utterance of ``num_frames`` frames."""
        diameter = clip.unit_box_l1_diameter(self.channels, count("num_frames", num_frames))
        return scale_in_range("epsilon", above(diameter / self.epsilon))

    def clip(self, h: Any) -> np.ndarray:
        """(C, T) -> (C, T) float64 in [0, 1]."""
        return clip.unit_box(shaped("pitch latent", h, "(C, T)", self.channels, None))

    def release(self, h: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        clipped = self.clip(h)
        noisy = noise.add_laplace(clipped, self.scale(clipped.shape[1]), 1.0)
        return Released(to_float32(noisy), self.guarantee(sampler=noise.sampler))

    def guarantee(self, sampler: str = "exact") -> Guarantee:
        return Guarantee.laplace(
            self.epsilon,
            unit="utterance",
            mechanism="pitch",
            public_side_info=("the number of frames",),
            sampler=sampler,
        )

    def train_noise(self) -> TrainNoise:
        """The same clip and noise as a fast layer for training; it promises nothing."""
        from dpanon.privacy.layers import TrainNoise

        return TrainNoise(self)

    def __repr__(self) -> str:
        return f"PitchBox(epsilon={self.epsilon:g}, channels={self.channels})"


class SpeakerGaussian:
    """Make a speaker latent mu-GDP by Gaussian noise on an L2 ball of radius U.

    Two points of the ball differ by at most ``2 * U`` in L2 (antipodes), so sigma = ``2 * U / mu``.
    The paper (DP-VOXLET) prints ``U / mu``: the distance to the null speaker, not between two
    people. ``as_published(mu, ...)`` builds that one, and its guarantee says ``2 * mu``.

    Args:
        mu: privacy parameter of one release; finite and > 0.
        radius: U, the clipping radius; finite and > 0.
        dim: entries of the latent.

    Shape:
        z: ``(M,)``; returns ``Released`` with ``value`` ``(M,)`` float32.
    """

    def __init__(self, mu: float, radius: float, dim: int):
        self.mu = positive("mu", mu, NO_BASELINE)
        self.radius = scale_in_range("radius", positive("radius", radius))
        self.dim = count("dim", dim)
        self.sigma = scale_in_range("mu", above(clip.l2_ball_diameter(self.radius) / self.mu))
        self.remark = ""

    @classmethod
    def for_budget(cls, epsilon: float, delta: float, radius: float, dim: int) -> SpeakerGaussian:
        """The least noise that is (epsilon, delta)-DP: analytic Gaussian (Balle and Wang 2018), any epsilon > 0."""
        from dpanon.privacy import accounting

        return cls(accounting.gdp_mu(epsilon, delta), radius, dim)

    @classmethod
    def as_published(cls, mu: float, radius: float, dim: int) -> SpeakerGaussian:
        """sigma = U / mu, as printed; the guarantee is the true one, 2 * mu."""
        mechanism = cls(2.0 * positive("mu", mu, NO_BASELINE), radius, dim)
        mechanism.remark = f" (as published for mu = {float(mu):g}: sigma = U / mu, so mu is twice that)"
        return mechanism

    def clip(self, z: Any) -> np.ndarray:
        """(M,) -> (M,) float64, provably in the L2 ball."""
        return clip.l2_ball(shaped("speaker latent", z, "(M,)", self.dim), self.radius)

    def release(self, z: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        noisy = noise.add_gaussian(self.clip(z), self.sigma, self.radius)
        return Released(to_float32(noisy), self.guarantee(sampler=noise.sampler))

    def guarantee(self, sampler: str = "exact") -> Guarantee:
        return Guarantee.gdp(
            self.mu,
            unit="speaker",
            adjacency="replace the speaker of one utterance by any other speaker",
            mechanism=f"speaker latent{self.remark}",
            conditional_on=("content and prosody",),
            not_covered=("what content, prosody and timing tell about the speaker",),
            sampler=sampler,
        )

    def train_noise(self) -> TrainNoise:
        """The same clip and noise as a fast layer for training; it promises nothing."""
        from dpanon.privacy.layers import TrainNoise

        return TrainNoise(self)

    def __repr__(self) -> str:
        return f"SpeakerGaussian(mu={self.mu:g}, radius={self.radius:g}, dim={self.dim})"


def above(scale: float) -> float:
    """The next float: a quotient rounded down would be a hair too little noise."""
    return math.nextafter(scale, math.inf)


def to_float32(x: np.ndarray) -> np.ndarray:
    limit = np.finfo(np.float32).max
    return np.clip(x, -limit, limit).astype(np.float32) if np.abs(x).max() > limit else x.astype(np.float32)
