"""HiFi-GAN with a source module: at every stage of its upsampling the generator is given sines at f0, and noise.

Generator and discriminators are SpeechBrain's (optional extra ``speechbrain``; Kong et al. 2020). The source is that of
the neural source-filter model, brought to the rate of each stage by a strided convolution.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.errors import MissingDependencyError
from dpanon.models.acoustic import NUM_MEL, AcousticConfig, normalised
from dpanon.synth.harmonic import SHIFT
from dpanon.synth.vocoder import SineSource, Vocoder

_SPEAKER = 64
_SLOPE = 0.1  # of the leaky rectifiers, as SpeechBrain has it
_INPUT_KERNEL = _OUTPUT_KERNEL = 7  # of SpeechBrain's first and last layer
_INSTALL = "the synthesizer hifigan needs SpeechBrain: pip install 'dpanon[speechbrain]'"


@dataclass(frozen=True)
class HifiganConfig:
    """Sizes; V1 of the paper by default, with 160 samples for a frame."""

    acoustic: AcousticConfig = field(default_factory=AcousticConfig)
    harmonics: int = 8
    channels: int = 512  # before the first upsampling; each halves them
    factors: tuple[int, ...] = (5, 4, 4, 2)  # of the upsamplings
    kernels: tuple[int, ...] = (11, 8, 8, 4)
    block_kernels: tuple[int, ...] = (3, 7, 11)
    block_dilations: tuple[int, ...] = (1, 3, 5)

    def __post_init__(self):
        if math.prod(self.factors) != SHIFT:
            raise ValueError(f"factors give {math.prod(self.factors)} samples of a frame, not {SHIFT}")
        if len(self.kernels) != len(self.factors):
            raise ValueError(f"{len(self.kernels)} kernels for {len(self.factors)} factors")
        for kernel, factor in zip(self.kernels, self.factors, strict=True):
            if kernel < factor or (kernel - factor) % 2:
                raise ValueError(f"kernel {kernel} of factor {factor}: it has to be larger by an even number")
        if self.channels % 2 ** len(self.factors):
            raise ValueError(f"channels {self.channels} cannot be halved {len(self.factors)} times")
        if len(self.block_dilations) != 3:
            raise ValueError(f"{len(self.block_dilations)} block_dilations; a residual block has 3")


class Hifigan(Vocoder):
    """See the module.

    Raises:
        MissingDependencyError: no SpeechBrain.
    """

    def __init__(self, config: HifiganConfig):
        super().__init__(config.acoustic)
        self.config = c = config
        self.source = SineSource(c.harmonics)
        self.speaker = nn.Linear(c.acoustic.xvector, _SPEAKER)
        generator: Any = _speechbrain().HifiganGenerator(
            in_channels=NUM_MEL + 1 + _SPEAKER,
            out_channels=1,
            resblock_type="1",
            resblock_dilation_sizes=[c.block_dilations] * len(c.block_kernels),
            resblock_kernel_sizes=c.block_kernels,
            upsample_kernel_sizes=c.kernels,
            upsample_initial_channel=c.channels,
            upsample_factors=c.factors,
        )
        self.generator = generator
        self.sources = nn.ModuleList()
        for stage in range(len(c.factors)):
            stride = math.prod(c.factors[stage + 1 :])
            even = stride % 2 == 0  # twice as wide as its stride, where that can be centred
            layer = nn.Conv1d(
                2, c.channels // 2 ** (stage + 1), stride * (1 + even), stride, padding=stride // 2 if even else 0
            )
            self.sources.append(layer)

    @property
    def reach(self) -> int:
        c = self.config
        frames, rate = float(_INPUT_KERNEL // 2), 1
        widest = (max(c.block_kernels) - 1) // 2
        for kernel, factor in zip(c.kernels, c.factors, strict=True):
            frames += -(-kernel // factor) / 2 / rate
            rate *= factor
            frames += widest * sum(1 + dilation for dilation in c.block_dilations) / rate
        return math.ceil(frames + (_OUTPUT_KERNEL // 2) / rate) + 1

    @property
    def least(self) -> int:
        """Frames that reflection at the borders needs."""
        widest = (max(self.config.block_kernels) - 1) // 2 * max(self.config.block_dilations)
        return max(_INPUT_KERNEL // 2, widest // self.config.factors[0]) + 1

    def wave(self, mel: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor | None = None) -> Tensor:
        num = f0.shape[1]
        x, f0 = normalised(mel).transpose(1, 2), f0[:, None]  # (N, T, M) -> (N, M, T)
        if num < self.least:
            x, f0 = (functional.pad(y, (0, self.least - num), mode="replicate") for y in (x, f0))
        speaker = self.speaker(xvector * 8)[..., None].expand(-1, -1, x.shape[2])
        source = self.source(f0[:, 0], phase)
        x = self.generator.conv_pre(torch.cat([x, torch.log(f0) - 5.0, speaker], 1))
        blocks = len(self.config.block_kernels)
        for stage, (up, excite) in enumerate(zip(self.generator.ups, self.sources, strict=True)):
            x = up(functional.leaky_relu(x, _SLOPE)) + excite(source)
            parts = [block(x) for block in self.generator.resblocks[stage * blocks : (stage + 1) * blocks]]
            x = sum(parts) / blocks
        x = torch.tanh(self.generator.conv_post(functional.leaky_relu(x)))
        return x[:, 0, : num * SHIFT]


class HifiganDiscriminators(nn.Module):
    """SpeechBrain's five multi-period and three multi-scale discriminators, with the interface of ``Discriminators``.

    (N, L) -> of each of the 8: what it says of the signal's parts, and its inner features.
    """

    def __init__(self) -> None:
        super().__init__()
        judge: Any = _speechbrain().HifiganDiscriminator()
        self.judge = judge

    def forward(self, x: Tensor) -> list[tuple[Tensor, list[Tensor]]]:
        scores, features = self.judge(x[:, None])
        return list(zip(scores, features, strict=True))


def _speechbrain() -> Any:
    try:
        from speechbrain.lobes.models import HifiGAN
    except (ImportError, OSError) as error:
        raise MissingDependencyError(f"{_INSTALL} ({error})") from None
    return HifiGAN
