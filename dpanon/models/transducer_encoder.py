"""Conformer encoders of the transducer: ours, which needs torch alone, or ESPnet's, which paper D used.

The block is that of Gulati et al. (2020). Ours has layer normalisation in the convolution: batch normalisation mixes
utterances in training, and so breaks DP-SGD of the encoder. Its positions come from the convolutions, as in
torchaudio's Conformer. ESPnet's has batch normalisation there (at rest when teachers answer), and relative positions.

For an hour of speech there is a smaller one, of convolutions and an LSTM each way, which may hear what the frozen
encoder of Whisper made of it (``features: content``) in place of filter banks: that one has learned what speech is.
"""

import importlib
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor, nn

from dpanon.errors import MissingDependencyError
from dpanon.features.content import WhisperEncoder
from dpanon.features.fbank import NUM_MEL

REDUCTION = 4  # encoder frames are 40 ms
LEAST = 7  # frames that two strided convolutions need
ENCODERS = ("conformer", "espnet", "auto", "lstm")
STRIDES = {"fbank": (2, 2), "content": (2, 1)}  # of the two convolutions: frames of 10 and of 20 ms become 40 ms
DECODERS = ("transducer", "ctc")
ESPNET = "espnet2.asr.encoder.conformer_encoder"


@dataclass(frozen=True)
class TransducerConfig:
    """Sizes. ``model`` of conf/transducer_*.yaml has these keys; the defaults are the small configuration."""

    vocabulary: int = 2  # with the blank, which is 0; what is trained on a list of tokens has theirs
    encoder: str = "conformer"  # of dpanon; espnet: of ESPnet; auto: ESPnet's where it can be imported; lstm
    width: int = 144
    channels: int = 0  # of the two strided convolutions; 0: width (ESPnet's are always so)
    layers: int = 4
    heads: int = 4
    feed_forward: int = 4  # times width
    kernel: int = 15  # of the depthwise convolution, odd
    embedding: int = 128
    prediction: int = 256  # of the LSTM
    prediction_layers: int = 1
    joint: int = 256
    dropout: float = 0.1
    max_symbols: int = 5  # labels that a search lets a frame say
    features: str = "fbank"  # or content: what Whisper's encoder hears, of steps/extract_content.sh; encoder lstm only
    decoder: str = "transducer"  # ctc: letters of each frame alone; what is trained with ctc: 1.0 has it

    def __post_init__(self):
        if self.width % self.heads or self.kernel % 2 == 0 or self.vocabulary < 2 or not 0 <= self.dropout < 1:
            raise ValueError("heads must divide width, kernel be odd, vocabulary >= 2, dropout in [0, 1)")
        if self.encoder not in ENCODERS:
            raise ValueError(f"encoder must be one of {', '.join(ENCODERS)}, got {self.encoder!r}")
        if self.features not in STRIDES or self.decoder not in DECODERS:
            raise ValueError(f"features must be one of {', '.join(STRIDES)}, decoder one of {', '.join(DECODERS)}")
        if self.features == "content" and self.encoder != "lstm":
            raise ValueError("features: content goes with encoder: lstm")

    @property
    def input_size(self) -> int:
        """Features of a frame."""
        return NUM_MEL if self.features == "fbank" else WhisperEncoder.dim


def espnet() -> ModuleType:
    """The module of ESPnet's Conformer; MissingDependencyError where it cannot be imported."""
    try:
        return importlib.import_module(ESPNET)
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            f"encoder espnet needs ESPnet's modules ({error}); install them with tools/install_espnet.sh, or set "
            "encoder: conformer, which needs nothing"
        ) from error


def choose_encoder(name: str) -> str:
    """``conformer`` or ``espnet``: what ``auto`` stands for here."""
    if name != "auto":
        return name
    try:
        espnet()
    except MissingDependencyError:
        return "conformer"
    return "espnet"


def make_encoder(config: TransducerConfig) -> nn.Module:
    """(fbank ``(N, T, 80)``, num_frames ``(N,)``) -> ``(N, T', width)`` and the lengths ``(N,)``."""
    if config.encoder == "lstm":
        return LstmEncoder(config)
    return EspnetEncoder(config) if choose_encoder(config.encoder) == "espnet" else ConformerEncoder(config)


class ConvolutionModule(nn.Module):
    """Pointwise, gated; depthwise over time; pointwise. ``(N, T, M) -> (N, T, M)``; nothing past the end is heard."""

    def __init__(self, width: int, kernel: int, dropout: float):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(width), nn.LayerNorm(width)
        self.rise = nn.Linear(width, 2 * width)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.fall = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, past: Tensor) -> Tensor:
        x = nn.functional.glu(self.rise(self.norm(x)), -1).masked_fill(past[..., None], 0.0)
        x = self.depthwise(x.transpose(1, 2)).transpose(1, 2)  # (N, T, M) -> (N, M, T) -> (N, T, M)
        return self.dropout(self.fall(nn.functional.silu(self.inner(x))))


class ConformerBlock(nn.Module):
    """Half feed-forward, attention, convolution, half feed-forward. ``(N, T, M) -> (N, T, M)``"""

    def __init__(self, config: TransducerConfig):
        super().__init__()
        width = config.width
        self.first, self.second = (_feed_forward(width, config.feed_forward, config.dropout) for _ in range(2))
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, config.heads, config.dropout, batch_first=True)
        self.convolution = ConvolutionModule(width, config.kernel, config.dropout)

    def forward(self, x: Tensor, past: Tensor) -> Tensor:
        x = x + self.first(x) / 2
        y = self.norm(x)
        x = x + self.attention(y, y, y, key_padding_mask=past, need_weights=False)[0]
        x = x + self.convolution(x, past)
        return self.last(x + self.second(x) / 2)


class ConformerEncoder(nn.Module):
    """Two strided convolutions, then Conformer blocks; see ``make_encoder``."""

    def __init__(self, config: TransducerConfig):
        super().__init__()
        width, channels = config.width, config.channels or config.width
        self.subsample = nn.Sequential(
            nn.Conv2d(1, channels, 3, 2), nn.ReLU(), nn.Conv2d(channels, channels, 3, 2), nn.ReLU()
        )
        self.enter = nn.Linear(channels * _halved(_halved(NUM_MEL)), width)
        self.blocks = nn.ModuleList(ConformerBlock(config) for _ in range(config.layers))

    def forward(self, fbank: Tensor, num_frames: Tensor) -> tuple[Tensor, Tensor]:
        x = self.subsample(fbank[:, None])  # (N, C, T', F)
        x = self.enter(x.transpose(1, 2).flatten(2))
        num_frames = _halved(_halved(num_frames))
        past = torch.arange(x.shape[1], device=x.device)[None] >= num_frames[:, None]
        for block in self.blocks:
            x = block(x, past)
        return x, num_frames


class LstmEncoder(nn.Module):
    """Two convolutions over time, then one LSTM each way; see ``make_encoder``. Nothing past the end is heard."""

    def __init__(self, config: TransducerConfig):
        super().__init__()
        width, kernel, self.strides = config.width, config.kernel, STRIDES[config.features]
        sizes = (config.input_size, width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, width, kernel, stride, kernel // 2)
            for size, stride in zip(sizes, self.strides, strict=True)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in sizes)
        self.onward, self.back = (nn.LSTM(width, width // 2, batch_first=True) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, num_frames: Tensor) -> tuple[Tensor, Tensor]:
        x = x.masked_fill(_past(x, num_frames), 0.0)
        for convolution, norm, stride in zip(self.convolutions, self.norms, self.strides, strict=True):
            x = norm(convolution(x.transpose(1, 2)).transpose(1, 2))  # (N, T, M) -> (N, M, T) -> (N, T', M)
            num_frames = (num_frames - 1) // stride + 1
            x = self.dropout(nn.functional.gelu(x)).masked_fill(_past(x, num_frames), 0.0)
        frame = torch.arange(x.shape[1], device=x.device)[None]
        turned = torch.where(frame < num_frames[:, None], num_frames[:, None] - 1 - frame, frame)[..., None]
        back = self.back(x.gather(1, turned.expand_as(x)))[0]
        both = torch.cat([self.onward(x)[0], back.gather(1, turned.expand_as(back))], -1)
        return self.dropout(both), num_frames


class EspnetEncoder(nn.Module):
    """ESPnet's Conformer as its AISHELL recipes set it up: macaron, relative positions; see ``make_encoder``.

    It hears the padding of a batch: in its convolutions, and in attention by two frames. So in eval mode utterances of
    one length only are heard together, and none changes another; DP-SGD, whose encoder is in eval mode, relies on that.
    """

    def __init__(self, config: TransducerConfig):
        super().__init__()
        self.width = config.width
        self.conformer = espnet().ConformerEncoder(
            input_size=NUM_MEL,
            output_size=config.width,
            attention_heads=config.heads,
            linear_units=config.feed_forward * config.width,
            num_blocks=config.layers,
            dropout_rate=config.dropout,
            positional_dropout_rate=config.dropout,
            attention_dropout_rate=config.dropout,
            input_layer="conv2d",
            normalize_before=True,
            macaron_style=True,
            rel_pos_type="latest",
            pos_enc_layer_type="rel_pos",
            selfattention_layer_type="rel_selfattn",
            use_cnn_module=True,
            cnn_module_kernel=config.kernel,
        )

    def forward(self, fbank: Tensor, num_frames: Tensor) -> tuple[Tensor, Tensor]:
        if self.training:
            x, num_frames, _ = self.conformer(fbank[:, : int(num_frames.max())], num_frames)
            return x, num_frames
        after = _halved(_halved(num_frames))
        x = fbank.new_zeros(len(fbank), int(after.max()), self.width)
        for length in num_frames.unique().tolist():
            rows = (num_frames == length).nonzero()[:, 0]
            found, _, _ = self.conformer(fbank[rows, :length], num_frames[rows])
            x[rows, : found.shape[1]] = found
        return x, after


def _feed_forward(width: int, factor: int, dropout: float) -> nn.Sequential:
    inner = factor * width
    return nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, inner),
        nn.SiLU(),
        nn.Dropout(dropout),
        nn.Linear(inner, width),
        nn.Dropout(dropout),
    )


def _past(x: Tensor, num_frames: Tensor) -> Tensor:
    """What is padding. ``(N, T, M) -> (N, T, 1)``"""
    return (torch.arange(x.shape[1], device=x.device)[None] >= num_frames[:, None])[..., None]


def _halved(size):
    """Length after a convolution of 3 with stride 2."""
    return (size - 3) // 2 + 1
