"""Harmonic-plus-noise synthesizer: a pulse train at f0 and white noise through filters that a network draws per frame.

The network works at frame rate only, so that it trains and runs on a CPU. Which part of a frame is
harmonic, how loud it is and which spectrum it has all come from the content; there is no voicing flag
and no energy to protect. The filters are minimum-phase, as those of a vocal tract nearly are.
(The idea of a source with learned time-varying filters: Wang et al. 2019, NSF; Engel et al. 2020, DDSP.)
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

SHIFT = 160
SAMPLE_RATE = 16000


@dataclass(frozen=True)
class FrameConfig:
    """Sizes of the network at frame rate."""

    content: int = 256
    xvector: int = 192
    channels: int = 256
    expansion: int = 2
    slow_blocks: int = 4  # at 20 ms
    fast_blocks: int = 3  # at 10 ms


@dataclass(frozen=True)
class HarmonicConfig(FrameConfig):
    """Sizes of the synthesizer."""

    fft: int = 512


class Block(nn.Module):
    """ConvNeXt block whose normalisation is steered by the speaker. (N, C, T), (N, S) -> (N, C, T)"""

    def __init__(self, channels: int, expansion: int, speaker: int, kernel: int = 7):
        super().__init__()
        self.depthwise = nn.Conv1d(channels, channels, kernel, padding=kernel // 2, groups=channels)
        self.norm = nn.LayerNorm(channels, elementwise_affine=False)
        self.steer = nn.Linear(speaker, 2 * channels)
        self.expand = nn.Linear(channels, expansion * channels)
        self.contract = nn.Linear(expansion * channels, channels)
        self.scale = nn.Parameter(torch.full((channels,), 0.2))
        nn.init.zeros_(self.steer.weight)
        nn.init.zeros_(self.steer.bias)

    def forward(self, x: Tensor, speaker: Tensor) -> Tensor:
        gain, shift = self.steer(speaker)[:, None].chunk(2, -1)  # (N, 1, C) each
        y = self.norm(self.depthwise(x).transpose(1, 2)) * (1 + gain) + shift  # (N, C, T) -> (N, T, C)
        y = self.contract(functional.gelu(self.expand(y))) * self.scale
        return x + y.transpose(1, 2)


class FrameNetwork(nn.Module):
    """Content, f0 and x-vector -> features of every frame of 10 ms: slow blocks at 20 ms, then fast ones."""

    def __init__(self, content: int, xvector: int, channels: int, expansion: int, slow_blocks: int, fast_blocks: int):
        super().__init__()
        self.speaker = nn.Sequential(nn.Linear(xvector, 128), nn.GELU(), nn.Linear(128, 128))
        self.content = nn.Conv1d(content, channels, 3, padding=1)
        self.slow = nn.ModuleList(Block(channels, expansion, 128) for _ in range(slow_blocks))
        self.pitch = nn.Conv1d(2, channels, 3, padding=1)
        self.up = nn.Conv1d(channels, channels, 3, padding=1)
        self.fast = nn.ModuleList(Block(channels, expansion, 128) for _ in range(fast_blocks))
        self.norm = nn.LayerNorm(channels)

    @property
    def reach(self) -> int:
        """Frames of 10 ms on either side that one frame depends on."""
        return 2 * (3 * len(self.slow) + 1) + 3 * len(self.fast) + 2

    def frames(self, content: Tensor, f0: Tensor, xvector: Tensor) -> Tensor:
        """content (N, ceil(T/2), D), f0 (N, T) Hz, x-vector (N, S) -> (N, T, C), normalised"""
        num = f0.shape[1]
        speaker = self.speaker(xvector * 8)
        x = self.content(content.transpose(1, 2))  # (N, T/2, D) -> (N, C, T/2)
        for block in self.slow:
            x = block(x, speaker)
        x = self.up(x.repeat_interleave(2, 2)[:, :, :num])
        log_f0 = torch.log(f0) - 5.0
        x = x + self.pitch(torch.stack([log_f0, torch.sin(3 * log_f0)], 1))
        for block in self.fast:
            x = block(x, speaker)
        return self.norm(x.transpose(1, 2))  # (N, C, T) -> (N, T, C)


class HarmonicNoise(FrameNetwork):
    """See the module. Runs on parts of an utterance when they overlap by ``context`` frames."""

    window: Tensor

    def __init__(self, config: HarmonicConfig):
        c = config
        super().__init__(c.content, c.xvector, c.channels, c.expansion, c.slow_blocks, c.fast_blocks)
        self.config = c
        self.bins = c.fft // 2 + 1
        self.filters = nn.Linear(c.channels, 2 * self.bins)
        nn.init.normal_(self.filters.weight, std=0.01)
        nn.init.constant_(self.filters.bias, -4.0)
        self.register_buffer("window", torch.hann_window(c.fft), persistent=False)

    @property
    def context(self) -> int:
        return self.reach + 4

    def envelopes(self, content: Tensor, f0: Tensor, xvector: Tensor) -> tuple[Tensor, Tensor]:
        """Log magnitudes of the harmonic and of the noise filter, (N, bins, T) each."""
        x = self.filters(self.frames(content, f0, xvector)).transpose(1, 2)  # (N, T, 2 bins) -> (N, 2 bins, T)
        harmonic, noise = x.clamp(-14, 6).chunk(2, 1)
        return harmonic, noise

    def forward(self, content: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor | None = None) -> Tensor:
        """See ``Synthesizer``. ``phase`` (N,) in cycles is where the pulse train starts."""
        harmonic, noise = self.envelopes(content, f0, xvector)
        pulses = pulse_train(f0, phase)
        hiss = torch.randn_like(pulses)  # excitation of unvoiced sounds, no privacy noise
        spec = self._stft(pulses) * minimum_phase(harmonic) + self._stft(hiss) * torch.exp(noise)
        return self._istft(spec, pulses.shape[1])

    def _stft(self, x: Tensor) -> Tensor:
        """(N, 160 T) -> (N, bins, T), frames centred on the middle of their 10 ms"""
        half = self.config.fft // 2
        x = functional.pad(x, (half - SHIFT // 2, half - SHIFT // 2))
        return torch.stft(x, self.config.fft, SHIFT, window=self.window, center=False, return_complex=True)

    def _istft(self, spec: Tensor, length: int) -> Tensor:
        half = self.config.fft // 2
        frames = torch.fft.irfft(spec, dim=1) * self.window[:, None]  # (N, fft, T)
        total = (frames.shape[2] - 1) * SHIFT + self.config.fft

        def add(y: Tensor) -> Tensor:
            return functional.fold(y, (1, total), (1, self.config.fft), stride=(1, SHIFT))[:, 0, 0]

        weight = add((self.window**2)[None, :, None].expand(1, -1, frames.shape[2]))
        start = half - SHIFT // 2
        return (add(frames) / weight.clamp_min(1e-3))[:, start : start + length]


def phases(f0: Tensor, phase: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """f0 (N, T) Hz -> f0 of every sample and its phase in cycles within [-1/2, 1/2], (N, 160 T) float64 each.

    ``phase`` (N,) in cycles is where it starts.
    """
    wide = functional.pad(f0[:, None], (1, 1), mode="replicate")
    per_sample = functional.interpolate(wide, scale_factor=SHIFT, mode="linear")[:, 0, SHIFT:-SHIFT].double()
    cycles = torch.cumsum(per_sample / SAMPLE_RATE, 1) + (0 if phase is None else phase[:, None])
    return per_sample, cycles - torch.round(cycles)


def pulse_train(f0: Tensor, phase: Tensor | None = None) -> Tensor:
    """Band-limited pulses, all harmonics below 8 kHz with equal amplitude. f0 (N, T) Hz -> (N, 160 T)

    The sum of H cosines has a closed form (the Dirichlet kernel); scaled to the power of white noise.
    """
    per_sample, cycles = phases(f0, phase)
    count = torch.floor(0.95 * SAMPLE_RATE / 2 / per_sample)
    half_angle = torch.pi * cycles
    small = half_angle.abs() < 1e-6
    safe = torch.where(small, torch.ones_like(half_angle), half_angle)
    kernel = torch.where(small, 2 * count + 1, torch.sin((2 * count + 1) * safe) / torch.sin(safe))
    return ((kernel - 1) / torch.sqrt(2 * count)).to(f0.dtype)


def minimum_phase(log_magnitude: Tensor) -> Tensor:
    """The causal filter of that magnitude, by its folded cepstrum. (N, bins, T) real -> complex"""
    fft = 2 * (log_magnitude.shape[1] - 1)
    cepstrum = torch.fft.irfft(log_magnitude, n=fft, dim=1)
    fold = log_magnitude.new_zeros(fft)
    fold[0] = fold[fft // 2] = 1.0
    fold[1 : fft // 2] = 2.0
    return torch.exp(torch.fft.rfft(cepstrum * fold[:, None], dim=1))
