"""Speaker identification from released features (P_ASI, paper A): an x-vector network over f0 or bottleneck sequences.

The attacker knows the mechanism and all its parameters, has released speech of every speaker to train on, and says
which of them a new piece is of. P_ASI is the share of test pieces that go to somebody else: 1 - 1/speakers is chance.

Pieces of a speaker are split 80/10/10 in the order of time. ``pieces`` says how many an utterance gives: 1 is the
paper's setting. Several are for a corpus with few utterances per speaker; train and test then share a session, which
helps the attacker: the privacy measured is a pessimistic one. With so little speech a network learns slowly, so a
linear attacker goes over the same pieces (``dpanon.attack.linear``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.attack.linear import KINDS, NearestMean, statistics, windows
from dpanon.attack.sanity import flags
from dpanon.errors import ConfigError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import bootstrap_ratio
from dpanon.models.bottleneck import ChannelNorm
from dpanon.train import parallel
from dpanon.train.loop import LoopConfig, train, update

PARTS = ("train", "valid", "test")
SHARES = (0.8, 0.1, 0.1)
_BLOCK = 64  # pieces that are classified at once


@dataclass(frozen=True)
class IdentificationConfig:
    """Every key of conf/asi.yaml is a field here; ``loop.steps`` is the limit, early stopping ends before it."""

    loop: LoopConfig
    pieces: int = 10  # of an utterance
    channels: int = 128
    pooled: int = 256  # channels whose mean and deviation over time are taken
    embedding: int = 128
    stride: int = 2  # frames that the first layer takes together
    dilations: tuple[int, ...] = (1, 2)
    dropout: float = 0.1  # share of the channels of a training piece that are missing
    smoothing: float = 0.0  # of the labels
    crop: int = 60  # frames of a training piece that a batch holds
    batch: int = 32
    patience: int = 6  # epochs without a better validation loss
    weight_decay: float = 0.05
    replicates: int = 1000  # of the bootstrap by speaker

    def __post_init__(self):
        if self.pieces < 1 or self.batch < 2 or self.stride < 1 or self.crop < 1 or self.patience < 1:
            raise ValueError("pieces, stride, crop and patience must be at least 1, batch at least 2")
        if not 0 <= self.dropout < 1 or not 0 <= self.smoothing < 1:
            raise ValueError("dropout and smoothing are within [0, 1)")


class Piece(NamedTuple):
    """Part of a released sequence, in its frames, and the number of its speaker."""

    utt: str
    start: int
    stop: int
    label: int


class SpeakerNet(nn.Module):
    """x-vector network (Snyder et al. 2018): time-delay layers, mean and deviation over time, speakers.

    It normalises the channels of one frame, and never over a batch: its output for a piece depends on that alone.

    Shape: ``(N, T, M) -> (N, speakers)``, logits.
    """

    def __init__(self, config: IdentificationConfig, dim: int, speakers: int):
        super().__init__()
        c = config
        self.dropout = c.dropout
        self.first = nn.Conv1d(dim, c.channels, 2 * c.stride + 1, stride=c.stride, padding=c.stride)
        self.norms = nn.ModuleList(ChannelNorm(c.channels) for _ in range(len(c.dilations) + 1))
        self.layers = nn.ModuleList(nn.Conv1d(c.channels, c.channels, 3, dilation=d, padding=d) for d in c.dilations)
        self.widen = nn.Conv1d(c.channels, c.pooled, 1)
        self.embed = nn.Linear(2 * c.pooled, c.embedding)
        self.norm = nn.LayerNorm(c.embedding)
        self.head = nn.Linear(c.embedding, speakers)

    def forward(self, x: Tensor) -> Tensor:
        x = self._missing(x.transpose(1, 2))  # (N, T, M) -> (N, M, T)
        x = self.norms[0](functional.relu(self.first(x)))
        for layer, norm in zip(self.layers, self.norms[1:], strict=True):
            x = x + norm(functional.relu(layer(x)))
        x = functional.relu(self.widen(self._missing(x)))
        x = torch.cat([x.mean(2), (x.var(2, unbiased=False) + 1e-5).sqrt()], 1)  # (N, C, T) -> (N, 2C)
        x = functional.relu(self.norm(self.embed(self._missing(x[..., None])[..., 0])))
        return self.head(x)

    def _missing(self, x: Tensor) -> Tensor:
        """Some channels of a training piece are zero from its first frame to its last. (N, C, T) -> (N, C, T)"""
        if not self.training or not self.dropout or x.shape[1] == 1:
            return x
        return x * (torch.rand(len(x), x.shape[1], 1) >= self.dropout) / (1 - self.dropout)


def split(speakers: Mapping[str, str], lengths: Mapping[str, int], pieces: int) -> dict[str, list[Piece]]:
    """Every utterance in equal pieces, those of a speaker 80/10/10 in the order of (utterance, time).

    Args:
        speakers: utterance -> speaker. lengths: utterance -> frames.

    Raises:
        EvaluationError: fewer than two speakers, or one with too few pieces for all three parts, or too short ones.
    """
    names = sorted(set(speakers.values()))
    if len(names) < 2:
        raise EvaluationError(f"{len(names)} speaker; identification needs at least 2")
    label = {name: i for i, name in enumerate(names)}
    of_speaker: dict[str, list[Piece]] = {name: [] for name in names}
    for utt in sorted(speakers):
        if lengths[utt] < pieces:
            raise EvaluationError(f"{utt}: {lengths[utt]} frames are too short for {pieces} pieces; lower `pieces`")
        edges = np.linspace(0, lengths[utt], pieces + 1).astype(int)
        cuts = zip(edges, edges[1:], strict=False)
        of_speaker[speakers[utt]] += [Piece(utt, int(a), int(b), label[speakers[utt]]) for a, b in cuts]
    parts: dict[str, list[Piece]] = {part: [] for part in PARTS}
    for name, mine in of_speaker.items():
        held = max(1, round(SHARES[2] * len(mine)))
        if len(mine) < 2 * held + 1:
            raise EvaluationError(
                f"speaker {name} has {len(mine)} pieces: train, valid and test need one each; raise `pieces`, "
                "or give more utterances"
            )
        parts["train"] += mine[: -2 * held]
        parts["valid"] += mine[-2 * held : -held]
        parts["test"] += mine[-held:]
    return parts


class _Best:
    """The weights of the best epoch so far, by loss on the validation part; survives a resume."""

    def __init__(self) -> None:
        self.loss, self.epoch = float("inf"), -1
        self.weights: dict[str, Tensor] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"loss": self.loss, "epoch": self.epoch, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loss, self.epoch, self.weights = state["loss"], state["epoch"], state["weights"]


def identify(
    config: IdentificationConfig,
    releases: Sequence[Mapping[str, np.ndarray]],
    speakers: Mapping[str, str],
    out: Path,
) -> dict[str, Any]:
    """Train the attacker on the released training pieces, stop by the validation part, attack the test part.

    Args:
        releases: utterance -> features (T, M), each with noise of its own: the attacker may release public speech as
            often as they like. Test pieces of all of them are attacked: errors are averaged over the noise as well.
        speakers: utterance -> speaker.

    Returns:
        ``error`` (P_ASI) with its interval over speakers, ``train_error``, ``valid_error``, ``chance``, counts and
        ``flags``, what is wrong with the attacker; ``linear_error`` and the like are those of the linear attacker.

    Raises:
        EvaluationError: too few speakers or pieces, or features that are not finite or of unequal shape.
    """
    lengths = {utt: len(releases[0][utt]) for utt in speakers}
    _check(releases, lengths)
    parts = split(speakers, lengths, config.pieces)
    mean, deviation = _moments(releases[0], parts["train"])
    names = sorted(set(speakers.values()))
    torch.manual_seed(config.loop.seed)
    net = SpeakerNet(config, len(mean), len(names))
    optimizer = torch.optim.AdamW(net.parameters(), lr=config.loop.lr, weight_decay=config.weight_decay)
    best = _Best()
    everything = [(k, piece) for k in range(len(releases)) for piece in parts["train"]]

    def cut(rows: Sequence[tuple[int, Piece]], num: int, places: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Standardised parts of ``num`` frames, each at its place, in [0, 1); short pieces repeat. (N, T, M), (N,)"""
        x = np.empty((len(rows), num, len(mean)), dtype=np.float32)
        for i, (k, piece) in enumerate(rows):
            first = int(places[i] * max(1, piece.stop - piece.start - num + 1))
            frames = (first + np.arange(num)) % (piece.stop - piece.start)
            x[i] = releases[k][piece.utt][piece.start + frames]
        return parallel.tensor((x - mean) / deviation), parallel.tensor(np.array([piece.label for _, piece in rows]))

    def batches(epoch: int) -> list[list[tuple[int, Piece]]]:
        order = np.random.default_rng((config.loop.seed, epoch, 3)).permutation(len(everything))
        size = min(config.batch, len(order))
        return [[everything[i] for i in order[at : at + size]] for at in range(0, len(order) - size + 1, size)]

    def step(index: int, rows: list[tuple[int, Piece]], rng: np.random.Generator) -> dict[str, float]:
        net.train()
        x, y = cut(rows, config.crop, torch.rand(len(rows)).tolist())
        logits = net(x)
        loss = functional.cross_entropy(logits, y, label_smoothing=config.smoothing)
        update(loss, net, optimizer, config.loop.clip)
        return {"loss": loss.item(), "accuracy": float((logits.argmax(1) == y).float().mean())}

    @torch.inference_mode()
    def classify(part: str) -> tuple[list[tuple[str, bool]], float]:
        """(speaker, whether missed) of every piece in every release, and the mean loss; pieces are taken whole."""
        net.eval()
        rows = [(k, piece) for k in range(len(releases)) for piece in parts[part]]
        rows.sort(key=lambda row: row[1].stop - row[1].start)  # blocks of (nearly) equal lengths
        wrong, total = [], 0.0
        for at in range(0, len(rows), _BLOCK):
            block = rows[at : at + _BLOCK]
            x, y = cut(block, block[-1][1].stop - block[-1][1].start, [0.0] * len(block))
            logits = net(x)
            total += float(functional.cross_entropy(logits, y, reduction="sum"))
            misses = (logits.argmax(1) != y).tolist()
            wrong += [(names[piece.label], miss) for (_, piece), miss in zip(block, misses, strict=True)]
        return wrong, total / len(rows)

    def stop(epoch: int) -> bool:
        loss = classify("valid")[1]
        if loss < best.loss:
            weights = {name: value.clone() for name, value in net.state_dict().items()}
            best.load_state_dict({"loss": loss, "epoch": epoch, "weights": weights})
        return epoch - best.epoch >= config.patience

    state = {"net": net, "optimizer": optimizer, "best": best}
    figures = train(out, config.loop, state, [optimizer], batches, step, out.name, stop=stop)
    if not best.weights:
        raise ConfigError(f"loop.steps {config.loop.steps} are less than one epoch: nothing is chosen; raise it")
    net.load_state_dict(best.weights)
    wrong = {part: classify(part)[0] for part in PARTS}
    found: dict[str, Any] = _errors(wrong, config.replicates) | {
        "chance": 1 - 1 / len(names),
        "num_speakers": len(names),
        "num_test": len(parts["test"]),
        "num_releases": len(releases),
        "loss": figures.get("loss"),  # None of a training that was complete before
        "epochs": figures["epochs"],
        "best_epoch": best.epoch,
    }
    ended = best.epoch + config.patience > figures["epochs"]
    linear = _errors(_linear_attack(releases, parts, names), config.replicates)
    found |= {f"linear_{name}": value for name, value in linear.items()}
    return found | {"flags": flags(found, len(wrong["train"]), ended)}


Attempts = Mapping[str, Sequence[tuple[str, bool]]]  # part -> speaker of each piece, and whether it was missed


def _linear_attack(
    releases: Sequence[Mapping[str, np.ndarray]], parts: Mapping[str, Sequence[Piece]], names: Sequence[str]
) -> Attempts:
    """That of the statistics which err least on the validation part; it trains on overlapping pieces."""
    whole: dict[str, list[Piece]] = {}
    for piece in parts["train"]:
        whole.setdefault(piece.utt, []).append(piece)
    learned = [
        Piece(utt, start, stop, mine[0].label)
        for utt, mine in whole.items()
        for start, stop in windows(mine[0].start, mine[-1].stop, len(mine))
    ]
    found = []
    for kind in KINDS:

        def of(pieces: Sequence[Piece], kind: str = kind) -> np.ndarray:
            rows = [statistics(x[piece.utt][piece.start : piece.stop], kind) for x in releases for piece in pieces]
            return np.stack(rows)

        attacker = NearestMean(of(learned), [piece.label for _ in releases for piece in learned])
        attempts = {}
        for part, pieces in parts.items():
            labels = [piece.label for _ in releases for piece in pieces]
            said = attacker(of(pieces)).tolist()
            attempts[part] = [(names[label], label != other) for label, other in zip(labels, said, strict=True)]
        found.append(attempts)
    return min(found, key=lambda attempts: sum(miss for _, miss in attempts["valid"]))


def _errors(attempts: Attempts, replicates: int) -> dict[str, float]:
    """Shares of missed pieces; of the test part with an interval, by a bootstrap over speakers."""
    test = attempts["test"]
    interval = bootstrap_ratio(
        [float(miss) for _, miss in test], np.ones(len(test)), [name for name, _ in test], replicates
    )
    share = {part: float(np.mean([miss for _, miss in rows])) for part, rows in attempts.items()}
    names = {"error": share["test"], "error_low": interval.low, "error_high": interval.high}
    return names | {"train_error": share["train"], "valid_error": share["valid"]}


def _check(releases: Sequence[Mapping[str, np.ndarray]], lengths: Mapping[str, int]) -> None:
    dim = releases[0][next(iter(lengths))].shape[1]
    for release in releases:
        for utt, num in lengths.items():
            x = release[utt]
            if x.shape != (num, dim) or not np.isfinite(x).all():
                raise EvaluationError(f"{utt}: expected finite features [{num}, {dim}], got {list(x.shape)}")


def _moments(release: Mapping[str, np.ndarray], pieces: Sequence[Piece]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each feature over the training pieces. (M,), (M,)"""
    dim = release[pieces[0].utt].shape[1]
    count, total, square = 0, np.zeros(dim), np.zeros(dim)
    for piece in pieces:
        x = release[piece.utt][piece.start : piece.stop].astype(np.float64)
        count, total, square = count + len(x), total + x.sum(0), square + (x**2).sum(0)
    mean = total / count
    deviation = np.sqrt(np.maximum(square / count - mean**2, 0.0)) + 1e-8
    return mean.astype(np.float32), deviation.astype(np.float32)
