"""Training and use of the recogniser of single words: without privacy, as a teacher, or as a student."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dpanon.data.arrays import load_scp
from dpanon.data.data_dir import DataDir
from dpanon.errors import ConfigError, DataDirError
from dpanon.models.commands import Commands, CommandsConfig, normalise
from dpanon.train.loop import CHECKPOINT, LoopConfig, train, update

BLOCK = 64  # utterances that are recognised at once


@dataclass(frozen=True)
class TrainCommandsConfig:
    """Every key of conf/{start,teacher,student,nodp}.yaml is a field here."""

    loop: LoopConfig
    model: CommandsConfig = field(default_factory=CommandsConfig)
    batch: int = 32
    trained: tuple[str, ...] = ()  # beginnings of the names of the weights that are trained; empty: all
    head: float = 0.0  # > 0: only the last layer of the start model, as ridge logistic regression of this strength
    warp: float = 0.1  # largest relative change of frequencies: other lengths of the vocal tract
    stretch: float = 0.2  # and of the tempo
    level: float = 1.0  # largest of a floor under the features, in standard deviations: other noise
    mask_bands: int = 12  # SpecAugment: one mask of up to so many bands
    mask_frames: int = 8  # and one of up to so many frames


class Augmentation(Protocol):
    """What a training configuration says of ``augment``; see TrainCommandsConfig."""

    @property
    def warp(self) -> float: ...
    @property
    def stretch(self) -> float: ...
    @property
    def level(self) -> float: ...
    @property
    def mask_bands(self) -> int: ...
    @property
    def mask_frames(self) -> int: ...


class Utterances:
    """Features of a set in memory, padded batches of them.

    Args:
        utts: names, in order. x: ``(T, M)`` of ``normalise`` for each.
    """

    def __init__(self, utts: Sequence[str], x: Sequence[Tensor]):
        if not utts or len(utts) != len(x):
            raise DataDirError(f"{len(x)} features of {len(utts)} utterances: nothing to train on or to recognise")
        self.utts, self._x = tuple(utts), list(x)

    @classmethod
    def read(cls, data: DataDir, bands: int, utts: Sequence[str] | None = None) -> "Utterances":
        """Of fbank.scp, which steps/extract_fbank.sh makes; all utterances if None."""
        if not data.has("fbank.scp"):
            raise DataDirError(f"{data.path}: has no fbank.scp; run steps/extract_fbank.sh {data.path}")
        utts = data.utts if utts is None else utts
        fbank = load_scp(data.path / "fbank.scp")
        return cls(utts, [normalise(torch.from_numpy(fbank[utt]), bands) for utt in utts])

    def __len__(self) -> int:
        return len(self.utts)

    def batch(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """``(N, T, M)`` zero-padded, and the lengths ``(N,)``."""
        x = [self._x[i] for i in indices]
        return torch.nn.utils.rnn.pad_sequence(x, batch_first=True), torch.tensor([len(item) for item in x])

    def length(self, index: int) -> int:
        """Frames of one utterance."""
        return len(self._x[index])

    def take(self, indices: Sequence[int]) -> "Utterances":
        return Utterances([self.utts[i] for i in indices], [self._x[i] for i in indices])

    def join(self, other: "Utterances") -> "Utterances":
        return Utterances(self.utts + other.utts, self._x + other._x)


def labels_of(data: DataDir, utts: Sequence[str], words: Sequence[str]) -> Tensor:
    """``(N,)`` indices of the words that ``text`` says."""
    index, text = {word: i for i, word in enumerate(words)}, data.table("text")
    for utt in utts:
        if text[utt] not in index:
            raise DataDirError(f"{data.path}/text: {utt!r}: {text[utt]!r} is not in the vocabulary")
    return torch.tensor([index[text[utt]] for utt in utts])


def train_commands(
    out: Path,
    config: TrainCommandsConfig,
    utterances: Utterances,
    targets: Tensor,
    num_words: int,
    start: Commands | None = None,
    label: str = "commands",
) -> Commands:
    """Train on labels (N,) or probabilities (N, V), from ``start`` if there is one. ``out`` holds the checkpoint."""
    if config.head > 0:
        if start is None:
            raise ConfigError("head: the rest of the network has to come from a start model")
        return train_head(start, utterances, targets, config.head)
    torch.manual_seed(config.loop.seed)
    model = Commands(num_words, start.config if start is not None else config.model)
    if start is not None:
        model.load_state_dict(start.state_dict())
    optimizer = torch.optim.AdamW(choose_weights(model, config.trained), lr=config.loop.lr, weight_decay=1e-2)

    def batches(epoch: int) -> list[np.ndarray]:
        order = np.random.default_rng((config.loop.seed, epoch)).permutation(len(utterances))
        return np.array_split(order, max(1, round(len(order) / config.batch)))

    def step(index: int, batch: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
        x, num_frames = augment(*utterances.batch(batch.tolist()), config, rng)
        loss = cross_entropy(model(x, num_frames), targets[torch.from_numpy(batch)])
        update(loss, model, optimizer, config.loop.clip)
        return {"loss": loss.item()}

    train(out, config.loop, {"model": model, "optimizer": optimizer}, [optimizer], batches, step, label)
    (out / CHECKPOINT).unlink()  # the caller keeps the model; this also holds the optimizer
    return model.eval()


def train_head(start: Commands, utterances: Utterances, targets: Tensor, strength: float) -> Commands:
    """``start`` with another last layer: the maximum of likelihood and ``-strength / 2 |W|^2``, by L-BFGS.

    Embeddings are computed once, without augmentation, so this takes a pass over the data: what many teachers with
    few utterances each can afford. Words that a teacher has not heard get little probability, as they should.
    """
    order = sorted(range(len(utterances)), key=utterances.length)
    with torch.no_grad():
        found = [start.embed(*utterances.batch(order[i : i + BLOCK])) for i in range(0, len(order), BLOCK)]
    x, y = torch.cat(found).double(), targets[order]
    y = y if y.dim() == 1 else y.double()
    weight = torch.zeros(start.out.weight.shape, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(start.out.bias.shape, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        log_p = (x @ weight.T + bias).log_softmax(-1)
        loss = cross_entropy(log_p, y) + strength / 2 / len(x) * (weight.square().sum() + bias.square().sum())
        loss.backward()
        return loss

    optimizer.step(closure)
    model = copy.deepcopy(start)
    with torch.no_grad():
        model.out.weight.copy_(weight)
        model.out.bias.copy_(bias)
    return model.eval()


def choose_weights(model: torch.nn.Module, beginnings: Sequence[str]) -> list[torch.nn.Parameter]:
    """Those whose names begin so, all if there are no beginnings; the others no longer learn."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not beginnings or name.startswith(tuple(beginnings)))
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not learned:
        raise ConfigError(f"trained: no weight's name begins with any of {', '.join(beginnings)}")
    return learned


def cross_entropy(log_p: Tensor, targets: Tensor) -> Tensor:
    """Mean over utterances; ``targets`` are labels (N,) or probabilities (N, V)."""
    if targets.dim() == 1:
        return torch.nn.functional.nll_loss(log_p, targets)
    return -(targets * log_p).sum(-1).mean()


def augment(x: Tensor, num_frames: Tensor, config: Augmentation, rng: np.random.Generator):
    """Another vocal tract, tempo and noise floor, and SpecAugment, for each utterance. ``(N, T, M) -> (N, T', M)``"""
    n, t, m = x.shape
    if config.warp or config.stretch:
        tempo = torch.from_numpy(rng.uniform(1 - config.stretch, 1 + config.stretch, n)).float()
        tract = torch.from_numpy(rng.uniform(1 - config.warp, 1 + config.warp, n)).float()
        num_frames = (num_frames / tempo).round().long().clamp_min(4)
        frames = torch.arange(int(num_frames.max()))[None] * tempo[:, None]  # (N, T'), where each is taken from
        bands = torch.arange(m)[None] * tract[:, None]  # (N, M)
        grid = torch.stack(torch.broadcast_tensors(bands[:, None], frames[..., None]), -1)  # (N, T', M, 2)
        grid = 2 * grid / torch.tensor([max(1, m - 1), max(1, t - 1)]) - 1
        x = torch.nn.functional.grid_sample(x[:, None], grid, padding_mode="border", align_corners=True)[:, 0]
    if config.level:
        x = torch.maximum(x, torch.from_numpy(rng.uniform(-3, config.level - 1, (n, 1, 1))).float())
    frame, band = torch.arange(x.shape[1])[None, :, None], torch.arange(m)[None, None]
    hidden = frame >= num_frames[:, None, None]
    for axis, widest, last in ((band, config.mask_bands, m), (frame, config.mask_frames, int(num_frames.min()))):
        width = torch.from_numpy(rng.integers(0, max(1, min(widest, last // 2) + 1), (n, 1, 1)))
        begin = torch.from_numpy(rng.integers(0, last, (n, 1, 1)))
        hidden = hidden | ((axis >= begin) & (axis < begin + width))
    return x.masked_fill(hidden, 0.0), num_frames


@torch.no_grad()
def recognise(model: Commands, utterances: Utterances) -> Tensor:
    """Log-probabilities ``(N, V)``."""
    found = [
        model(*utterances.batch(range(start, min(start + BLOCK, len(utterances)))))
        for start in range(0, len(utterances), BLOCK)
    ]
    return torch.cat(found)
