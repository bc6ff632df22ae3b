"""A training is the same training in one process and in two."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from parallel_job import trainings

from dpanon.errors import ConfigError
from dpanon.train.parallel import SharedDraws, Workers, average, join

JOB = Path(__file__).with_name("parallel_job.py")


def start(out, rank, size, port):
    torchrun = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | {k: str(v) for k, v in torchrun.items()}
    return subprocess.Popen([sys.executable, JOB, out], env=env, stderr=subprocess.PIPE, text=True)


def test_two_processes_train_as_one_does(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    jobs = [start(tmp_path / f"worker{k}", k, 2, port) for k in (0, 1)]
    alone = trainings(tmp_path / "alone")
    for job in jobs:
        _, errors = job.communicate(timeout=120)
        assert job.returncode == 0, errors
    for name in ("worker0", "worker1"):
        found = json.loads((tmp_path / name / "found.json").read_text())
        assert found["regression"] == pytest.approx(alone["regression"], abs=1e-5)
        assert found["speakers"] == pytest.approx(alone["speakers"], abs=1e-4)
        assert found["ragged"] == pytest.approx(alone["ragged"], abs=1e-5)
        assert found["vocoder"] == pytest.approx(alone["vocoder"], abs=1e-4)
    assert (tmp_path / "worker0/regression/checkpoint.pt").exists()
    assert not (tmp_path / "worker1/regression/checkpoint.pt").exists()  # one writes


def draws(num):
    torch.manual_seed(5)
    x = torch.zeros(num, 3)
    return [
        torch.rand(num),
        torch.randn(num, 2),
        torch.rand((num, 1)),
        torch.randn_like(x),
        torch.rand_like(x),
        torch.empty_like(x).exponential_(),
        torch.empty_like(x).normal_(1.0, 2.0),
        torch.empty_like(x).uniform_(2.0, 3.0),
        torch.nn.Dropout(0.5)(x + 1.0),
        torch.nn.Dropout(0.5)(torch.ones(num, 4, 3).transpose(1, 2)),
    ]


def test_shares_of_what_is_drawn_are_the_whole():
    shares = []
    for rank in (0, 1, 2):
        with SharedDraws(Workers(rank, 3), 2):
            shares.append(draws(2))
    for whole, *parts in zip(draws(6), *shares, strict=True):
        torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=0)


def test_what_has_no_row_per_example_is_the_same_for_all():
    with SharedDraws(Workers(0, 2), 4):
        torch.manual_seed(1)
        first = torch.randn(3), torch.randn(())
    torch.manual_seed(1)
    for value, other in zip(first, (torch.randn(3), torch.randn(())), strict=True):
        torch.testing.assert_close(value, other, rtol=0, atol=0)


def test_a_batch_that_cannot_be_shared_is_an_error():
    assert Workers(1, 2).share([1, 2, 3, 4]) == [3, 4]
    with pytest.raises(ConfigError, match="3 processes cannot share a batch of 4"):
        Workers(0, 3).share([1, 2, 3, 4])


def test_alone_nothing_is_averaged(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    value = torch.ones(2)
    average([value])
    assert join() == Workers() and value.tolist() == [1.0, 1.0]
