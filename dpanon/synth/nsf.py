"""Neural source-filter synthesizer: dilated convolutions shape sines and noise into speech (Wang et al. 2019).

    log-mel, f0, x-vector -> condition at 10 ms ------------------\
                      f0 -> sines -> gain -> filter blocks -------- + -> samples
                            noise -> gain -> filter block --------/

It is the harmonic-plus-noise kind of the paper. Where the paper has a recurrent condition network there are
convolutions, so that parts of an utterance can be made; where it has fixed filters chosen by a voicing flag, the
condition gives each branch a gain of every frame.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.models.acoustic import NUM_MEL, AcousticConfig, normalised
from dpanon.synth.harmonic import SHIFT, Block
from dpanon.synth.vocoder import SineSource, Vocoder

_SPEAKER = 64
_QUIET = -3.0  # nepers that the source has at the start
_SHARE = 0.01  # of what a block adds: a constant in it costs much at the lowest frequencies, so steps have to be small


@dataclass(frozen=True)
class NsfConfig:
    """Sizes; those of the paper by default."""

    acoustic: AcousticConfig = field(default_factory=AcousticConfig)
    harmonics: int = 8
    condition: int = 64  # channels at 10 ms
    condition_blocks: int = 2
    channels: int = 64  # of a filter block
    blocks: int = 5  # of the harmonic branch; the noise has one
    layers: int = 10  # of a block, dilated by 1, 2, 4, ...


class FilterBlock(nn.Module):
    """Dilated convolutions with a bypass, steered by the condition. (N, 1, 160 T), (N, C, T) -> (N, 1, 160 T)"""

    def __init__(self, channels: int, layers: int, condition: int):
        super().__init__()
        self.expand = nn.Conv1d(1, channels, 1)
        self.steer = nn.Conv1d(condition, channels, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, channels, 3, dilation=2**k, padding=2**k) for k in range(layers)
        )
        self.contract = nn.Conv1d(channels, 1, 1, bias=False)
        nn.init.normal_(self.contract.weight, std=0.1)

    def forward(self, signal: Tensor, condition: Tensor) -> Tensor:
        steer = self.steer(condition)[..., None]  # (N, channels, T, 1), the same for all samples of a frame
        x = self.expand(signal)
        for layer in self.layers:
            y = layer(x).unflatten(2, (-1, SHIFT)) + steer
            x = x + torch.tanh(y).flatten(2)
        return signal + _SHARE * self.contract(x)


class Nsf(Vocoder):
    """See the module."""

    def __init__(self, config: NsfConfig):
        super().__init__(config.acoustic)
        self.config = c = config
        self.source = SineSource(c.harmonics)
        self.speaker = nn.Sequential(nn.Linear(c.acoustic.xvector, _SPEAKER), nn.GELU(), nn.Linear(_SPEAKER, _SPEAKER))
        self.condition_in = nn.Conv1d(NUM_MEL + 1, c.condition, 3, padding=1)
        self.condition = nn.ModuleList(Block(c.condition, 2, _SPEAKER) for _ in range(c.condition_blocks))
        self.gains = nn.Conv1d(c.condition, 2, 1)
        nn.init.zeros_(self.gains.weight)
        self.harmonic = nn.ModuleList(FilterBlock(c.channels, c.layers, c.condition) for _ in range(c.blocks))
        self.noise = FilterBlock(c.channels, c.layers, c.condition)

    @property
    def reach(self) -> int:
        samples = self.config.blocks * (2**self.config.layers - 1)
        return 1 + 3 * self.config.condition_blocks + 1 + -(-samples // SHIFT)

    def wave(self, mel: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor | None = None) -> Tensor:
        speaker = self.speaker(xvector * 8)
        log_f0 = (torch.log(f0) - 5.0)[:, None]
        condition = self.condition_in(torch.cat([normalised(mel).transpose(1, 2), log_f0], 1))  # (N, T, M) -> (N, M, T)
        for block in self.condition:
            condition = block(condition, speaker)
        gains = functional.pad(torch.exp((self.gains(condition) + _QUIET).clamp(-10, 5)), (1, 1), mode="replicate")
        gains = functional.interpolate(gains, scale_factor=SHIFT, mode="linear")[..., SHIFT:-SHIFT]
        harmonic, noise = (self.source(f0, phase) * gains).chunk(2, 1)
        for block in self.harmonic:
            harmonic = block(harmonic, condition)
        return (harmonic + self.noise(noise, condition))[:, 0]
