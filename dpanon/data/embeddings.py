"""Sets of one vector per utterance: a data directory with xvector.scp, with or without its recordings."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dpanon.data.arrays import ArrayWriter, load_scp
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.errors import DataDirError, UsageError

TABLE = "xvector.scp"
LABELS = ("utt2spk", "spk2gender", "utt2lang", "spk2lang")  # other tables were made from the speech


def read_set(path: str | Path) -> tuple[DataDir, np.ndarray]:
    """The set and its vectors in the order of its utterances, ``(N, D)`` float32.

    Raises:
        DataDirError: no xvector.scp, an utterance without a vector, vectors of different lengths, NaN or infinity.
    """
    data = DataDir.read(path, audio=False)
    data.table(TABLE)  # every utterance has a row
    arrays = load_scp(data.path / TABLE)
    rows = [arrays[utt] for utt in data.utts]
    for utt, row in zip(data.utts, rows, strict=True):
        if row.ndim != 1 or row.shape != rows[0].shape:
            raise DataDirError(f"{data.path}/{TABLE}: {utt!r}: expected a vector, as the others, got {list(row.shape)}")
        if not np.isfinite(row).all():
            raise DataDirError(f"{data.path}/{TABLE}: {utt!r}: NaN or infinite entries; extract it again")
    return data, np.stack(rows)


def sexes(data: DataDir) -> np.ndarray:
    """(N,) float32 of the utterances: 1 female, 0 male, NaN where it is unknown."""
    of = {"f": 1.0, "m": 0.0, None: np.nan}
    known = {speaker: of[data.sex(speaker)] for speaker in data.speakers}
    return np.asarray([known[data.speaker(utt)] for utt in data.utts], dtype=np.float32)


def write_set(
    source: DataDir, vectors: np.ndarray, out: Path, finish: Callable[[Path], None] = lambda path: None
) -> DataDir:
    """Labels, trials and enrolls of ``source`` with ``vectors`` (N, D) instead of its recordings -> ``out``.

    The directory gets its name when it is complete; nothing in it names a path. ``finish`` adds files before that.

    Raises:
        UsageError: ``out`` exists: a second release would cost its privacy a second time.
    """
    if os.path.lexists(out):
        raise UsageError(f"{out} exists: choose another directory, or remove it to release the set a second time")
    tmp = out.with_name(f".{out.name}.tmp{os.getpid()}")
    trials = source.trials() if source.has("trials") else None
    try:
        write_data_dir(
            tmp,
            {name: source.table(name) for name in LABELS if source.has(name)},
            trials,
            source.enrolls or None,
            audio=False,
        )
        with ArrayWriter(tmp / TABLE, relative=True) as writer:
            for utt, vector in zip(source.utts, vectors, strict=True):
                writer[utt] = vector
        read_set(tmp)
        finish(tmp)
        tmp.rename(out)
    except BaseException:
        shutil.rmtree(tmp, ignore_errors=True)
        raise
    return DataDir.read(out, audio=False)
