"""Recogniser of single words: a bidirectional LSTM with self-attention (paper D: spoken commands, 0.2 M parameters)."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from dpanon.errors import DataDirError
from dpanon.features.fbank import NUM_MEL

STACK = 4  # frames of 10 ms that one step of the LSTM reads
SILENCE = 5.0  # nats of power below the loudest frame: 22 dB
FLOOR, CENTRE, SPREAD = -8.0, -3.0, 2.5  # nats, of log-mel bands below the mean power of their utterance


@dataclass(frozen=True)
class CommandsConfig:
    """Size of the network; the defaults have about the paper's 0.2 M parameters."""

    hidden: int = 64  # of one direction
    layers: int = 2
    heads: int = 4
    bands: int = NUM_MEL  # the lowest so many of 80; 60 end at 4 kHz, all that telephone speech has

    def __post_init__(self):
        if min(self.hidden, self.layers, self.heads) < 1 or 2 * self.hidden % self.heads:
            raise ValueError(f"hidden, layers and heads must be >= 1, and heads a divisor of {2 * self.hidden}")
        if not 1 <= self.bands <= NUM_MEL:
            raise ValueError(f"bands must be in 1..{NUM_MEL}, got {self.bands}")


class Commands(nn.Module):
    """Log-probabilities of the words, of whole utterances.

    No batch normalisation and no state shared by utterances: the output and the gradient of one do not depend on
    the others, which per-sample clipping (DP-SGD) needs. Queries, keys and values are plain linear layers, so that
    Opacus knows their per-sample gradients; ``lstm`` may be its DPLSTM, whose weights have the names of ``nn.LSTM``.

    Args:
        num_words: V, size of the vocabulary.
        lstm: class of the recurrent layer.

    Shape:
        x: ``(N, T, bands)`` of ``normalise``, zero after the end.
        num_frames: ``(N,)`` true lengths.
        returns: ``(N, V)`` log-probabilities.
    """

    def __init__(self, num_words: int, config: CommandsConfig | None = None, lstm: type[nn.Module] = nn.LSTM):
        super().__init__()
        self.config = config or CommandsConfig()
        hidden, width = self.config.hidden, 2 * self.config.hidden
        self.front = nn.Linear(STACK * self.config.bands, hidden)
        self.lstm = lstm(hidden, hidden, self.config.layers, batch_first=True, bidirectional=True)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mix = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, num_words)

    def forward(self, x: Tensor, num_frames: Tensor) -> Tensor:
        return torch.log_softmax(self.out(self.embed(x, num_frames)), -1)

    def embed(self, x: Tensor, num_frames: Tensor) -> Tensor:
        """What the words are told apart by: mean over time of the attended LSTM. ``(N, T, M) -> (N, 2 hidden)``"""
        n, t, m = x.shape
        if pad := -t % STACK:
            x = nn.functional.pad(x, (0, 0, 0, pad))
        x = x.reshape(n, -1, STACK * m)  # (N, T, M) -> (N, T / 4, 4 M)
        steps = (num_frames + STACK - 1) // STACK
        past = torch.arange(x.shape[1])[None] >= steps[:, None]  # (N, T / 4)
        x = torch.relu(self.front(x)).masked_fill(past[..., None], 0.0)
        x, _ = self.lstm(x)
        x = self.norm(x + self._attend(x, past)).masked_fill(past[..., None], 0.0)
        return x.sum(1) / steps[:, None]

    def _attend(self, x: Tensor, past: Tensor) -> Tensor:
        n, t, width = x.shape
        q, k, v = (
            layer(x).reshape(n, t, self.config.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )  # (N, T, M) -> (N, heads, T, M / heads)
        weights = (q @ k.transpose(-1, -2)) / (width / self.config.heads) ** 0.5
        weights = weights.masked_fill(past[:, None, None], -torch.inf).softmax(-1)
        return self.mix((weights @ v).transpose(1, 2).reshape(n, t, width))


def normalise(fbank: Tensor, bands: int = NUM_MEL) -> Tensor:
    """One loudness, and no silence at the ends; nothing of any other utterance. ``(T, 80) -> (T', bands)``

    The mean power of the utterance is taken off, not the mean of each band: a word is too short for the latter, which
    then has most of what tells its vowel. What is ``SILENCE`` below the loudest frame is cut at both ends. The rest is
    moved and scaled by constants to about zero mean and unit variance.
    """
    fbank = fbank[:, :bands]
    loud = fbank.logsumexp(1)
    heard = (loud > loud.max() - SILENCE).nonzero()[:, 0]
    if len(heard):
        fbank = fbank[int(heard[0]) : int(heard[-1]) + 1]
    power = fbank.logsumexp((0, 1)) - math.log(fbank.numel())
    return ((fbank - power).clamp_min(FLOOR) - CENTRE) / SPREAD


def read_words(path: Path) -> tuple[str, ...]:
    """The vocabulary: one word in a line. It is public; one collected from private text would tell about it."""
    words = tuple(path.read_text(encoding="utf-8").split())
    if len(words) < 2 or len(set(words)) < len(words):
        raise DataDirError(f"{path}: expected two or more different words, one in a line")
    return words


def save_commands(model: Commands, words: tuple[str, ...], path: Path) -> None:
    from dpanon.train.loop import save_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}
    save_atomically({"words": list(words), "config": asdict(model.config), "state": state}, path)


def load_commands(path: Path) -> tuple[Commands, tuple[str, ...]]:
    """A model of ``save_commands`` in eval mode, and its words."""
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
        model = Commands(len(saved["words"]), CommandsConfig(**saved["config"]))
        model.load_state_dict(saved["state"])
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DataDirError(f"{path}: not a model of steps/train_commands.sh ({error})") from error
    return model.eval(), tuple(saved["words"])
