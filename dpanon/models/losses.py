"""Training losses that more than one network uses."""

import torch
from torch import Tensor
from torch.nn import functional

from dpanon.train import parallel


def correlation_loss(estimate: Tensor, reference: Tensor, weight: Tensor | None = None) -> Tensor:
    """1 - Pearson correlation along the last axis, averaged over the rest (paper A, pitch auto-encoder).

    Shape: ``(N, T), (N, T) -> ()``; ``weight`` (N, T) >= 0 selects frames, such as the voiced ones.
    """
    weight = torch.ones_like(reference) if weight is None else weight
    total = weight.sum(-1, keepdim=True).clamp_min(1e-6)
    a = estimate - (weight * estimate).sum(-1, keepdim=True) / total
    b = reference - (weight * reference).sum(-1, keepdim=True) / total
    covariance = (weight * a * b).sum(-1)
    scale = ((weight * a * a).sum(-1) * (weight * b * b).sum(-1)).clamp_min(1e-9).sqrt()
    return (1 - covariance / scale).mean()


class StftLoss(torch.nn.Module):
    """Multi-resolution spectral loss: log-magnitude and magnitude differences (Yamamoto et al. 2020).

    Shape: ``(N, L), (N, L) -> ()``.
    """

    def __init__(self, sizes: tuple[int, ...] = (512, 1024, 256), floor: float = 1e-3):
        super().__init__()
        self.sizes, self.floor = sizes, floor
        for size in sizes:
            self.register_buffer(f"window{size}", torch.hann_window(size), persistent=False)

    def forward(self, estimate: Tensor, reference: Tensor) -> Tensor:
        loss = estimate.new_zeros(())
        for size in self.sizes:
            a, b = self._magnitude(estimate, size), self._magnitude(reference, size)
            scale = b.norm(dim=(1, 2)).mean()  # of the batch: a silent crop has no scale
            parallel.average([scale])  # of the whole one, so that the loss is a mean over recordings
            convergence = (a - b).norm(dim=(1, 2)).mean() / scale.clamp_min(1e-3)
            log = (torch.log(a + self.floor) - torch.log(b + self.floor)).abs().mean()
            loss = loss + convergence + log
        return loss / len(self.sizes)

    def _magnitude(self, x: Tensor, size: int) -> Tensor:
        window = getattr(self, f"window{size}")
        spec = torch.stft(x, size, size // 4, window=window, return_complex=True)
        return torch.sqrt(spec.real**2 + spec.imag**2 + 1e-9)


def cosine_loss(estimate: Tensor, reference: Tensor) -> Tensor:
    """1 - cosine similarity along the last axis, averaged."""
    return 1 - functional.cosine_similarity(estimate, reference, dim=-1).mean()
