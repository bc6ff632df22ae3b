"""Teachers that say sequences: every position of every utterance is a query about one token.

A vote on whole sentences has no bounded set of classes, and the noise of GNMax would be drawn for all that can be said.
So teachers vote on each position up to a public number of them, 0 (no more tokens) being a class; what is
after the end is asked and paid for as well, or the number of queries would tell about the answers.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import read_partition
from dpanon.data.tokens import decode
from dpanon.errors import DataDirError
from dpanon.models.transducer import BLANK, load_transducer
from dpanon.train.transducer import read_speech, recognise


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


def at_positions(said: Sequence[tuple[int, ...]], positions: int) -> np.ndarray:
    """``(Q * positions,)``: token numbers, cut or filled up with the end."""
    rows = [[*one[:positions], *[BLANK] * (positions - len(one))] for one in said]
    return np.array(rows, dtype=np.int64).reshape(-1)


def texts_of(labels: np.ndarray, utts: Sequence[str], tokens: Sequence[str]) -> dict[str, str]:
    """Text of each utterance, up to its end; those without an answer before it, or with nothing said, are left out."""
    found = {}
    for utt, row in zip(utts, labels.reshape(len(utts), -1).tolist(), strict=True):
        said = row[: row.index(BLANK)] if BLANK in row else row
        if said and min(said) > BLANK:
            found[utt] = decode(said, tokens)
    return found
