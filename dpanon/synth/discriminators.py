"""Small multi-resolution spectrogram discriminators, for the end of a synthesizer's training (Jang et al. 2021)."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class SpectrogramJudge(nn.Module):
    """Says of every patch of a log spectrogram whether it is real; also gives its inner features."""

    window: Tensor

    def __init__(self, fft: int, channels: int = 16):
        super().__init__()
        self.fft = fft
        self.register_buffer("window", torch.hann_window(fft), persistent=False)
        sizes = [(1, channels), (channels, channels), (channels, 2 * channels), (2 * channels, 2 * channels)]
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(
                nn.Conv2d(
                    i, o, (7, 3) if k == 0 else (5, 3), (2, 1) if k == 0 else (2, 2), ((3, 1) if k == 0 else (2, 1))
                )
            )
            for k, (i, o) in enumerate(sizes)
        )
        self.last = nn.Conv2d(2 * channels, 1, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        spec = torch.stft(x, self.fft, self.fft // 4, window=self.window, return_complex=True)
        y = torch.log(torch.sqrt(spec.real**2 + spec.imag**2 + 1e-9) + 1e-3)[:, None]
        features = []
        for layer in self.layers:
            y = functional.leaky_relu(layer(y), 0.1)
            features.append(y)
        return self.last(y), features


class Discriminators(nn.Module):
    def __init__(self, sizes: tuple[int, ...] = (1024, 512, 256)):
        super().__init__()
        self.judges = nn.ModuleList(SpectrogramJudge(size) for size in sizes)

    def forward(self, x: Tensor) -> list[tuple[Tensor, list[Tensor]]]:
        return [judge(x) for judge in self.judges]


def discriminator_loss(judges: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """Least squares: 1 for real, 0 for made; the mean over judges."""
    pairs = list(zip(judges(real), judges(fake), strict=True))
    loss = real.new_zeros(())
    for (r, _), (f, _) in pairs:
        loss = loss + ((r - 1) ** 2).mean() + (f**2).mean()
    return loss / len(pairs)


def generator_loss(judges: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """Pass for real, with the same inner features; the mean over judges."""
    loss = real.new_zeros(())
    with torch.no_grad():
        targets = judges(real)
    for (_, features), (f, made) in zip(targets, judges(fake), strict=True):
        matching = sum(functional.l1_loss(a, b) for a, b in zip(made, features, strict=True))
        loss = loss + ((f - 1) ** 2).mean() + 2 * matching / len(features)
    return loss / len(targets)
