"""The loss of connectionist temporal classification (Graves et al. 2006), by torch or by k2."""

import importlib
from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import functional

from dpanon.errors import MissingDependencyError, UsageError

BACKENDS = ("torch", "k2")
OBJECTIVES = (*BACKENDS, "auto")


def choose(name: str) -> str:
    """The backend of an objective: ``auto`` is k2 where it can be imported, torch otherwise.

    Raises:
        MissingDependencyError: k2 is asked for and cannot be imported.
        UsageError: an unknown name.
    """
    if name not in OBJECTIVES:
        raise UsageError(f"ctc_loss must be one of {', '.join(OBJECTIVES)}, got {name!r}")
    if name == "torch":
        return name
    try:
        _k2()
    except MissingDependencyError:
        if name == "k2":
            raise
        return "torch"
    return "k2"


def ctc_loss(
    log_probs: Tensor, said: Sequence[Sequence[int]], num_frames: Sequence[int], backend: str = "torch"
) -> Tensor:
    """Negative log-likelihood of each label sequence, divided by the number of its labels; the mean of these.

    Sequences that have no label, or do not fit into their frames, count for nothing. 0 if none is left.

    Args:
        said: labels of each utterance, in 1..V - 1; 0 is the blank.

    Shape:
        log_probs: ``(N, T, V)``; num_frames: N numbers in 1..T.
    """
    kept = counted(said, num_frames)
    if not kept:
        return log_probs.sum() * 0.0  # every head has a gradient, in every process
    kept.sort(key=lambda i: -num_frames[i])  # as k2 wants them
    x, labels = log_probs[torch.tensor(kept, device=log_probs.device)], [list(said[i]) for i in kept]
    frames, num = torch.tensor([num_frames[i] for i in kept]), torch.tensor([len(row) for row in labels])
    if backend == "k2":
        losses = _by_k2(x, labels, frames)
    else:
        flat = torch.tensor([label for row in labels for label in row], device=x.device)
        losses = functional.ctc_loss(x.transpose(0, 1), flat, frames, num, reduction="none")  # (N, T, V) -> (T, N, V)
    return (losses / num.to(losses)).mean()


def counted(said: Sequence[Sequence[int]], num_frames: Sequence[int]) -> list[int]:
    """Which sequences have labels, and fit into their frames."""
    return [i for i, labels in enumerate(said) if labels and _least(labels) <= num_frames[i]]


def _by_k2(log_probs: Tensor, labels: list[list[int]], frames: Tensor) -> Tensor:
    """Loss of each sequence, (N,); all paths are kept that the float range holds."""
    k2 = _k2()
    segments = torch.stack([torch.arange(len(frames)), torch.zeros_like(frames), frames], 1).int().cpu()
    graph = k2.ctc_graph(labels, modified=False, device=log_probs.device)
    return k2.ctc_loss(graph, k2.DenseFsaVec(log_probs, segments), output_beam=20.0, reduction="none")


def _least(labels: Sequence[int]) -> int:
    """Frames that a sequence needs: one for each label, and a blank between equal ones."""
    return len(labels) + sum(a == b for a, b in zip(labels, labels[1:], strict=False))


def _k2() -> ModuleType:
    try:
        return importlib.import_module("k2")
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            f"the CTC loss of k2 cannot be loaded ({error}); ctc_loss torch needs nothing"
        ) from error
