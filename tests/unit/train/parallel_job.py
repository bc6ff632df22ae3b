"""Tiny trainings for test_parallel.py; as a program, one of the processes of torchrun: parallel_job.py OUT"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from dpanon.attack.identification import IdentificationConfig, identify
from dpanon.models.acoustic import AcousticConfig, LogMel
from dpanon.models.losses import StftLoss
from dpanon.privacy import BottleneckFrames
from dpanon.synth.nsf import Nsf, NsfConfig
from dpanon.train import parallel
from dpanon.train.loop import LoopConfig, train, update


class Noisy(nn.Module):
    """A regression with every kind of noise and a running mean."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.noise = BottleneckFrames(epsilon=100.0, dim=8).train_noise()
        self.register_buffer("running", torch.zeros(8))

    def forward(self, x):
        x = self.noise(x + 0.1 * torch.randn_like(x)) * (torch.rand(len(x), 1, 8) > 0.1) + 0.1 * torch.randn(1, 8)
        y = self.layer(x + torch.randn((len(x), 1, 8)))
        self.running = 0.9 * self.running + 0.1 * y.detach().mean((0, 1))
        return y


def regression(out: Path) -> dict[str, float]:
    torch.manual_seed(0)
    model, judge = Noisy(), nn.Linear(8, 1)
    with torch.no_grad():  # other weights in every process: those of the first must win
        model.layer.weight += torch.rand(()) * int(out.name == "worker1")
    optimizers = [torch.optim.Adam(module.parameters()) for module in (model, judge)]
    data = torch.randn(16, 5, 8, generator=torch.Generator().manual_seed(1))

    def step(index, rows, rng):
        x = data[rows]
        made = model(x)
        update(torch.relu(1 - judge(x) + judge(made.detach())).mean(), judge, optimizers[1], 1.0)
        loss = (made - x).square().mean() - 0.1 * judge(made).mean()
        update(loss, model, optimizers[0], 1.0)
        return {"loss": loss.item()}

    state = {"model": model, "judge": judge, "a": optimizers[0], "b": optimizers[1]}
    loop = LoopConfig(steps=8, lr=0.01, warmup=2)
    figures = train(out / "regression", loop, state, optimizers, lambda e: [range(8), range(8, 16)], step)
    return {"loss": figures["loss"], "weight": model.layer.weight.sum().item(), "running": model.running.sum().item()}


def speakers(out: Path) -> dict[str, float]:
    rng = np.random.default_rng(0)
    voices = {f"s{i}": rng.normal(size=(1, 6)) for i in range(4)}
    released = {f"{name}-u": (voice + rng.normal(size=(100, 6))).astype(np.float32) for name, voice in voices.items()}
    config = IdentificationConfig(LoopConfig(8, 0.01, 2), channels=8, pooled=8, embedding=8, batch=8, replicates=10)
    found = identify(config, [released], {utt: utt.split("-")[0] for utt in released}, out / "speakers")
    return {"error": found["error"], "loss": found["loss"]}


def vocoder(out: Path) -> dict[str, float]:
    """An acoustic model and a neural source-filter, whose source draws noise for every sample."""
    torch.manual_seed(0)
    acoustic = AcousticConfig(content=6, channels=8, slow_blocks=1, fast_blocks=1)
    model = Nsf(NsfConfig(acoustic, condition=8, condition_blocks=1, channels=4, blocks=1, layers=2))
    optimizer = torch.optim.Adam(model.parameters())
    draw = torch.Generator().manual_seed(1)
    content, voice = torch.randn(8, 10, 6, generator=draw), torch.randn(8, 192, generator=draw)
    f0 = 100 + 50 * torch.rand(8, 20, generator=draw)
    samples = 0.1 * torch.rand(8, 1, generator=draw) * torch.randn(8, 3200, generator=draw)  # of every loudness
    log_mel, spectral = LogMel(), StftLoss()

    def step(index, rows, rng):
        true = samples[rows]
        mel = model.acoustic(content[rows], f0[rows], voice[rows])
        made = model.wave(mel.detach(), f0[rows], voice[rows], torch.rand(len(rows)))
        of_acoustic, of_wave = (mel - log_mel(true)).abs().mean(), spectral(made, true)
        update(of_acoustic + of_wave, model, optimizer, 5.0)
        return {"acoustic": of_acoustic.item(), "wave": of_wave.item()}

    loop = LoopConfig(steps=4, lr=0.01, warmup=2)
    state = {"model": model, "optimizer": optimizer}
    figures = train(out / "vocoder", loop, state, [optimizer], lambda e: [range(4), range(4, 8)], step)
    return {"acoustic": figures["acoustic"], "wave": figures["wave"]}


def ragged(out: Path) -> dict[str, float]:
    """Recordings of unequal lengths: the loss is a mean over their frames, and noise is drawn for the padding, too."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())
    draw = torch.Generator().manual_seed(1)
    data = [torch.randn(num, 3, generator=draw) for num in (9, 2, 4, 3, 5, 8, 2, 7)]

    def step(index, rows, rng):
        most = parallel.longest(max(len(data[row]) for row in rows))
        x = torch.stack([functional.pad(data[row], (0, 0, 0, most - len(data[row]))) for row in rows])
        valid = torch.stack([torch.arange(most) < len(data[row]) for row in rows])
        made = model(x + 0.1 * torch.randn_like(x))[..., 0]
        loss = parallel.part(valid.sum()) * (made - x.sum(2))[valid].square().mean()
        update(loss, model, optimizer, 5.0)
        return {"loss": loss.item()}

    loop = LoopConfig(steps=6, lr=0.1, warmup=2)
    state = {"model": model, "optimizer": optimizer}
    figures = train(out / "ragged", loop, state, [optimizer], lambda e: [range(4), range(4, 8)], step)
    return {"loss": figures["loss"], "weight": model.weight.sum().item()}


def trainings(out: Path) -> dict[str, dict[str, float]]:
    out.mkdir(parents=True, exist_ok=True)
    return {"regression": regression(out), "speakers": speakers(out), "vocoder": vocoder(out), "ragged": ragged(out)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    found = trainings(folder)
    (folder / "found.json").write_text(json.dumps(found))
