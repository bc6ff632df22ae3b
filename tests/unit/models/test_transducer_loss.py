"""The transducer loss against all paths, written out, and against what else computes it."""

import itertools
import math

import pytest
import torch

from dpanon.models.transducer_loss import transducer_loss


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
