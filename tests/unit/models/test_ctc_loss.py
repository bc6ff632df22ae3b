"""The CTC loss against all its paths, its libraries by their interface, and what it leaves out."""

import itertools
import math
import sys
import types

import pytest
import torch

from dpanon.errors import MissingDependencyError, UsageError
from dpanon.models.ctc_loss import choose, ctc_loss


def by_all_paths(log_probs, labels):
    """-log of the sum over every sequence of T symbols that reads as ``labels``."""
    total, rows = 0.0, log_probs.exp().tolist()
    for path in itertools.product(range(len(rows[0])), repeat=len(rows)):
        if [symbol for symbol, _ in itertools.groupby(path) if symbol] == list(labels):
            total += math.prod(row[symbol] for row, symbol in zip(rows, path, strict=True))
    return -math.log(total)


def example():
    torch.manual_seed(0)
    return torch.randn(4, 4, 3).log_softmax(-1), [(1, 2), (), (2, 2), (1, 1, 1)], [3, 4, 4, 4]


def test_it_is_the_sum_over_all_paths_per_label():
    log_probs, said, num_frames = example()  # the second has no label, the last needs 5 frames and has 4
    wanted = [by_all_paths(log_probs[i, : num_frames[i]], said[i]) / len(said[i]) for i in (0, 2)]
    assert ctc_loss(log_probs, said, num_frames).item() == pytest.approx(sum(wanted) / 2, abs=1e-5)


def test_what_says_nothing_or_does_not_fit_counts_for_nothing():
    log_probs, said, num_frames = example()
    log_probs.requires_grad_()
    ctc_loss(log_probs, said, num_frames).backward()
    moved = log_probs.grad.abs().sum((1, 2)) > 0
    assert moved.tolist() == [True, False, True, False]
    assert not log_probs.grad[0, 3].any()  # beyond its frames
    nothing = ctc_loss(log_probs, [(), (), (), (1, 1, 1)], num_frames)
    assert nothing.item() == 0.0 and nothing.requires_grad


def fake_k2(monkeypatch):
    """The interface of k2's loss, which is torch's inside."""
    k2, seen = types.ModuleType("k2"), []

    class DenseFsaVec:
        def __init__(self, log_probs, supervision_segments):
            assert supervision_segments.dtype == torch.int32 and supervision_segments.device.type == "cpu"
            number, start, num = supervision_segments.T.tolist()
            assert number == list(range(len(log_probs))) and not any(start)
            assert num == sorted(num, reverse=True), "k2 wants the longest first"
            self.log_probs, self.num = log_probs, num

    def ctc_graph(symbols, modified=False, device="cpu"):
        assert not modified and all(isinstance(symbol, int) for row in symbols for symbol in row)
        return symbols

    def loss(decoding_graph, dense_fsa_vec, output_beam, reduction):
        seen.append(output_beam)
        assert reduction == "none"
        x, num = dense_fsa_vec.log_probs, dense_fsa_vec.num
        rows = zip(x, num, decoding_graph, strict=True)
        return torch.tensor([by_all_paths(row[:frames], labels) for row, frames, labels in rows])

    k2.DenseFsaVec, k2.ctc_graph, k2.ctc_loss = DenseFsaVec, ctc_graph, loss
    monkeypatch.setitem(sys.modules, "k2", k2)
    return seen


def test_k2_is_called_by_its_interface_and_chosen_where_it_is(monkeypatch):
    seen = fake_k2(monkeypatch)
    assert choose("auto") == choose("k2") == "k2" and choose("torch") == "torch"
    log_probs, said, num_frames = example()
    torch.testing.assert_close(
        ctc_loss(log_probs, said, num_frames, "k2"), ctc_loss(log_probs, said, num_frames), rtol=1e-5, atol=1e-5
    )
    assert seen == [20.0]


def test_without_k2_auto_is_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "k2", None)
    assert choose("auto") == "torch"
    with pytest.raises(MissingDependencyError, match="torch needs nothing"):
        choose("k2")
    with pytest.raises(UsageError, match="ctc_loss must be one of torch, k2, auto"):
        choose("warp")
