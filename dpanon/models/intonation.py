"""The intonation that content lets expect: what is said and how, without its pitch, still tells much of the contour.

    content (T/2, 256) -> dilated convolutions -> contour (T)

It reads released content only, so that what it says is post-processing and costs no budget of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.models.bottleneck import ChannelNorm

COEFFICIENTS = 24  # of a contour whose errors are known: at least the ranks that LowRankPitch is used with


@dataclass(frozen=True)
class IntonationConfig:
    """Sizes of the network."""

    content: int = 256
    hidden: int = 96
    kernel: int = 5  # content frames of 20 ms
    dilations: tuple[int, ...] = (1, 2, 4, 8, 16)
    dropout: float = 0.2  # in training

    def __post_init__(self):
        if self.kernel % 2 == 0 or not 0 <= self.dropout < 1:
            raise ValueError("kernel must be odd, dropout in [0, 1)")


class Intonation(nn.Module):
    """Contours are log f0 in the deviations of an utterance around its mean; the less content tells, the flatter."""

    errors: Tensor

    def __init__(self, config: IntonationConfig):
        super().__init__()
        self.config = c = config
        self.input = nn.Conv1d(c.content, c.hidden, c.kernel, padding=c.kernel // 2)
        self.layers = nn.ModuleList(
            nn.Conv1d(c.hidden, c.hidden, c.kernel, dilation=d, padding=d * (c.kernel // 2)) for d in c.dilations
        )
        self.norms = nn.ModuleList(ChannelNorm(c.hidden) for _ in range(len(c.dilations) + 1))
        self.output = nn.Conv1d(c.hidden, 1, 1)
        self.dropout = nn.Dropout(c.dropout)
        # mean square error (robust) of each slow coefficient of a contour (LowRankPitch), measured on held-out speech
        self.register_buffer("errors", torch.ones(COEFFICIENTS))

    @property
    def context(self) -> int:
        """Frames of 10 ms on either side that a value depends on."""
        return 2 * (self.config.kernel // 2) * (1 + sum(self.config.dilations)) + 2

    def forward(self, content: Tensor) -> Tensor:
        """(N, T/2, content) -> (N, T), one value each 10 ms"""
        x = self.norms[0](functional.relu(self.input(content.transpose(1, 2))))
        for layer, norm in zip(self.layers, self.norms[1:], strict=True):
            x = x + self.dropout(norm(functional.relu(layer(x))))
        # a content frame tells its first 10 ms, the mean of it and the next one what is between
        x = self.output(x)  # (N, 1, T/2)
        following = torch.cat([x[..., 1:], x[..., -1:]], 2)
        return torch.stack([x, (x + following) / 2], 3).flatten(1)
