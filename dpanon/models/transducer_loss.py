"""The transducer loss (Graves 2012), vectorised over anti-diagonals of the lattice, in torch alone.

All paths of one utterance go through cells (t, u): t frames were left behind by blanks, u labels were said. Cells with
equal t + u depend on those of t + u - 1 only, so a diagonal of all utterances is one operation: T + U of them forward
and as many backward, in place of T * U. The gradient comes from the forward and backward sums, so nothing is kept for
autograd but two numbers per cell.
"""

import importlib
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from dpanon.errors import MissingDependencyError, UsageError

BACKENDS = ("torch", "torchaudio", "k2")
OBJECTIVES = (*BACKENDS, "auto")  # of a training; k2 is the pruned one then


def transducer_loss(
    logits: Tensor,
    targets: Tensor,
    num_frames: Tensor,
    num_labels: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    backend: str = "torch",
) -> Tensor:
    """Negative log-likelihood of the label sequences.

    Args:
        reduction: ``none`` (N,), ``sum`` or ``mean`` over utterances.
        backend: ``torch`` (this module), or ``torchaudio`` or ``k2`` where they can be loaded.

    Shape:
        logits: ``(N, T, U + 1, V)`` not normalised; targets ``(N, U)`` in [0, V), never ``blank`` where it counts;
        num_frames ``(N,)`` in 1..T; num_labels ``(N,)`` in 0..U.

    Raises:
        ValueError: shapes or lengths that do not fit.
        MissingDependencyError: the backend cannot be loaded.
    """
    _check(logits, targets, num_frames, num_labels, blank)
    if backend not in BACKENDS:
        raise UsageError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if backend == "torch":
        losses = _Lattice.apply(logits, targets, num_frames, num_labels, blank)
    else:
        losses = _library(backend, logits, targets, num_frames, num_labels, blank)
    if reduction == "none":
        return losses
    if reduction not in ("sum", "mean"):
        raise UsageError(f"reduction must be none, sum or mean, got {reduction!r}")
    return losses.sum() if reduction == "sum" else losses.mean()


class _Lattice(torch.autograd.Function):
    """(logits (N, T, U + 1, V), targets (N, U), lengths, number of the blank) -> losses (N,).

    The softmax is taken here: its gradient and that of the two labels of a cell are then one pass over the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, num_frames: Tensor, num_labels: Tensor, number: int
    ) -> Tensor:
        norm = logits.logsumexp(-1)
        chosen = targets[:, None, :, None].expand(-1, logits.shape[1], -1, 1)
        blank = logits[..., number] - norm
        label = logits[:, :, :-1].gather(-1, chosen)[..., 0] - norm[:, :, :-1]
        n, t, u1 = blank.shape
        frame = torch.arange(t, device=blank.device)[None, :, None]
        said = torch.arange(u1, device=blank.device)[None, None]
        inside = (frame < num_frames[:, None, None]) & (said <= num_labels[:, None, None])
        more = inside & (said < num_labels[:, None, None])  # a label may follow
        last = inside & (frame == num_frames[:, None, None] - 1)
        end = last & (said == num_labels[:, None, None])  # its blank ends the path
        label = torch.nn.functional.pad(label, (0, 1))
        stay = _skew(blank.double().masked_fill(~inside | (last & ~end), -torch.inf))  # (N, D, U + 1)
        move = _skew(label.double().masked_fill(~more, -torch.inf))
        final = _skew(torch.where(end, 0.0, -torch.inf).double())
        alpha, beta = _sums(stay, move, final)
        score = (alpha + stay + final).flatten(1).logsumexp(1)  # of each utterance
        after = torch.nn.functional.pad(beta, (0, 0, 0, 1), value=-torch.inf)[:, 1:]
        follow = torch.nn.functional.pad(after, (0, 1), value=-torch.inf)[..., 1:]
        grad_stay = _unskew(-(alpha + stay + torch.logaddexp(after, final) - score[:, None, None]).exp(), t)
        grad_move = _unskew(-(alpha + move + follow - score[:, None, None]).exp(), t)
        ctx.save_for_backward(logits, norm, chosen, grad_stay.to(norm.dtype), grad_move.to(norm.dtype))
        ctx.number = number
        return -score.to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        logits, norm, chosen, stay, move = ctx.saved_tensors
        scale = grads[0][:, None, None]
        stay, move = stay * scale, move * scale
        grad = (logits - norm[..., None]).exp_().mul_(-(stay + move)[..., None])
        grad[..., ctx.number] += stay
        grad[:, :, :-1].scatter_add_(-1, chosen, move[:, :, :-1, None])
        return grad, None, None, None, None


def _sums(stay: Tensor, move: Tensor, final: Tensor) -> tuple[Tensor, Tensor]:
    """Log-sums over all paths into each cell, and from it to the end. ``(N, D, U + 1)`` each."""
    n, diagonals, u1 = stay.shape
    alpha = torch.full_like(stay, -torch.inf)
    alpha[:, 0, 0] = 0.0
    moved = torch.full((n, u1), -torch.inf, dtype=stay.dtype, device=stay.device)
    for d in range(1, diagonals):
        moved[:, 1:] = (alpha[:, d - 1] + move[:, d - 1])[:, :-1]
        torch.logaddexp(alpha[:, d - 1] + stay[:, d - 1], moved, out=alpha[:, d])
    beta = torch.full_like(stay, -torch.inf)
    beta[:, -1] = stay[:, -1] + final[:, -1]
    follow = torch.full_like(moved, -torch.inf)
    for d in range(diagonals - 2, -1, -1):
        follow[:, :-1] = beta[:, d + 1, 1:]
        torch.logaddexp(torch.logaddexp(beta[:, d + 1], final[:, d]) + stay[:, d], follow + move[:, d], out=beta[:, d])
    return alpha, beta


def _skew(x: Tensor) -> Tensor:
    """Cell (t, u) -> (t + u, u), -inf elsewhere. ``(N, T, U + 1) -> (N, T + U, U + 1)``"""
    n, t, u1 = x.shape
    wide = torch.full((n, t + u1 - 1, u1), -torch.inf, dtype=x.dtype, device=x.device)
    wide.as_strided((n, t, u1), (wide.stride(0), u1, u1 + 1)).copy_(x)
    return wide


def _unskew(x: Tensor, t: int) -> Tensor:
    """The inverse. ``(N, T + U, U + 1) -> (N, T, U + 1)``"""
    n, _, u1 = x.shape
    x = x.contiguous()
    return x.as_strided((n, t, u1), (x.stride(0), u1, u1 + 1))


def _check(logits: Tensor, targets: Tensor, num_frames: Tensor, num_labels: Tensor, blank: int) -> None:
    if logits.dim() != 4 or targets.shape != (logits.shape[0], logits.shape[2] - 1):
        raise ValueError(
            f"expected logits (N, T, U + 1, V) and targets (N, U), got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    n, t, u1, v = logits.shape
    for name, values, low, high in (("num_frames", num_frames, 1, t), ("num_labels", num_labels, 0, u1 - 1)):
        if values.shape != (n,) or int(values.min()) < low or int(values.max()) > high:
            raise ValueError(f"{name} must be (N,) in {low}..{high}, got {values.tolist()}")
    counts = torch.arange(u1 - 1, device=targets.device)[None] < num_labels[:, None]
    bad = counts & ((targets < 0) | (targets >= v) | (targets == blank))
    if not 0 <= blank < v or bool(bad.any()):
        raise ValueError(f"labels must be in 0..{v - 1} and not the blank {blank}")


def loads(backend: str) -> bool:
    """Whether a backend computes something here: packages may be there and not work."""
    two, one = torch.tensor([2]), torch.tensor([1])
    try:
        transducer_loss(torch.zeros(1, 2, 2, 3), one[None], two, one, backend=backend)
    except MissingDependencyError:
        return False
    return True


def make_objective(name: str, width: int, prediction: int, vocabulary: int) -> "WholeLattice | PrunedLattice":
    """What a transducer is trained with: ``torch``, ``torchaudio``, ``k2`` (pruned), or ``auto``, the best that works.

    Args:
        width, prediction: channels of the encoder and of the prediction network.
    """
    if name not in OBJECTIVES:
        raise UsageError(f"loss must be one of {', '.join(OBJECTIVES)}, got {name!r}")
    if name == "auto":
        name = next(backend for backend in ("k2", "torchaudio", "torch") if loads(backend))
    return PrunedLattice(width, prediction, vocabulary) if name == "k2" else WholeLattice(name)


class WholeLattice(nn.Module):
    """Mean of ``transducer_loss`` over a batch, all pairs of frames and labels being joined."""

    def __init__(self, backend: str = "torch"):
        super().__init__()
        self.backend = backend

    def forward(
        self, model: Any, encoded: Tensor, predicted: Tensor, targets: Tensor, num_frames: Tensor, num_labels: Tensor
    ) -> Tensor:
        """``(N, T, M)``, ``(N, U + 1, P)``, ``(N, U)``, lengths ``(N,)`` -> ``()``; ``model`` is a Transducer."""
        logits = model.join(encoded, predicted)
        return transducer_loss(logits, targets, num_frames, num_labels, backend=self.backend)


class PrunedLattice(nn.Module):
    """k2's pruned loss (Kuang et al. 2022, arXiv:2206.13236): of each frame only ``kept`` labels are joined.

    Which ones, a simple joint says that adds logits of the encoder to logits of the prediction network. Both are
    learned here, beside the transducer, with ``share`` of the weight of the pruned loss; no search needs them.
    """

    def __init__(self, width: int, prediction: int, vocabulary: int, kept: int = 5, share: float = 0.5):
        super().__init__()
        self.k2 = _k2()
        self.of_frames, self.of_labels = nn.Linear(width, vocabulary), nn.Linear(prediction, vocabulary)
        self.kept, self.share = kept, share

    def forward(
        self, model: Any, encoded: Tensor, predicted: Tensor, targets: Tensor, num_frames: Tensor, num_labels: Tensor
    ) -> Tensor:
        """As that of ``WholeLattice``."""
        boundary = _boundary(num_frames, num_labels)
        common = {"symbols": targets, "termination_symbol": 0, "boundary": boundary, "reduction": "mean"}
        simple, (moves, stays) = self.k2.rnnt_loss_smoothed(
            lm=self.of_labels(predicted).float(),
            am=self.of_frames(encoded).float(),
            lm_only_scale=0.25,
            am_only_scale=0.0,
            return_grad=True,
            **common,
        )
        ranges = self.k2.get_rnnt_prune_ranges(px_grad=moves, py_grad=stays, boundary=boundary, s_range=self.kept)
        frames, labels = self.k2.do_rnnt_pruning(
            am=model.from_encoder(encoded), lm=model.from_prediction(predicted), ranges=ranges
        )
        logits = model.out(torch.tanh(frames + labels)).float()  # (N, T, kept, V)
        return self.share * simple + self.k2.rnnt_loss_pruned(logits=logits, ranges=ranges, **common)


def _k2() -> ModuleType:
    try:
        return importlib.import_module("k2")
    except (ImportError, OSError) as error:
        raise _missing("k2", error) from error


def _boundary(num_frames: Tensor, num_labels: Tensor) -> Tensor:
    """As k2 wants it: (first label, first frame, labels, frames) of each utterance. ``(N, 4)``"""
    zero = torch.zeros_like(num_frames)
    return torch.stack([zero, zero, num_labels, num_frames], 1).long()


def _missing(backend: str, error: Exception) -> MissingDependencyError:
    return MissingDependencyError(
        f"the transducer loss of {backend} cannot be loaded ({error}); backend torch needs nothing"
    )


def _library(
    backend: str, logits: Tensor, targets: Tensor, num_frames: Tensor, num_labels: Tensor, blank: int
) -> Tensor:
    if backend == "k2":
        boundary = _boundary(num_frames, num_labels)
        return _k2().rnnt_loss(logits, targets, blank, boundary, reduction="none")
    try:
        rnnt_loss = importlib.import_module("torchaudio.functional").rnnt_loss
        lengths = (num_frames.int(), num_labels.int())
        return rnnt_loss(logits, targets.int(), *lengths, blank=blank, reduction="none")
    except (ImportError, OSError, AttributeError, RuntimeError) as error:
        raise _missing(backend, error) from error
