"""CTC searches against all paths, and a model without prediction network that learns and is loaded again."""

import itertools

import numpy as np
import pytest
import torch

from dpanon.models.ctc_search import greedy, prefixes
from dpanon.models.transducer import (
    Transducer,
    TransducerConfig,
    best_texts,
    load_transducer,
    save_transducer,
    search,
)


def collapse(path):
    return tuple(label for label, _ in itertools.groupby(path) if label)


def test_the_best_path_without_repetitions_and_blanks():
    paths = torch.tensor([[1, 1, 0, 1, 2, 2], [0, 0, 2, 1, 1, 1]])
    logits = torch.nn.functional.one_hot(paths, 3).float()
    assert greedy(logits, torch.tensor([6, 4])) == [(1, 1, 2), (2, 1)]


def test_prefixes_add_up_all_paths():
    log_p = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    expected = {}
    for path in itertools.product(range(3), repeat=4):
        score = float(sum(log_p[t, label] for t, label in enumerate(path)))
        expected[collapse(path)] = np.logaddexp(expected.get(collapse(path), -np.inf), score)
    found = prefixes(log_p, beam=100)
    assert dict(found) == pytest.approx(expected, abs=1e-5)
    assert [labels for labels, _ in found] == sorted(expected, key=expected.get, reverse=True)


def test_prefixes_beat_the_best_path():
    """Blank is the likeliest path, but most of the probability says 1."""
    log_p = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).log()
    assert greedy(log_p[None], torch.tensor([2])) == [()]
    ((labels, score), _) = prefixes(log_p, beam=2)
    assert labels == (1,)
    assert score == pytest.approx(np.log(0.4 * 0.4 + 2 * 0.6 * 0.4))


def test_a_model_without_prediction_network_learns_and_is_loaded_again(tmp_path):
    torch.manual_seed(1)
    model = Transducer(TransducerConfig(5, "lstm", width=16, kernel=3, dropout=0.0, decoder="ctc"))
    x, lengths, targets = torch.zeros(2, 24, 80), torch.tensor([24, 24]), torch.tensor([[1, 2], [3, 4]])
    x[0, :12, :40], x[0, 12:, 40:], x[1, :12, 40:], x[1, 12:, :40] = 1.0, 1.0, 2.0, 2.0
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    for _ in range(200):
        optimizer.zero_grad()
        loss = model.loss(x, lengths, targets, torch.tensor([2, 2]))
        loss.backward()
        optimizer.step()
        if loss < 0.3:
            break
    save_transducer(model, ["a", "b", "c", "d"], tmp_path / "model.pt")
    again, _ = load_transducer(tmp_path / "model.pt")
    for beam in (1, 4):
        assert search(again, x, lengths, beam) == [(1, 2), (3, 4)]
    ((labels, score), *_) = best_texts(again, x, lengths, 4)[0]
    assert labels == (1, 2)
    assert -score == pytest.approx(again.loss(x[:1], lengths[:1], targets[:1], torch.tensor([2])).item(), abs=1e-3)
