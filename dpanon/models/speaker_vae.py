"""Variational auto-encoder of speaker embeddings with a latent of few dimensions (paper B).

    embedding x (D) -> 512, 256, 64, GELU -> mean (M), log variance (M)       sampled in training only
    [L2 ball of radius U, Gaussian noise: dpanon.privacy] -> clamp to [-c, c] -> 64, 256, 512 -> x' (D)

A release takes the deterministic mean: noise of the posterior would be unaccounted, and is not needed. The clamp comes
after the noise and is post-processing: it keeps what is far out in the space where the decoder was trained.
Widths as in the published code (uvm-plaid/dpvc); paper and code choose U = c = 10 for 6 dimensions, here they are
measured on public embeddings.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dpanon.models.gender_autoencoder import rms


@dataclass(frozen=True)
class SpeakerVaeConfig:
    """Sizes of the auto-encoder."""

    dim: int = 192  # of the embedding: 192 (CAM++, ECAPA) or 256 (GE2E)
    latent: int = 6
    widths: tuple[int, ...] = (512, 256, 64)


class SpeakerVae(nn.Module):
    """``radius`` is U, ``clamp`` is c; both are measured on public embeddings after training and frozen."""

    radius: Tensor
    clamp: Tensor

    def __init__(self, config: SpeakerVaeConfig):
        super().__init__()
        self.config = config
        sizes = (config.dim, *config.widths)
        self.encoder = _layers(sizes, 2 * config.latent)
        self.decoder = _layers((config.latent, *config.widths[::-1]), config.dim)
        self.register_buffer("radius", torch.tensor(float("nan")))
        self.register_buffer("clamp", torch.tensor(float("nan")))

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(N, D) -> mean (N, M), log variance (N, M). Only the direction of x counts."""
        mean, log_variance = self.encoder(x / rms(x)).chunk(2, dim=-1)
        return mean, log_variance.clamp(-12.0, 6.0)

    def encode(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, M), the posterior's mean, before the clip; the same whenever it is called."""
        return self.posterior(x)[0]

    def decode(self, z: Tensor) -> Tensor:
        """(N, M), noised -> (N, D) of about unit root mean square; its length means nothing."""
        return self.decode_raw(torch.maximum(torch.minimum(z, self.clamp), -self.clamp))

    def decode_raw(self, z: Tensor) -> Tensor:
        """The same without the clamp, for training, where c is not known yet."""
        return self.decoder(z)


def _layers(sizes: tuple[int, ...], last: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size, after in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(size, after), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], last))
