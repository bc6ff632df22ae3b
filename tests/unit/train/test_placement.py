"""What a training makes, it makes on its GPU, if there is one. Here there is a pretended one: placement_job.py."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from dpanon.train import parallel

JOB = Path(__file__).with_name("placement_job.py")


def test_nothing_of_a_training_is_left_on_the_cpu(data, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, JOB, data.path, tmp_path / "out"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "all of it there" in done.stdout


@pytest.fixture
def two_gpus(monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(torch, "set_default_device", chosen.append)
    return chosen


@pytest.mark.parametrize("rank", [None, "1"])
def test_each_process_takes_the_gpu_of_its_rank(two_gpus, monkeypatch, rank):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if rank is not None:
        monkeypatch.setenv("LOCAL_RANK", rank)
    device = torch.device("cuda", int(rank or 0))
    assert parallel.place() == device and two_gpus == [device, device]


def test_without_a_gpu_it_is_the_cpu():
    assert parallel.place() == torch.device("cpu") and parallel.tensor(np.ones(2)).device.type == "cpu"


@pytest.mark.parametrize("name", ["train_bn", "train_synth", "train_f0", "train_intonation", "score_asi"])
def test_a_command_finds_its_place_before_it_makes_anything(name):
    source = (Path(parallel.__file__).parents[1] / "cli" / f"{name}.py").read_text(encoding="utf-8")
    main = source[source.index("def main(") :]
    place = main.index("parallel.place()")
    assert all(place < main.index(call) for call in ("load_bottleneck(", "identify(", "train_pitch(") if call in main)
