"""What nsf and hifigan have in common: an acoustic model in front of them, and a source of sines and noise."""

import torch
from torch import Tensor, nn

from dpanon.models.acoustic import AcousticConfig, AcousticModel
from dpanon.synth.harmonic import SAMPLE_RATE, phases

AMPLITUDE = 0.1  # of a sine (Wang et al. 2019)
BREATH = 0.003  # deviation of the noise on each sine
HIGHEST = 0.95 * SAMPLE_RATE / 2  # Hz; what is above would fold back


class Vocoder(nn.Module):
    """Content, f0, x-vector -> log-mel by an acoustic model -> samples by ``wave``. A ``Synthesizer``.

    Runs on parts of an utterance when they overlap by ``context`` frames, as ``HarmonicNoise`` does.
    """

    def __init__(self, acoustic: AcousticConfig):
        super().__init__()
        self.acoustic = AcousticModel(acoustic)

    @property
    def reach(self) -> int:
        """Frames of log-mel on either side that one sample depends on."""
        raise NotImplementedError

    @property
    def context(self) -> int:
        return self.acoustic.reach + self.reach

    def wave(self, mel: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor | None = None) -> Tensor:
        """log-mel (N, T, 80), f0 (N, T) Hz > 0, x-vector (N, S) -> samples (N, 160 T)

        ``phase`` (N,) in cycles is where the sines start.
        """
        raise NotImplementedError

    def forward(self, content: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor | None = None) -> Tensor:
        """See ``dpanon.synth.Synthesizer``; ``phase`` as in ``wave``."""
        return self.wave(self.acoustic(content, f0, xvector), f0, xvector, phase)


class SineSource(nn.Module):
    """Sines at f0 and its harmonics, merged into one signal, and white noise beside it (Wang et al. 2019, section II).

    The paper chooses between the two by a voicing flag. There is none here, as there would be one to protect: what
    comes behind the source has both and takes from the log-mel how much of each.

    Shape: f0 ``(N, T)`` Hz > 0 and, in cycles, the phase ``(N,)`` at the start -> ``(N, 2, 160 T)``.
    """

    def __init__(self, harmonics: int):
        super().__init__()
        self.harmonics = harmonics
        self.merge = nn.Conv1d(harmonics, 1, 1)

    def forward(self, f0: Tensor, phase: Tensor | None = None) -> Tensor:
        per_sample, cycles = phases(f0, phase)
        order = torch.arange(1, self.harmonics + 1, dtype=cycles.dtype, device=cycles.device)[:, None]
        sines = torch.sin(2 * torch.pi * order * cycles[:, None]) * (order * per_sample[:, None] < HIGHEST)
        sines = AMPLITUDE * sines.to(f0.dtype)  # (N, harmonics, 160 T)
        merged = torch.tanh(self.merge(sines + BREATH * torch.randn_like(sines)))
        return torch.cat([merged, AMPLITUDE / 3 * torch.randn_like(merged)], 1)  # excitation, no privacy noise
