"""Auto-encoder of speaker embeddings that hides the speaker's sex (paper C).

    embedding x (D) -> FC, ReLU, batch norm -> z (M) -> [L1 clip, Laplace noise: dpanon.privacy] -> FC, tanh -> x'

Batch norm uses the statistics of training when it is in eval mode, and only then is z of one person independent of the
others in a batch: ``dpanon.privacy.require_eval`` refuses anything else for a release.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class GenderAutoencoderConfig:
    """Sizes as in the paper, section 4."""

    dim: int = 192  # of the embedding
    latent: int = 64


class GenderAutoencoder(nn.Module):
    """``radius`` is C, the clipping threshold: the median L1 norm of the latents of public embeddings, frozen."""

    radius: Tensor

    def __init__(self, config: GenderAutoencoderConfig):
        super().__init__()
        self.config = config
        self.encoder = nn.Sequential(nn.Linear(config.dim, config.latent), nn.ReLU(), nn.BatchNorm1d(config.latent))
        self.decoder = nn.Sequential(nn.Linear(config.latent, config.dim), nn.Tanh())
        self.register_buffer("radius", torch.tensor(float("nan")))

    def encode(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, M), before the clip. Only the direction of x counts; its entries are scaled to about 1."""
        return self.encoder(x / rms(x))

    def decode(self, z: Tensor) -> Tensor:
        """(N, M) -> (N, D) of entries in (-1, 1); the loss is a cosine, so the length means nothing."""
        return self.decoder(z)


class Discriminator(nn.Module):
    """The adversary of training: two layers on the noised latent, 64 and 32 inputs, as in the paper. Gives a logit."""

    def __init__(self, latent: int = 64, hidden: int = 32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, z: Tensor) -> Tensor:
        """(N, M) -> (N,), > 0 for female"""
        return self.layers(z)[:, 0]


def rms(x: Tensor) -> Tensor:
    """Root mean square of each row, at least 1e-9. (N, D) -> (N, 1)"""
    return x.square().mean(-1, keepdim=True).sqrt().clamp_min(1e-9)
