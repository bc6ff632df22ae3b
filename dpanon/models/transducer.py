"""RNN transducer (Graves 2012): Conformer encoder, LSTM prediction network, additive joint (paper D: 135 M weights)."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dpanon.errors import DataDirError
from dpanon.models import ctc_search
from dpanon.models.transducer_encoder import LEAST, REDUCTION, TransducerConfig, choose_encoder, make_encoder
from dpanon.models.transducer_loss import WholeLattice

__all__ = ["BLANK", "REDUCTION", "Transducer", "TransducerConfig", "aishell_config", "search"]
BLANK = 0


def aishell_config(vocabulary: int = 4233) -> TransducerConfig:
    """Paper D's size, 135 M parameters within 5 % with either encoder: 4233 characters of AISHELL-1 with the blank."""
    return TransducerConfig(
        vocabulary,
        width=512,
        layers=17,
        heads=8,
        kernel=31,
        embedding=512,
        prediction=1024,
        prediction_layers=2,
        joint=640,
    )


class Transducer(nn.Module):
    """Encoder, prediction network and joint.

    Shape:
        fbank: ``(N, T, 80)`` log-mel, or ``(N, T, 384)`` of Whisper's encoder where the configuration says
            ``features: content``; num_frames ``(N,)``; targets ``(N, U)`` without blanks.
        forward returns: logits ``(N, T', U + 1, V)`` and ``T'`` of each utterance ``(N,)``, T' = T / 4 or a bit less.
    """

    def __init__(self, config: TransducerConfig):
        super().__init__()
        self.config = config = replace(config, encoder=choose_encoder(config.encoder))
        width = config.width
        self.encoder = make_encoder(config)
        if config.decoder == "transducer":
            self.embedding = nn.Embedding(config.vocabulary, config.embedding, padding_idx=BLANK)
            self.prediction = nn.LSTM(config.embedding, config.prediction, config.prediction_layers, batch_first=True)
            self.from_encoder = nn.Linear(width, config.joint)
            self.from_prediction = nn.Linear(config.prediction, config.joint, bias=False)
            self.out = nn.Linear(config.joint, config.vocabulary)
        self.frames_out = nn.Linear(width, config.vocabulary)  # CTC on the encoder; of a transducer in training only

    def encode(self, fbank: Tensor, num_frames: Tensor) -> tuple[Tensor, Tensor]:
        """``(N, T, 80) -> (N, T', width)`` and the lengths; at least 7 frames each."""
        if int(num_frames.min()) < LEAST:
            raise ValueError(f"an utterance of {int(num_frames.min())} frames: two strided convolutions need {LEAST}")
        return self.encoder(fbank, num_frames)

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
        self,
        fbank: Tensor,
        num_frames: Tensor,
        targets: Tensor,
        num_labels: Tensor,
        ctc: float = 0.0,
        objective: nn.Module | None = None,
    ) -> Tensor:
        """Mean negative log-likelihood; ``ctc`` of it is CTC on the encoder (Watanabe et al. 2017): aligned sooner.

        ``objective`` is one of ``make_objective``; None: the whole lattice, in torch.
        """
        encoded, num_frames = self.encode(fbank, num_frames)
        of_frames = encoded.new_zeros(())
        if ctc or self.config.decoder == "ctc":
            log_p = self.frames_out(encoded).log_softmax(-1).transpose(0, 1)  # (N, T', V) -> (T', N, V)
            of_frames = nn.functional.ctc_loss(
                log_p, targets, num_frames, num_labels, BLANK, reduction="none", zero_infinity=True
            ).mean()
        if self.config.decoder == "ctc":
            return of_frames
        predicted, _ = self.predict(nn.functional.pad(targets, (1, 0), value=BLANK))
        objective = WholeLattice() if objective is None else objective
        loss = objective(self, encoded, predicted, targets, num_frames, num_labels)
        return (1.0 - ctc) * loss + ctc * of_frames


class Hypothesis(NamedTuple):
    """Labels said so far, their log-probability, and the prediction network after them."""

    labels: tuple[int, ...]
    score: float
    predicted: Tensor  # (joint,)
    state: tuple[Tensor, Tensor]  # (layers, prediction) each


@torch.no_grad()
def search(model: Transducer, fbank: Tensor, num_frames: Tensor, beam: int = 1) -> list[tuple[int, ...]]:
    """Labels of each utterance: greedy for a beam of 1, else time-synchronous beam search that adds up equal labels.

    Of a model without prediction network (``decoder: ctc``) the labels of each frame alone, or by prefix beam search.

    ``(N, T, 80)``, ``(N,)``; every frame says at most ``max_symbols`` labels.
    """
    if beam < 1:
        raise ValueError(f"beam must be >= 1, got {beam}")
    if beam > 1:
        return [found[0][0] for found in best_texts(model, fbank, num_frames, beam)]
    encoded, lengths = model.encode(fbank, num_frames)
    if model.config.decoder == "ctc":
        return ctc_search.greedy(model.frames_out(encoded), lengths)
    return _greedy(model, model.from_encoder(encoded), lengths)


@torch.no_grad()
def best_texts(
    model: Transducer, fbank: Tensor, num_frames: Tensor, beam: int
) -> list[list[tuple[tuple[int, ...], float]]]:
    """At most ``beam`` label sequences of each utterance with their log-probabilities, the best first."""
    encoded, lengths = model.encode(fbank, num_frames)
    if model.config.decoder == "ctc":
        log_p = model.frames_out(encoded).log_softmax(-1)
        return [ctc_search.prefixes(log_p[i, : int(lengths[i])], beam) for i in range(len(log_p))]
    frames = model.from_encoder(encoded)  # (N, T', J)
    return [_beam(model, frames[i, : int(lengths[i])], beam) for i in range(len(frames))]


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


def _greedy(model: Transducer, frames: Tensor, lengths: Tensor) -> list[tuple[int, ...]]:
    """All utterances at once, frame by frame. ``(N, T', J)``, ``(N,)``"""
    num = len(frames)
    hidden, (h, c) = model.predict(frames.new_full((num, 1), BLANK, dtype=torch.long))
    predicted = model.from_prediction(hidden)[:, 0]  # (N, J)
    said: list[list[int]] = [[] for _ in range(num)]
    for t in range(frames.shape[1]):
        rows = (lengths > t).nonzero()[:, 0]
        for _ in range(model.config.max_symbols):
            labels = model.out(torch.tanh(frames[rows, t] + predicted[rows])).argmax(-1)
            rows, labels = rows[labels != BLANK], labels[labels != BLANK]
            if not len(rows):
                break
            for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
                said[row].append(label)
            hidden, (h[:, rows], c[:, rows]) = model.predict(labels[:, None], (h[:, rows], c[:, rows]))
            predicted[rows] = model.from_prediction(hidden)[:, 0]
    return [tuple(one) for one in said]


def _beam(model: Transducer, frames: Tensor, beam: int) -> list[tuple[tuple[int, ...], float]]:
    """One utterance, ``(T', J)``; all hypotheses of a frame at once."""
    hidden, (h, c) = model.predict(frames.new_full((1, 1), BLANK, dtype=torch.long))
    kept = [Hypothesis((), 0.0, model.from_prediction(hidden)[0, 0], (h[:, 0], c[:, 0]))]
    for frame in frames:
        done: dict[tuple[int, ...], Hypothesis] = {}
        active = kept
        for symbol in range(model.config.max_symbols + 1):
            predicted = torch.stack([one.predicted for one in active])
            table = model.out(torch.tanh(frame + predicted)).log_softmax(-1)
            table = table + table.new_tensor([one.score for one in active])[:, None]
            for one, score in zip(active, table[:, BLANK].tolist(), strict=True):
                _add(done, one._replace(score=score))
            if symbol == model.config.max_symbols:
                break
            table[:, BLANK] = -torch.inf
            best = table.flatten().topk(min(beam, table.numel()))
            least = sorted((one.score for one in done.values()), reverse=True)[:beam][-1] if len(done) >= beam else None
            chosen = [
                (active[index // table.shape[1]], index % table.shape[1], score)
                for score, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
                if score > (-torch.inf if least is None else least)
            ]
            if not chosen:
                break
            active = _extend(model, chosen)
        kept = sorted(done.values(), key=lambda one: one.score, reverse=True)[:beam]
    return [(one.labels, one.score) for one in kept]


def _extend(model: Transducer, chosen: list[tuple[Hypothesis, int, float]]) -> list[Hypothesis]:
    """Each hypothesis with one more label, and the log-probability of both."""
    labels = torch.tensor([[label] for _, label, _ in chosen], device=chosen[0][0].predicted.device)
    h, c = (torch.stack([one.state[i] for one, _, _ in chosen], 1) for i in range(2))  # (layers, A, prediction)
    hidden, (h, c) = model.predict(labels, (h, c))
    predicted = model.from_prediction(hidden)[:, 0]
    return [
        Hypothesis((*one.labels, label), score, predicted[i], (h[:, i], c[:, i]))
        for i, (one, label, score) in enumerate(chosen)
    ]


def _add(done: dict[tuple[int, ...], Hypothesis], one: Hypothesis) -> None:
    """Equal labels by other paths: their probabilities add up."""
    there = done.get(one.labels)
    if there is not None:
        one = one._replace(score=float(np.logaddexp(there.score, one.score)))
    done[one.labels] = one
