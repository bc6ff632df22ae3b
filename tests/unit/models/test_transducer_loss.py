"""The transducer loss against all paths, written out, and against what else computes it."""

import itertools
import math
import sys
import types

import pytest
import torch

from dpanon.errors import MissingDependencyError, UsageError
from dpanon.models.transducer import Transducer, TransducerConfig
from dpanon.models.transducer_loss import PrunedLattice, WholeLattice, loads, make_objective, transducer_loss


def by_enumeration(log_p, labels, blank=0):
    """-ln of the sum over every order of T blanks (the last one last) and the labels. (T, U + 1, V) -> ()"""
    frames = log_p.shape[0]
    total = []
    for places in itertools.combinations(range(frames - 1 + len(labels)), len(labels)):
        t = u = 0
        score = log_p.new_zeros(())
        for position in range(frames - 1 + len(labels)):
            if position in places:
                score, u = score + log_p[t, u, labels[u]], u + 1
            else:
                score, t = score + log_p[t, u, blank], t + 1
        total.append(score + log_p[t, u, blank])
    return -torch.stack(total).logsumexp(0)


def example(n=3, t=4, u=3, v=5, seed=0, blank=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, t, u + 1, v, generator=generator, dtype=torch.float64) * 2
    targets = torch.randint(0, v - 1, (n, u), generator=generator)
    targets = targets + (targets >= blank)
    num_frames = torch.tensor([t, max(1, t - 2), t])[:n]
    num_labels = torch.tensor([u, max(0, u - 1), 0])[:n]
    return logits.requires_grad_(), targets, num_frames, num_labels


@pytest.mark.parametrize(("t", "u", "v", "blank"), [(4, 3, 5, 0), (1, 2, 3, 0), (5, 1, 2, 1), (3, 4, 6, 5)])
def test_value_and_gradient_are_those_of_all_paths(t, u, v, blank):
    logits, targets, num_frames, num_labels = example(t=t, u=u, v=v, blank=blank, seed=t)
    losses = transducer_loss(logits, targets, num_frames, num_labels, blank, reduction="none")
    weights = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    (found,) = torch.autograd.grad((losses * weights).sum(), logits)
    log_p = logits.log_softmax(-1)
    expected = torch.stack(
        [
            by_enumeration(log_p[i, : num_frames[i], : num_labels[i] + 1], targets[i, : num_labels[i]].tolist(), blank)
            for i in range(3)
        ]
    )
    (gradient,) = torch.autograd.grad((expected * weights).sum(), logits)
    torch.testing.assert_close(losses, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found, gradient, rtol=1e-8, atol=1e-10)


def test_uniform_lattice_counts_its_paths():
    """All scores equal: C(T - 1 + U, U) paths of T + U steps, each with probability V^-(T + U)."""
    t, u, v = 30, 12, 7
    loss = transducer_loss(torch.zeros(1, t, u + 1, v), torch.ones(1, u, dtype=torch.long), *torch.tensor([[t], [u]]))
    assert loss.item() == pytest.approx((t + u) * math.log(v) - math.log(math.comb(t - 1 + u, u)), rel=1e-6)


def test_padding_changes_nothing():
    logits, targets, num_frames, num_labels = example(seed=3)
    alone = [
        transducer_loss(
            logits[i : i + 1, : num_frames[i], : num_labels[i] + 1],
            targets[i : i + 1, : num_labels[i]],
            num_frames[i : i + 1],
            num_labels[i : i + 1],
        )
        for i in range(3)
    ]
    with torch.no_grad():
        logits[1, num_frames[1] :] = 1e4
        logits[1, :, num_labels[1] + 1 :] = -1e4
    together = transducer_loss(logits, targets, num_frames, num_labels, reduction="none")
    torch.testing.assert_close(together, torch.stack(alone))
    (gradient,) = torch.autograd.grad(together.sum(), logits)
    assert not gradient[1, num_frames[1] :].any()
    assert not gradient[1, :, num_labels[1] + 1 :].any()


def test_long_and_extreme_lattices_stay_finite():
    logits = (torch.randn(1, 300, 41, 20) * 50).requires_grad_()
    loss = transducer_loss(logits, torch.randint(1, 20, (1, 40)), torch.tensor([300]), torch.tensor([40]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient.sum(-1).abs().max() < 1e-3  # of a softmax


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"num_frames": torch.tensor([5, 1, 1])}, "num_frames must be"),
        ({"num_frames": torch.tensor([0, 1, 1])}, "num_frames must be"),
        ({"num_labels": torch.tensor([4, 0, 0])}, "num_labels must be"),
        ({"targets": torch.zeros(3, 3, dtype=torch.long)}, "not the blank"),
        ({"targets": torch.ones(3, 2, dtype=torch.long)}, "expected logits"),
    ],
)
def test_what_does_not_fit_is_refused(change, match):
    logits, targets, num_frames, num_labels = example()
    arguments = {"targets": targets, "num_frames": num_frames, "num_labels": num_labels} | change
    with pytest.raises(ValueError, match=match):
        transducer_loss(logits, **arguments)


def test_a_backend_that_is_not_there_names_itself():
    logits, targets, num_frames, num_labels = example()
    for backend in ("k2", "torchaudio"):
        try:
            __import__(backend)
        except (ImportError, OSError):
            with pytest.raises(Exception, match=f"loss of {backend} cannot be loaded"):
                transducer_loss(logits, targets, num_frames, num_labels, backend=backend)


@pytest.mark.parametrize("library", ["torchaudio", "warprnnt_numba"])
def test_other_implementations_agree(library):
    try:
        other = __import__(library)
    except (ImportError, OSError):
        pytest.skip(f"{library} is not there")
    logits, targets, num_frames, num_labels = example(t=12, u=5, v=9)
    ours = logits.detach().float().requires_grad_()
    theirs = logits.detach().float().requires_grad_()
    loss = transducer_loss(ours, targets, num_frames, num_labels, reduction="sum")
    if library == "torchaudio":
        expected = transducer_loss(theirs, targets, num_frames, num_labels, reduction="sum", backend="torchaudio")
    else:
        call = other.RNNTLossNumba(blank=0, reduction="sum")
        expected = call(theirs, targets.int(), num_frames.int(), num_labels.int()).sum()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-3)
    loss.backward()
    expected.backward()
    assert (ours.grad - theirs.grad).abs().max() < 1e-3


def no_library(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)


def fake_torchaudio(monkeypatch):
    """The interface of torchaudio.functional.rnnt_loss, which wants int32."""
    module = types.ModuleType("torchaudio.functional")

    def rnnt_loss(logits, targets, logit_lengths, target_lengths, blank=-1, clamp=-1, reduction="mean"):
        assert targets.dtype == logit_lengths.dtype == target_lengths.dtype == torch.int32
        return transducer_loss(logits, targets.long(), logit_lengths, target_lengths, blank, reduction)

    module.rnnt_loss = rnnt_loss
    monkeypatch.setitem(sys.modules, "torchaudio.functional", module)


def fake_k2(monkeypatch):
    """The interface of k2's losses; its ranges are all labels, so that nothing is pruned."""
    k2 = types.ModuleType("k2")

    def lengths(boundary, symbols):
        assert boundary.dtype == symbols.dtype == torch.int64
        assert not boundary[:, :2].any()
        return boundary[:, 3], boundary[:, 2]

    def rnnt_loss(logits, symbols, termination_symbol, boundary, reduction="mean"):
        return transducer_loss(logits, symbols, *lengths(boundary, symbols), termination_symbol, reduction)

    def rnnt_loss_smoothed(
        lm, am, symbols, termination_symbol, lm_only_scale, am_only_scale, boundary, reduction, return_grad
    ):
        assert return_grad
        (n, u), t = symbols.shape, am.shape[1]
        loss = rnnt_loss(am[:, :, None] + lm[:, None], symbols, termination_symbol, boundary, reduction)
        return loss, (torch.zeros(n, u, t + 1), torch.zeros(n, u + 1, t))

    def get_rnnt_prune_ranges(px_grad, py_grad, boundary, s_range):
        (n, u, _), t = px_grad.shape, py_grad.shape[2]
        assert s_range == 5
        return torch.arange(u + 1).expand(n, t, u + 1)

    def do_rnnt_pruning(am, lm, ranges):
        n, t, kept = ranges.shape
        chosen = ranges[..., None].expand(-1, -1, -1, lm.shape[2])
        return am[:, :, None].expand(-1, -1, kept, -1), lm[:, None].expand(-1, t, -1, -1).gather(2, chosen)

    def rnnt_loss_pruned(logits, symbols, ranges, termination_symbol, boundary, reduction):
        assert logits.shape[:3] == ranges.shape
        return rnnt_loss(logits, symbols, termination_symbol, boundary, reduction)

    for function in (rnnt_loss, rnnt_loss_smoothed, get_rnnt_prune_ranges, do_rnnt_pruning, rnnt_loss_pruned):
        setattr(k2, function.__name__, function)
    monkeypatch.setitem(sys.modules, "k2", k2)


def test_libraries_are_called_by_their_interface(monkeypatch):
    fake_torchaudio(monkeypatch)
    fake_k2(monkeypatch)
    logits, *rest = example()
    expected = transducer_loss(logits, *rest, reduction="none")
    for backend in ("torchaudio", "k2"):
        torch.testing.assert_close(transducer_loss(logits, *rest, reduction="none", backend=backend), expected)


def test_auto_takes_k2_then_torchaudio_then_torch(monkeypatch):
    fake_torchaudio(monkeypatch)
    fake_k2(monkeypatch)
    assert isinstance(make_objective("auto", 4, 4, 5), PrunedLattice)
    no_library(monkeypatch, "k2")
    assert make_objective("auto", 4, 4, 5).backend == "torchaudio"

    def broken(*arguments, **options):
        raise RuntimeError("No such operator torchaudio::rnnt_loss")

    monkeypatch.setattr(sys.modules["torchaudio.functional"], "rnnt_loss", broken)
    assert not loads("torchaudio")
    found = make_objective("auto", 4, 4, 5)
    assert isinstance(found, WholeLattice)
    assert found.backend == "torch"
    for name in ("k2", "torchaudio"):
        with pytest.raises(MissingDependencyError, match="torch needs nothing"):
            transducer_loss(*example(), backend=name)
    with pytest.raises(MissingDependencyError, match="k2 cannot be loaded"):
        make_objective("k2", 4, 4, 5)
    with pytest.raises(UsageError, match="loss must be one of"):
        make_objective("warp", 4, 4, 5)


def test_the_pruned_loss_trains_the_same_transducer_and_its_own_simple_joint(monkeypatch):
    fake_k2(monkeypatch)
    torch.manual_seed(0)
    config = TransducerConfig(5, width=8, layers=1, heads=2, kernel=3, embedding=4, prediction=8, joint=8, dropout=0.0)
    model, pruned = Transducer(config), make_objective("k2", 8, 8, 5)
    batch = torch.randn(2, 40, 80), torch.tensor([40, 27]), torch.tensor([[1, 2, 3], [4, 1, 1]]), torch.tensor([3, 1])
    whole, found = model.loss(*batch), model.loss(*batch, objective=pruned)
    encoded, num_frames = model.encode(*batch[:2])
    predicted, _ = model.predict(torch.nn.functional.pad(batch[2], (1, 0)))
    simple = pruned.of_frames(encoded)[:, :, None] + pruned.of_labels(predicted)[:, None]
    torch.testing.assert_close(found, whole + 0.5 * transducer_loss(simple, batch[2], num_frames, batch[3]))
    found.backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in (pruned.of_labels.weight, model.out.weight))
