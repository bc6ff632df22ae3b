"""Speaker embeddings hidden by Laplace noise (paper C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpanon.privacy import clip
from dpanon.privacy.checks import count, positive, scale_in_range, shaped
from dpanon.privacy.guarantee import Guarantee
from dpanon.privacy.mechanisms import NO_BASELINE, Released, above, to_float32
from dpanon.privacy.sampling import NoiseSource, SystemNoise

if TYPE_CHECKING:
    from dpanon.privacy.layers import TrainNoise


class ClippedLatent:
    """Make the latent of an embedding epsilon-DP by Laplace noise on an L1 ball of radius C.

    ``z / max(1, |z|_1 / C)``; two points of the ball differ by at most ``2 C`` in L1 (antipodes, and any two of
    disjoint support), so the scale is ``2 C / epsilon`` per entry. C comes from public data and is frozen: a norm from
    the batch would tell about its members. (Differentially private adversarial auto-encoder, section 3.)

    Args:
        epsilon: privacy loss of one embedding; finite and > 0.
        radius: C, e.g. the median L1 norm of public latents.
        dim: entries of the latent.

    Shape:
        z: ``(M,)``; returns ``Released`` with ``value`` ``(M,)`` float32.
    """

    def __init__(self, epsilon: float, radius: float, dim: int):
        self.epsilon = positive("epsilon", epsilon, NO_BASELINE)
        self.radius = scale_in_range("radius", positive("radius", radius))
        self.dim = count("dim", dim)
        self.scale = scale_in_range("epsilon", above(clip.l1_ball_diameter(self.radius) / self.epsilon))

    def clip(self, z: Any) -> np.ndarray:
        """(M,) -> (M,) float64, provably in the L1 ball."""
        return clip.l1_ball(shaped("latent", z, "(M,)", self.dim), self.radius)

    def release(self, z: Any, noise: NoiseSource | None = None) -> Released:
        noise = SystemNoise() if noise is None else noise
        noisy = noise.add_laplace(self.clip(z), self.scale, self.radius)
        return Released(to_float32(noisy), self.guarantee(noise.sampler))

    def guarantee(self, sampler: str = "exact") -> Guarantee:
        return Guarantee.laplace(
            self.epsilon,
            "utterance",
            adjacency="replace the speaker embedding of one utterance by any other",
            mechanism="speaker embedding",
            not_covered=("everything but the embedding: the speech it was taken from stays private only if kept",),
            sampler=sampler,
        )

    def train_noise(self) -> TrainNoise:
        """The same clip and noise as a fast layer for training; it promises nothing."""
        from dpanon.privacy.layers import TrainNoise

        return TrainNoise(self)

    def __repr__(self) -> str:
        return f"ClippedLatent(epsilon={self.epsilon:g}, radius={self.radius:g}, dim={self.dim})"
