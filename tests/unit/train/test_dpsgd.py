"""DP-SGD: coins for batches, clipping by unit, noise of the accountant; the same network with and without Opacus."""

import numpy as np
import pytest
import torch

from dpanon.models.commands import Commands, CommandsConfig
from dpanon.privacy import PrivacyError
from dpanon.train import dpsgd
from dpanon.train.commands import Utterances
from dpanon.train.dpsgd import DpSgdConfig, clipped_sum, poisson_batch, train_dpsgd

SMALL = CommandsConfig(hidden=4, layers=1, heads=2, bands=8)


def utterances(num=40):
    generator = torch.Generator().manual_seed(0)
    return Utterances(
        [f"u{i:02d}" for i in range(num)], [torch.randn(12 + i % 5, 8, generator=generator) for i in range(num)]
    )


def test_batches_are_coins():
    sizes = [len(poisson_batch(1000, 0.3)) for _ in range(300)]
    assert abs(np.mean(sizes) - 300) < 5 * (210 / 300) ** 0.5
    assert 0.7 < np.var(sizes) / 210 < 1.4
    assert poisson_batch(1000, 0.5) != poisson_batch(1000, 0.5), "no seed"
    assert poisson_batch(50, 1.0) == list(range(50))
    for rate in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(PrivacyError, match="rate"):
            poisson_batch(10, rate)


def parameter(rows):
    found = torch.nn.Parameter(torch.zeros(rows.shape[1:]))
    found.grad_sample = rows
    return found


def test_one_unit_moves_the_sum_by_at_most_the_bound():
    rows = torch.randn(6, 50) * torch.tensor([1e-3, 1.0, 1e3, 1e30, 5.0, 0.0])[:, None]
    two = [parameter(rows[:, :20]), parameter(rows[:, 20:].reshape(6, 5, 6))]
    whole = clipped_sum(two, 0.7)
    for i in range(6):
        others = [j for j in range(6) if j != i]
        less = clipped_sum([parameter(p.grad_sample[others]) for p in two], 0.7)
        assert np.linalg.norm(whole - less) <= 0.7 + 1e-9
    small = clipped_sum([parameter(rows[:1])], 0.7)
    np.testing.assert_allclose(small, rows[0].double().numpy(), rtol=1e-6)  # short gradients stay


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_gradient_that_is_not_finite_counts_as_none(bad):
    rows = torch.ones(2, 3)
    rows[0, 1] = bad
    np.testing.assert_allclose(clipped_sum([parameter(rows)], 10.0), [1, 1, 1], rtol=1e-9)


def test_a_run_costs_what_was_asked_for_and_noises_every_step(monkeypatch):
    pytest.importorskip("opacus")
    seen = []

    class Spy(dpsgd.SystemNoise):
        def add_gaussian(self, x, sigma, bound):
            seen.append((x.copy(), sigma, bound))
            return super().add_gaussian(x, sigma, bound)

    monkeypatch.setattr(dpsgd, "SystemNoise", Spy)
    config = DpSgdConfig(steps=5, model=SMALL, batch=10, max_grad_norm=0.5, lr=0.1)
    labels = torch.arange(40) % 3
    model, guarantee, figures = train_dpsgd(config, utterances(), labels, 3, 8.0, 1e-5)
    assert 7.8 < guarantee.epsilon(1e-5) <= 8.0
    assert guarantee.releasable
    assert len(seen) == 5, "an empty batch is noised as well"
    size = sum(p.numel() for p in model.parameters())
    for total, sigma, bound in seen:
        assert total.shape == (size,)
        assert sigma == pytest.approx(figures["noise_multiplier"] * 0.5)
        assert np.linalg.norm(total) <= bound == 0.5 * 40
    assert isinstance(model.lstm, torch.nn.LSTM)


def test_opacus_layers_compute_the_same_network():
    layers = pytest.importorskip("opacus.layers")
    torch.manual_seed(0)
    plain = Commands(3, SMALL)
    private = Commands(3, SMALL, layers.DPLSTM)
    dpsgd.copy_weights(plain, private)
    x, lengths = utterances().batch(range(6))
    torch.testing.assert_close(plain(x, lengths), private(x, lengths), rtol=1e-4, atol=1e-5)


def test_what_the_claim_does_not_hold_for_is_refused():
    labels = torch.zeros(40, dtype=torch.long)
    with pytest.raises(PrivacyError, match="take a smaller one"):
        train_dpsgd(DpSgdConfig(steps=5, model=SMALL, batch=40), utterances(), labels, 3, 8.0, 1e-5)
    for epsilon, delta in ((0.0, 1e-5), (float("inf"), 1e-5), (8.0, 0.0), (8.0, float("nan"))):
        with pytest.raises(PrivacyError):
            train_dpsgd(DpSgdConfig(steps=5, model=SMALL, batch=10), utterances(), labels, 3, epsilon, delta)
    for wrong in ({"steps": 0}, {"batch": 0}, {"max_grad_norm": 0.0}, {"lr": -1.0}):
        with pytest.raises(ValueError, match="must be > 0"):
            DpSgdConfig(**({"steps": 5} | wrong))
