import json

import numpy as np
import pytest
import torch

from dpanon.train.loop import LoopConfig, learning_rate, train, update


class Stop(Exception):
    pass


def run(out, steps=20, stop_at=None, save_minutes=0.0):
    torch.manual_seed(3)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(index, batch, rng):
        if index == stop_at:
            raise Stop
        x = torch.randn(8, 4) + batch + float(rng.random())
        loss = (model(x) - x).pow(2).mean() + 0.01 * torch.randn(())
        update(loss, model, optimizer, 1.0)
        return {"loss": loss.item()}

    config = LoopConfig(steps=steps, warmup=5, save_minutes=save_minutes)
    figures = train(
        out, config, {"model": model, "optimizer": optimizer}, [optimizer], lambda e: [e + i for i in range(6)], step
    )
    return model, figures


@pytest.mark.parametrize("stop_at", [1, 6, 13])
def test_a_stopped_run_resumes_to_the_same_weights(tmp_path, stop_at):
    whole, _ = run(tmp_path / "whole")
    with pytest.raises(Stop):
        run(tmp_path / "parts", stop_at=stop_at)
    parts, _ = run(tmp_path / "parts")
    torch.testing.assert_close(whole.weight, parts.weight, rtol=0, atol=0)


def test_a_finished_run_does_nothing_more(tmp_path):
    first, _ = run(tmp_path)
    second, _ = run(tmp_path, stop_at=20)
    torch.testing.assert_close(first.weight, second.weight, rtol=0, atol=0)


def test_log_and_figures(tmp_path):
    _, figures = run(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert rows[-1]["step"] == 20 and np.isfinite(figures["loss"]) and figures["epochs"] == 3


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    with pytest.raises(FloatingPointError, match="loss is not finite at step 0"):
        train(tmp_path, LoopConfig(steps=2), {}, [], lambda e: [0], lambda i, b, r: {"loss": float("nan")})


def test_learning_rate_rises_then_falls():
    config = LoopConfig(steps=100, lr=1.0, warmup=10)
    rates = [learning_rate(config, s) for s in range(100)]
    assert rates[:10] == sorted(rates[:10]) and rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.05, abs=0.01)
