"""Acoustic model of speech synthesis (paper A, section 3): content, f0 and x-vector -> log-mel spectrum at 10 ms.

The paper has an autoregressive network here; this one is the frame-rate half of our synthesizer, so that it runs on
parts of an utterance and has no output that it depends on again.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.synth.harmonic import SHIFT, FrameConfig, FrameNetwork

NUM_MEL = 80
FFT, WINDOW = 1024, 640  # samples: 40 ms in an FFT that leaves no mel filter empty
FLOOR = 1e-3  # of a mel magnitude: about 60 dB below speech at its level
_MEAN, _DEVIATION = -3.0, 2.0  # about those of log-mel spectra of speech


@dataclass(frozen=True)
class AcousticConfig(FrameConfig):
    """Sizes of the acoustic model."""


class AcousticModel(FrameNetwork):
    """See the module.

    Shape:
        content ``(N, ceil(T/2), D)``, f0 ``(N, T)`` Hz > 0, x-vector ``(N, S)``.
        returns: ``(N, T, 80)``, as ``LogMel`` has it.
    """

    def __init__(self, config: AcousticConfig):
        c = config
        super().__init__(c.content, c.xvector, c.channels, c.expansion, c.slow_blocks, c.fast_blocks)
        self.config = c
        self.mel = nn.Linear(c.channels, NUM_MEL)

    def forward(self, content: Tensor, f0: Tensor, xvector: Tensor) -> Tensor:
        return _MEAN + _DEVIATION * self.mel(self.frames(content, f0, xvector))


class LogMel(nn.Module):
    """Log-mel magnitudes of samples, frames centred on the middle of their 10 ms. (N, 160 T) -> (N, T, 80)"""

    window: Tensor
    bank: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(WINDOW), persistent=False)
        self.register_buffer("bank", mel_bank(FFT // 2 + 1, NUM_MEL), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.pad(x, (FFT // 2 - SHIFT // 2,) * 2)
        spec = torch.stft(
            x, FFT, SHIFT, win_length=WINDOW, window=self.window, center=False, return_complex=True
        )  # (N, bins, T)
        magnitude = torch.sqrt(spec.real**2 + spec.imag**2 + 1e-9)
        return torch.log(self.bank @ magnitude + FLOOR).transpose(1, 2)  # (N, 80, T) -> (N, T, 80)


def normalised(mel: Tensor) -> Tensor:
    """Log-mel of about mean 0 and deviation 1, as networks take it."""
    return (mel - _MEAN) / _DEVIATION


def mel_bank(bins: int, num_mel: int, low: float = 20.0, high: float = 8000.0) -> Tensor:
    """Triangular filters that sum their band. (num_mel, bins)"""

    def mel(hz: Tensor) -> Tensor:
        return 1127.0 * torch.log1p(hz / 700.0)

    edges = torch.linspace(float(mel(torch.tensor(low))), float(mel(torch.tensor(high))), num_mel + 2)
    at = mel(torch.linspace(0, 8000.0, bins))
    up = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(up, down).clamp_min(0.0)
