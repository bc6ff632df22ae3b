"""Pitch auto-encoder of paper A: 3 convolutions to a sigmoid latent, noise, clip, 3 convolutions back.

    log f0 (T) -> encode -> h (C, T) in [0, 1] -> [noise: dpanon.privacy] -> decode -> contour (T)

The paper leaves C, the kernels and the optimiser open; those here are our choice.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class PitchAutoencoderConfig:
    """Sizes of the auto-encoder."""

    channels: int = 4  # C in the paper
    kernel: int = 15  # frames


class PitchAutoencoder(nn.Module):
    """Input and output are contours: interpolated log f0, zero mean and unit deviation over voiced frames."""

    gain_scales: Tensor
    gains: Tensor

    def __init__(self, config: PitchAutoencoderConfig):
        super().__init__()
        self.config = config
        c, k = config.channels, config.kernel
        self.encoder = nn.ModuleList(nn.Conv1d(i, c, k, padding=k // 2) for i in (1, c, c))
        self.decoder = nn.ModuleList(nn.Conv1d(c, o, k, padding=k // 2) for o in (c, c, 1))
        # how far a contour that was decoded through Laplace noise of a scale can be trusted:
        # least-squares gain to the true one, measured on the training set after training
        self.register_buffer("gain_scales", torch.tensor([0.0, 1e6]))
        self.register_buffer("gains", torch.tensor([1.0, 0.0]))

    def encode(self, contour: Tensor) -> Tensor:
        """(N, T) -> h (N, C, T) in [0, 1]"""
        x = contour[:, None]
        for layer in self.encoder:
            x = torch.sigmoid(layer(x))
        return x

    def decode_raw(self, h: Tensor) -> Tensor:
        """Noised h (N, C, T) -> (N, T), of arbitrary mean and scale: the training loss is a correlation."""
        x = h.clamp(0.0, 1.0) - 0.5
        for layer in self.decoder[:-1]:
            x = torch.sigmoid(layer(x)) - 0.5
        return self.decoder[-1](x)[:, 0]

    def decode(self, h: Tensor, scale: float) -> Tensor:
        """Noised h (N, C, T) -> contour (N, T) of zero mean, in units of a speaker's deviation of log f0.

        ``scale`` is that of the noise in h. The more noise, the flatter the contour: the best estimate
        under squared error, where the paper's correlation loss leaves the size open.
        """
        x = self.decode_raw(h)
        x = x - x.mean(1, keepdim=True)
        return self.gain(scale) * x / x.std(1, keepdim=True).clamp_min(1e-4)

    def gain(self, scale: float) -> float:
        """Interpolated on the measured table, in log scale."""
        at = torch.log(torch.tensor(scale) + 1e-3)
        known = torch.log(self.gain_scales + 1e-3)
        i = int(torch.searchsorted(known, at).clamp(1, len(known) - 1))
        weight = float(((at - known[i - 1]) / (known[i] - known[i - 1])).clamp(0, 1))
        return float((1 - weight) * self.gains[i - 1] + weight * self.gains[i])
