"""Transducer: padding is not heard, searches find what was learned, and the large configuration has its size."""

import dataclasses

import pytest
import torch

from dpanon.models.transducer import BLANK, Transducer, TransducerConfig, aishell_config, best_texts, search

TINY = TransducerConfig(
    vocabulary=5, width=16, layers=1, heads=2, kernel=3, embedding=8, prediction=16, joint=16, dropout=0.0
)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Transducer(TINY).eval()


def test_shapes_and_padding(model):
    x = torch.randn(2, 40, 80)
    lengths, targets = torch.tensor([40, 27]), torch.tensor([[1, 2, 3], [4, 0, 0]])
    logits, frames = model(x, lengths, targets)
    assert logits.shape == (2, 9, 4, 5)
    assert frames.tolist() == [9, 6]
    alone, _ = model(x[1:, :27], lengths[1:], targets[1:, :1])
    torch.testing.assert_close(alone, logits[1:, :6, :2], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="two strided convolutions"):
        model(x, torch.tensor([40, 6]), targets)


def test_one_utterance_does_not_change_another(model):
    """Also in training mode: no batch normalisation."""
    model.train()
    x, lengths, targets = torch.randn(2, 30, 80), torch.tensor([30, 30]), torch.tensor([[1, 2], [3, 4]])
    first, _ = model(x, lengths, targets)
    x[1] = 7.0
    second, _ = model(x, lengths, targets)
    torch.testing.assert_close(first[0], second[0])


def test_searches_say_what_was_learned(model):
    torch.manual_seed(1)
    x = torch.zeros(2, 40, 80)
    x[0, :20, :40], x[0, 20:, 40:], x[1, :20, 40:], x[1, 20:, :40] = 2.0, 2.0, 2.0, 2.0
    targets, lengths = torch.tensor([[1, 2], [3, 4]]), torch.tensor([40, 40])
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(400):
        optimizer.zero_grad()
        loss = model.loss(x, lengths, targets, torch.tensor([2, 2]))
        loss.backward()
        optimizer.step()
        if loss < 0.1:
            break
    model.eval()
    assert loss < 0.1
    for beam in (1, 3):
        assert search(model, x, lengths, beam) == [(1, 2), (3, 4)]
    assert all(BLANK not in said for said in search(model, torch.randn(2, 40, 80), lengths, 2))


def test_a_batch_is_searched_as_each_of_its_utterances(model):
    """Greedy search has a batch at once; beams come with their log-probabilities, in order."""
    x, lengths = 3 * torch.randn(3, 60, 80), torch.tensor([60, 20, 41])
    with torch.no_grad():
        model.out.bias[BLANK] -= 1.0  # so that much is said
    together = search(model, x, lengths)
    assert any(together)
    assert together == [search(model, x[i : i + 1, :n], lengths[i : i + 1])[0] for i, n in enumerate(lengths.tolist())]
    for found in best_texts(model, x, lengths, 4):
        scores = [score for _, score in found]
        assert len(found) == 4 and scores == sorted(scores, reverse=True)
        assert len({labels for labels, _ in found}) == 4
    one = Transducer(TransducerConfig(2, width=16, layers=1, heads=2, kernel=3, embedding=8, prediction=16)).eval()
    assert all(BLANK not in labels for labels, _ in best_texts(one, x[:1], lengths[:1], 4)[0]), "one label, wide beam"


def test_a_log_probability_of_the_search_is_that_of_the_loss():
    """A beam that keeps everything adds up all paths."""
    model = Transducer(dataclasses.replace(TINY, max_symbols=2)).eval()
    x, lengths = torch.randn(1, 11, 80), torch.tensor([11])
    found = dict(best_texts(model, x, lengths, 1000)[0])
    for labels in ((), (1,), (2, 3)):
        loss = model.loss(x, lengths, torch.tensor([labels], dtype=torch.long), torch.tensor([len(labels)]))
        assert found[labels] == pytest.approx(-loss.item(), abs=1e-4)


def test_the_large_configuration_has_the_size_of_the_paper():
    with torch.device("meta"):  # no memory is taken
        size = sum(parameter.numel() for parameter in Transducer(aishell_config()).parameters())
    assert size == pytest.approx(135e6, rel=0.05)


def test_what_cannot_be_built_or_searched_is_refused(model):
    for wrong in ({"heads": 3}, {"kernel": 4}, {"vocabulary": 1}, {"dropout": 1.0}):
        with pytest.raises(ValueError, match="heads must divide"):
            TransducerConfig(**({"vocabulary": 5, "width": 16} | wrong))
    with pytest.raises(ValueError, match="beam"):
        search(model, torch.zeros(1, 20, 80), torch.tensor([20]), 0)
