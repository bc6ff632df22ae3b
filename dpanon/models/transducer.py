"""RNN transducer (Graves 2012): Conformer encoder, LSTM prediction network, additive joint (paper D: AISHELL, 135 M).

The Conformer block is that of Gulati et al. (2020) with layer normalisation in the convolution: batch normalisation
mixes utterances (and so breaks DP-SGD and the independence of a teacher's answers); positions come from the
convolutions, as in torchaudio's Conformer. Nothing here needs more than torch.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dpanon.errors import DataDirError
from dpanon.features.fbank import NUM_MEL
from dpanon.models.transducer_loss import transducer_loss

BLANK = 0
REDUCTION = 4  # encoder frames are 40 ms


@dataclass(frozen=True)
class TransducerConfig:
    """Sizes. Every key of conf/transducer.yaml is a field here; the defaults are the small configuration."""

    vocabulary: int = 2  # with the blank, which is 0; what is trained on a list of tokens has theirs
    width: int = 144
    channels: int = 0  # of the two strided convolutions; 0: width
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

    def __post_init__(self):
        if self.width % self.heads or self.kernel % 2 == 0 or self.vocabulary < 2 or not 0 <= self.dropout < 1:
            raise ValueError("heads must divide width, kernel be odd, vocabulary >= 2, dropout in [0, 1)")


def aishell_config(vocabulary: int = 4233) -> TransducerConfig:
    """Paper D's size, 135 M parameters within 5 %: 4233 characters of AISHELL-1 with the blank give 137 M."""
    return TransducerConfig(
        vocabulary,
        width=512,
        layers=18,
        heads=8,
        kernel=31,
        embedding=512,
        prediction=1024,
        prediction_layers=2,
        joint=640,
    )


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


class Transducer(nn.Module):
    """Encoder, prediction network and joint.

    Shape:
        fbank: ``(N, T, 80)`` log-mel; num_frames ``(N,)``; targets ``(N, U)`` without blanks.
        forward returns: logits ``(N, T', U + 1, V)`` and ``T'`` of each utterance ``(N,)``, T' = T / 4 or a bit less.
    """

    def __init__(self, config: TransducerConfig):
        super().__init__()
        self.config = config
        width, channels = config.width, config.channels or config.width
        self.subsample = nn.Sequential(
            nn.Conv2d(1, channels, 3, 2), nn.ReLU(), nn.Conv2d(channels, channels, 3, 2), nn.ReLU()
        )
        self.enter = nn.Linear(channels * _halved(_halved(NUM_MEL)), width)
        self.blocks = nn.ModuleList(ConformerBlock(config) for _ in range(config.layers))
        self.embedding = nn.Embedding(config.vocabulary, config.embedding, padding_idx=BLANK)
        self.prediction = nn.LSTM(config.embedding, config.prediction, config.prediction_layers, batch_first=True)
        self.from_encoder = nn.Linear(width, config.joint)
        self.from_prediction = nn.Linear(config.prediction, config.joint, bias=False)
        self.out = nn.Linear(config.joint, config.vocabulary)
        self.frames_out = nn.Linear(width, config.vocabulary)  # CTC on the encoder, in training only

    def encode(self, fbank: Tensor, num_frames: Tensor) -> tuple[Tensor, Tensor]:
        """``(N, T, 80) -> (N, T', width)`` and the lengths; at least 7 frames each."""
        if int(num_frames.min()) < 7:
            raise ValueError(f"an utterance of {int(num_frames.min())} frames: two strided convolutions need 7")
        x = self.subsample(fbank[:, None])  # (N, C, T', F)
        x = self.enter(x.transpose(1, 2).flatten(2))
        num_frames = _halved(_halved(num_frames))
        past = torch.arange(x.shape[1], device=x.device)[None] >= num_frames[:, None]
        for block in self.blocks:
            x = block(x, past)
        return x, num_frames

    def predict(self, labels: Tensor, state: tuple[Tensor, Tensor] | None = None):
        """What the labels said so far lead to expect. ``(N, U) -> (N, U, prediction)`` and the state after them."""
        return self.prediction(self.embedding(labels), state)

    def join(self, encoded: Tensor, predicted: Tensor) -> Tensor:
        """Logits of every pair. ``(N, T', M), (N, U + 1, M) -> (N, T', U + 1, V)``"""
        pairs = self.from_encoder(encoded)[:, :, None] + self.from_prediction(predicted)[:, None]
        return self.out(torch.tanh(pairs))

    def forward(self, fbank: Tensor, num_frames: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        encoded, num_frames = self.encode(fbank, num_frames)
        predicted, _ = self.predict(nn.functional.pad(targets, (1, 0), value=BLANK))
        return self.join(encoded, predicted), num_frames

    def loss(
        self, fbank: Tensor, num_frames: Tensor, targets: Tensor, num_labels: Tensor, ctc: float = 0.0, reduction="mean"
    ) -> Tensor:
        """Negative log-likelihood; ``ctc`` of it is CTC on the encoder (Watanabe et al. 2017), which aligns sooner."""
        encoded, num_frames = self.encode(fbank, num_frames)
        predicted, _ = self.predict(nn.functional.pad(targets, (1, 0), value=BLANK))
        loss = transducer_loss(self.join(encoded, predicted), targets, num_frames, num_labels, BLANK, reduction)
        if ctc == 0.0:
            return loss
        log_p = self.frames_out(encoded).log_softmax(-1).transpose(0, 1)  # (N, T', V) -> (T', N, V)
        other = nn.functional.ctc_loss(
            log_p, targets, num_frames, num_labels, BLANK, reduction="none", zero_infinity=True
        )
        return (1.0 - ctc) * loss + ctc * (other if reduction == "none" else getattr(other, reduction)())


class Hypothesis(NamedTuple):
    """Labels said so far, their log-probability, and the prediction network after them."""

    labels: tuple[int, ...]
    score: float
    predicted: Tensor
    state: tuple[Tensor, Tensor]


@torch.no_grad()
def search(model: Transducer, fbank: Tensor, num_frames: Tensor, beam: int = 1) -> list[tuple[int, ...]]:
    """Labels of each utterance: greedy for a beam of 1, else time-synchronous beam search that adds up equal labels.

    ``(N, T, 80)``, ``(N,)``; every frame says at most ``max_symbols`` labels.
    """
    if beam < 1:
        raise ValueError(f"beam must be >= 1, got {beam}")
    encoded, lengths = model.encode(fbank, num_frames)
    return [_search(model, encoded[i, : int(lengths[i])], beam) for i in range(len(encoded))]


def save_transducer(model: Transducer, tokens: Sequence[str], path: Path) -> None:
    from dpanon.train.loop import save_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}
    save_atomically({"tokens": list(tokens), "config": asdict(model.config), "state": state}, path)


def load_transducer(path: Path) -> tuple[Transducer, tuple[str, ...]]:
    """A model of ``save_transducer`` in eval mode, and its tokens without the blank."""
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
        model = Transducer(TransducerConfig(**saved["config"]))
        model.load_state_dict(saved["state"])
        tokens = tuple(saved["tokens"])
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataDirError(f"{path}: not a model of steps/train_transducer.sh ({error})") from error
    return model.eval(), tokens


def _search(model: Transducer, encoded: Tensor, beam: int) -> tuple[int, ...]:
    begin = encoded.new_full((1, 1), BLANK, dtype=torch.long)
    kept = [Hypothesis((), 0.0, *model.predict(begin))]
    for frame in encoded:
        done: dict[tuple[int, ...], Hypothesis] = {}
        active = kept
        for symbol in range(model.config.max_symbols + 1):
            rows = [model.join(frame[None, None], one.predicted)[0, 0, 0].log_softmax(-1) + one.score for one in active]
            for one, row in zip(active, rows, strict=True):
                _add(done, one._replace(score=float(row[BLANK])))
            if symbol == model.config.max_symbols:
                break
            table = torch.stack(rows).index_fill(1, torch.tensor([BLANK]), -torch.inf)
            best = table.flatten().topk(min(beam, table.numel()))
            least = sorted((one.score for one in done.values()), reverse=True)[:beam][-1] if len(done) >= beam else None
            active = [
                _extend(model, active[index // table.shape[1]], index % table.shape[1], score)
                for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
                if least is None or score > least
            ]
            if not active:
                break
        kept = sorted(done.values(), key=lambda one: one.score, reverse=True)[:beam]
    return kept[0].labels


def _extend(model: Transducer, one: Hypothesis, label: int, score: float) -> Hypothesis:
    predicted, state = model.predict(one.predicted.new_full((1, 1), label, dtype=torch.long), one.state)
    return Hypothesis((*one.labels, label), score, predicted, state)


def _add(done: dict[tuple[int, ...], Hypothesis], one: Hypothesis) -> None:
    """Equal labels by other paths: their probabilities add up."""
    there = done.get(one.labels)
    if there is not None:
        one = one._replace(score=float(torch.logaddexp(torch.tensor(there.score), torch.tensor(one.score))))
    done[one.labels] = one


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


def _halved(size):
    """Length after a convolution of 3 with stride 2."""
    return (size - 3) // 2 + 1
