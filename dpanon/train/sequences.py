"""Teachers that say sequences: each chooses one of a few public texts, or every position is a query about one token.

Candidates are what a public model finds in public speech, so their list is public and a vote on an utterance is one
query. It cannot be right where no candidate is.

A vote on whole sentences has no bounded set of classes, and the noise of GNMax would be drawn for all that can be said.
So without candidates teachers vote on each position up to a public number of them, 0 (no more tokens) being a class;
what is after the end is asked and paid for as well, or the number of queries would tell about the answers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import read_partition
from dpanon.data.tokens import decode
from dpanon.errors import DataDirError
from dpanon.models.transducer import BLANK, Transducer, best_texts, load_transducer
from dpanon.models.transducer_loss import transducer_loss
from dpanon.train.commands import Utterances
from dpanon.train.transducer import long_enough, pad_labels, read_speech, recognise


def ask_tokens(
    folder: Path, public: DataDir, utts: Sequence[str], positions: int
) -> tuple[np.ndarray, tuple[str, ...]]:
    """One-hot answers ``(T, Q * positions, V)`` of all teachers, class 0 being the end: private. And the tokens."""
    speech, found, tokens = read_speech(public, utts), [], None
    for number in range(1, read_partition(folder / "partition.json").teachers + 1):
        model, known = load_transducer(folder / str(number) / "model.pt")
        if tokens is not None and known != tokens:
            raise DataDirError(f"{folder}/{number}: was trained with another list of tokens")
        tokens = known
        found.append(at_positions(recognise(model, speech), positions))
    assert tokens is not None
    return np.eye(len(tokens) + 1)[np.stack(found)], tokens


def ask_candidates(
    folder: Path, public: DataDir, utts: Sequence[str], start: Path, number: int
) -> tuple[np.ndarray, list[list[str]]]:
    """Posteriors ``(T, Q, number)`` of all teachers on the candidates: private. And the texts of these, public.

    Args:
        start: folder of the public model whose beam search finds the candidates.
        number: of them; an utterance with fewer has empty ones at the end, of posterior 0.
    """
    speech, (model, tokens) = read_speech(public, utts), load_transducer(start / "model.pt")
    candidates = candidates_of(model, speech, number)
    found = []
    for teacher in range(1, read_partition(folder / "partition.json").teachers + 1):
        model, known = load_transducer(folder / str(teacher) / "model.pt")
        if known != tokens:
            raise DataDirError(f"{folder}/{teacher}: was trained with another list of tokens than {start}")
        found.append(np.stack([posterior(model, speech, i, candidates[i], number) for i in range(len(speech))]))
    texts = [[decode(one, tokens) for one in row] + [""] * (number - len(row)) for row in candidates]
    return np.stack(found), texts


def candidates_of(model: Transducer, speech: Utterances, number: int) -> list[list[tuple[int, ...]]]:
    """At most ``number`` label sequences of each utterance, the best first."""
    found = []
    for i in range(len(speech)):
        (best,) = best_texts(model, *long_enough(*speech.batch([i])), number)
        found.append([labels for labels, _ in best])
    return found


@torch.no_grad()
def posterior(
    model: Transducer, speech: Utterances, index: int, candidates: Sequence[tuple[int, ...]], number: int
) -> np.ndarray:
    """How much a model believes in each candidate: all that it says of them, normalised. ``(number,)``"""
    x, num_frames = long_enough(*speech.batch([index]))
    encoded, num_frames = model.encode(x, num_frames)
    targets, num_labels = pad_labels(candidates)
    predicted, _ = model.predict(torch.nn.functional.pad(targets, (1, 0), value=BLANK))
    logits = model.join(encoded.expand(len(candidates), -1, -1), predicted)
    losses = transducer_loss(logits, targets, num_frames.expand(len(candidates)), num_labels, reduction="none")
    return np.pad((-losses).double().softmax(0).numpy(), (0, number - len(candidates)))


def at_positions(said: Sequence[tuple[int, ...]], positions: int) -> np.ndarray:
    """``(Q * positions,)``: token numbers, cut or filled up with the end."""
    rows = [[*one[:positions], *[BLANK] * (positions - len(one))] for one in said]
    return np.array(rows, dtype=np.int64).reshape(-1)


def texts_of(labels: np.ndarray, utts: Sequence[str], tokens: Sequence[str]) -> dict[str, str]:
    """Text of each utterance, up to its end; left out: no end, no answer before it, nothing said."""
    found = {}
    for utt, row in zip(utts, labels.reshape(len(utts), -1).tolist(), strict=True):
        said = row[: row.index(BLANK)] if BLANK in row else []  # with no end, the text would be cut
        if said and min(said) > BLANK:
            found[utt] = decode(said, tokens)
    return found
