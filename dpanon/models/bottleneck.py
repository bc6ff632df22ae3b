"""Bottleneck (bn) extractor of paper A: a TDNN-F acoustic model, a 256-dimensional bottleneck whose frames
lie on the unit l1 sphere, and the network behind the noise that makes content features of it.

    fbank (T, 80) or recogniser features (T/2, 384)
        -> encode -> bn (T, 256) -> [noise: dpanon.privacy] -> denoise -> decode -> content (T/2, 256)

What carries the guarantee is the noised bn; the rest only post-processes it. The paper's extractor
also took the speaker's i-vector, which nothing protects; this one does not.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.models.codes import COLUMN, Codebooks

FEATURES = {"fbank": 80, "whisper": 384}  # values per frame
CODE_CONTEXT = 100  # frames that a code's posterior is taken to depend on: a second
MEANS = ("utterance", "public")
_SCALE = {"fbank": 3.0, "whisper": 1.0}  # about their deviation
_PUBLIC_MEAN = {"fbank": 12.0, "whisper": 0.0}  # about that of speech at the level of dpanon.features.level


@dataclass(frozen=True)
class BottleneckConfig:
    """Sizes of the extractor."""

    features: str = "fbank"  # fbank (10 ms), or whisper: the output of a recogniser's encoder (20 ms)
    mean: str = (
        "utterance"  # what is taken off the features: their mean, or one of all speech (public), as in the paper
    )
    bottleneck: int = 256  # M in the paper
    hidden: int = 256
    factor: int = 80  # inner dimension of a TDNN-F layer
    encoder_dilations: tuple[int, ...] = (1, 1, 2, 2)
    decoder_dilations: tuple[int, ...] = (1, 1, 2, 2, 3)
    content: int = 256
    codebooks: int = 0  # what gets the noise is the dense bottleneck, or the codes of so many codebooks
    code_size: int = 0  # vectors of each


class FactorisedTdnn(nn.Module):
    """TDNN-F layer (Povey et al. 2018): a context layer through a narrow linear one, with a bypass.

    Shape: ``(N, hidden, T) -> (N, hidden, T)``.
    """

    def __init__(self, hidden: int, factor: int, dilation: int):
        super().__init__()
        self.linear = nn.Conv1d(hidden, factor, 3, dilation=dilation, padding=dilation, bias=False)
        self.affine = nn.Conv1d(factor, hidden, 3, dilation=dilation, padding=dilation)
        self.norm = ChannelNorm(hidden)

    def forward(self, x: Tensor) -> Tensor:
        return 0.66 * x + self.norm(functional.relu(self.affine(self.linear(x))))

    @torch.no_grad()
    def constrain(self) -> None:
        """One step of the linear layer towards a (scaled) semi-orthogonal matrix, as in Kaldi's training."""
        weight = self.linear.weight.flatten(1)
        gram = weight @ weight.T
        scale = (gram @ gram).trace() / gram.trace()
        update = (gram / scale - torch.eye(len(gram))) @ weight
        self.linear.weight -= (0.5 * update).view_as(self.linear.weight)


class ChannelNorm(nn.Module):
    """Layer norm over the channels of one frame: no statistics of other frames, utterances or speakers."""

    def __init__(self, channels: int):
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)  # (N, C, T) -> (N, T, C) -> (N, C, T)


class Bottleneck(nn.Module):
    """The two halves around the noise. Frames are 10 ms, content frames 20 ms."""

    def __init__(self, config: BottleneckConfig):
        super().__init__()
        self.config = c = config
        if c.features == "fbank":
            self.input = nn.Conv1d(FEATURES["fbank"], c.hidden, 6, stride=2, padding=2)
        elif c.features == "whisper":
            self.input = nn.Conv1d(FEATURES["whisper"], c.hidden, 5, padding=2)
        else:
            raise ValueError(f"features must be one of {', '.join(FEATURES)}, got {c.features!r}")
        if c.mean not in MEANS:
            raise ValueError(f"mean must be one of {', '.join(MEANS)}, got {c.mean!r}")
        self.encoder = nn.ModuleList(FactorisedTdnn(c.hidden, c.factor, d) for d in c.encoder_dilations)
        self.to_bn = nn.Conv1d(c.hidden, 2 * c.bottleneck, 1)
        self.from_bn = nn.Conv1d(c.bottleneck, c.hidden, 6, stride=2, padding=2)
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.from_norm = ChannelNorm(c.hidden)
        self.decoder = nn.ModuleList(FactorisedTdnn(c.hidden, c.factor, d) for d in c.decoder_dilations)
        self.to_content = nn.Conv1d(c.hidden, c.content, 1)
        self.codes = Codebooks(c.codebooks, c.code_size, COLUMN * c.bottleneck) if c.codebooks else None

    @property
    def width(self) -> int:
        """Entries of a frame that gets the noise."""
        return self.config.bottleneck if self.codes is None else self.codes.width

    @property
    def context(self) -> int:
        """Frames of 10 ms on either side that one content frame depends on."""
        dilations = self.config.encoder_dilations + self.config.decoder_dilations
        return 2 * sum(2 * dilation for dilation in dilations) + 8 + (0 if self.codes is None else CODE_CONTEXT)

    def encode(self, features: Tensor, mean: Tensor | None = None) -> Tensor:
        """Features (N, T, 80) at 10 ms, or (N, T/2, 384) at 20 ms, -> bn before noise (N, T, width).

        Every frame has unit l1 norm. ``mean`` (N, 1, .) is that of the whole utterance when
        ``features`` is a part of it; a model with a public mean takes that.
        """
        bn = self.dense(features, mean)
        return bn if self.codes is None else self.codes.one_hot(self.codes.quantise(to_columns(bn)), bn.shape[1])

    def dense(self, features: Tensor, mean: Tensor | None = None) -> Tensor:
        """As ``encode``, before codes take the place of it: (N, T, bottleneck)."""
        fast = self.config.features == "fbank"
        num = features.shape[1] if fast else 2 * features.shape[1]
        taken: Tensor | float
        if self.config.mean == "public":
            taken = _PUBLIC_MEAN[self.config.features]
        else:
            taken = features.mean(1, keepdim=True) if mean is None else mean
        x = ((features - taken) / _SCALE[self.config.features]).transpose(1, 2)  # (N, T, M) -> (N, M, T)
        x = functional.pad(x, (0, 1), mode="replicate") if num % 2 else x
        x = functional.relu(self.input(x))
        for layer in self.encoder:
            x = layer(x)
        x = self.to_bn(x)  # (N, 2M, T/2): two frames of 10 ms in each column
        n, _, half = x.shape
        x = x.view(n, 2, -1, half).permute(0, 3, 1, 2).reshape(n, 2 * half, -1)  # -> (N, T, M)
        return to_l1_sphere(x[:, :num])

    def denoise(self, bn: Tensor, scale: float) -> Tensor:
        """bn after Laplace noise of ``scale`` (0: none), (N, T, width) -> (N, T, bottleneck). Post-processing.

        A dense bn stays as it is. Of codes, all of an utterance say together what each of them probably was.
        """
        if self.codes is None:
            return bn
        columns = self.codes.expect(self.codes.posterior(bn, scale))
        return columns.reshape(len(bn), -1, self.config.bottleneck)[:, : bn.shape[1]]

    def transmit(self, features: Tensor, mean: Tensor | None, noise: nn.Module, scale: float) -> tuple[Tensor, Tensor]:
        """For training: content (N, ceil(T/2), content) through ``noise``, and what codes cost.

        The gradient passes codes as if they were not there (straight through), and reaches their vectors, too.
        The cost draws columns and code vectors together.
        """
        bn = self.dense(features, mean)
        if self.codes is None:
            return self.decode(noise(bn)), bn.new_zeros(())
        columns, num = to_columns(bn), bn.shape[1]
        chosen = self.codes.quantise(columns)
        if self.training:
            self.codes.observe(chosen)
        near = self.codes.expect(nn.functional.one_hot(chosen, self.codes.vectors.shape[1]).to(bn.dtype))
        cost = ((near - columns.detach()).pow(2) + 0.25 * (near.detach() - columns).pow(2)).mean()
        cost = cost / columns.detach().var()
        with torch.no_grad():
            posterior = self.codes.posterior(noise(self.codes.one_hot(chosen, num)), scale)
        read = self.codes.expect(posterior) + columns - columns.detach()
        return self.decode(read.reshape(len(bn), -1, self.config.bottleneck)[:, :num]), cost

    def decode(self, bn: Tensor) -> Tensor:
        """bn after ``denoise`` (N, T, bottleneck) -> content (N, ceil(T/2), content). Post-processing."""
        return self.to_content(self.hidden(bn)).transpose(1, 2)

    def hidden(self, bn: Tensor) -> Tensor:
        """(N, T, bottleneck) -> (N, hidden, ceil(T/2))"""
        num = bn.shape[1]
        x = to_l1_sphere(bn).transpose(1, 2) * (16.0 * self.gain)  # paper A normalises again after the noise
        x = functional.pad(x, (0, num % 2))
        x = self.from_norm(functional.relu(self.from_bn(x)))
        for layer in self.decoder:
            x = layer(x)
        return x

    def constrain(self) -> None:
        for layer in [*self.encoder, *self.decoder]:
            layer.constrain()


def to_columns(bn: Tensor) -> Tensor:
    """Dense frames (N, T, bottleneck), the last one twice if T is odd -> columns (N, ceil(T/2), 2 bottleneck)."""
    if bn.shape[1] % COLUMN:
        bn = torch.cat([bn, bn[:, -1:]], 1)
    return bn.reshape(len(bn), -1, COLUMN * bn.shape[2])


def to_l1_sphere(x: Tensor) -> Tensor:
    """Scale the last axis to unit l1 norm; a zero vector stays zero. (..., M) -> (..., M)"""
    return x / x.abs().sum(-1, keepdim=True).clamp_min(1e-8)
