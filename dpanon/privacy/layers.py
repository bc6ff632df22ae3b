"""Mechanisms as torch modules: ``TrainNoise`` promises nothing, ``ReleaseNoise`` mints guarantees.

They are two classes, not two modes of one: ``train()`` and ``eval()`` change neither, and neither
has an off switch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import Guarantee
from dpanon.privacy.latent import ClippedLatent
from dpanon.privacy.mechanisms import BottleneckFrames, PitchBox, SpeakerGaussian
from dpanon.privacy.pitch import PitchGaussian
from dpanon.privacy.sampling import NoiseSource, SystemNoise

Mechanism = BottleneckFrames | PitchBox | PitchGaussian | SpeakerGaussian | ClippedLatent
VECTORS = (SpeakerGaussian, ClippedLatent)  # one (M,) per utterance
TINY = 2.0**-100


class TrainNoise(nn.Module):
    """The clip and noise of a mechanism for training: fast, seedable, differentiable, worth nothing.

    torch's float32 noise from torch's generator; a release with it betrays its input. Gradients
    pass through the projection and straight through the noise. float32 inside, even under autocast.

    Shape:
        bottleneck frames: ``(N, T, M)`` -> ``(N, T, M)``; the scale is the same for every N and T.
        pitch box: ``(N, C, T)`` -> ``(N, C, T)``; the scale is ``C * K / epsilon`` with K = T, or
            row by row the ``num_frames`` ``(N,)`` of a padded batch; Gaussian pitch likewise, ``sqrt(C * K) / mu``.
        speaker latent, clipped latent: ``(N, M)`` -> ``(N, M)``.
    """

    guarantee = Guarantee.none("training regulariser")

    def __init__(self, mechanism: Mechanism):
        super().__init__()
        self.mechanism = mechanism

    def forward(self, x: Tensor, num_frames: Tensor | None = None) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            if isinstance(self.mechanism, BottleneckFrames):
                _check(x, "(N, T, M)", 3, 2, self.mechanism.dim)
                x = x / x.abs().sum(-1, keepdim=True).clamp_min(TINY)
                return x + self.mechanism.scale * _laplace(x)
            if isinstance(self.mechanism, PitchBox | PitchGaussian):
                _check(x, "(N, C, T)", 3, 1, self.mechanism.channels)
                length = torch.tensor(float(x.shape[2])) if num_frames is None else num_frames.to(x).view(-1, 1, 1)
                entries, x = self.mechanism.channels * length, x.clamp(0.0, 1.0)
                if isinstance(self.mechanism, PitchBox):
                    return x + entries / self.mechanism.epsilon * _laplace(x)
                return x + entries.sqrt() / self.mechanism.mu * torch.randn_like(x)
            _check(x, "(N, M)", 2, 1, self.mechanism.dim)
            if isinstance(self.mechanism, ClippedLatent):
                norm = x.abs().sum(-1, keepdim=True)
                x = x * (self.mechanism.radius / norm.clamp_min(self.mechanism.radius))
                return x + self.mechanism.scale * _laplace(x)
            norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            x = x * (self.mechanism.radius / norm.clamp_min(self.mechanism.radius))
            return x + self.mechanism.sigma * torch.randn_like(x)

    def extra_repr(self) -> str:
        return f"{self.mechanism!r}, no guarantee"


@dataclass(frozen=True)
class ReleasedBatch:
    """A noisy batch (float32 tensor on the input's device) and what each utterance in it is promised."""

    value: Tensor
    guarantee: Guarantee


class ReleaseNoise(nn.Module):
    """A mechanism as a module: clips and noises every row of a batch, padding included, on the CPU.

    Every utterance of the batch has the whole (padded) length as its K, so K is public; mask after.

    Shape: as ``TrainNoise``; returns ``ReleasedBatch``, detached from the graph.
    """

    def __init__(self, mechanism: Mechanism):
        super().__init__()
        self.mechanism = mechanism

    def forward(self, x: Tensor, noise: NoiseSource | None = None) -> ReleasedBatch:
        if not isinstance(x, Tensor) or x.ndim != (2 if isinstance(self.mechanism, VECTORS) else 3):
            shape = tuple(getattr(x, "shape", ()))
            raise PrivacyError(f"{self.mechanism!r} releases a batch of utterances, got shape {shape}")
        if len(x) == 0:
            raise PrivacyError("the batch is empty: there is nothing to release")
        noise = SystemNoise() if noise is None else noise
        rows = [self.mechanism.release(row, noise) for row in x.detach()]
        value = torch.from_numpy(np.stack([row.value for row in rows]))
        return ReleasedBatch(value.to(x.device), rows[0].guarantee)

    def extra_repr(self) -> str:
        return repr(self.mechanism)


def require_eval(model: nn.Module) -> None:
    """Refuse a model whose output for one utterance depends on the others in the batch.

    Batch normalisation in training mode does: one user then moves everybody's features, and no
    sensitivity of one user's clip bounds that.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and (module.training or not module.track_running_stats):
            raise PrivacyError(f"{name or 'the model'} normalises over the batch: call .eval() before a release")


def _check(x: Tensor, axes: str, ndim: int, axis: int, size: int) -> None:
    if x.ndim != ndim or x.shape[axis] != size:
        raise PrivacyError(f"input must have shape {axes} with {size} on axis {axis}, got {tuple(x.shape)}")


def _laplace(like: Tensor) -> Tensor:
    """Lap(1) of the shape of ``like``: the difference of two unit exponentials."""
    return torch.empty_like(like).exponential_() - torch.empty_like(like).exponential_()
