"""One plain training loop: progress, an ETA, and exact resume.

A run that is stopped and started again makes the same weights as one that was not: what a step
does depends only on the saved state and on (seed, epoch, position), never on the time of the call.
"""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from dpanon.train import parallel

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class LoopConfig:
    """How long and how fast; part of every training configuration."""

    steps: int
    lr: float = 1e-3
    warmup: int = 200
    final_lr: float = 0.05  # of lr, at the last step (cosine)
    clip: float = 5.0  # gradient norm
    save_minutes: float = 2.0
    seed: int = 1


def learning_rate(config: LoopConfig, step: int) -> float:
    """Linear warm-up, then a cosine down to ``final_lr * lr``."""
    if step < config.warmup:
        return config.lr * (step + 1) / config.warmup
    progress = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.lr * (config.final_lr + (1 - config.final_lr) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


def train(
    out: Path,
    config: LoopConfig,
    stateful: dict[str, Any],
    optimizers: Sequence[torch.optim.Optimizer],
    epoch_batches: Callable[[int], Sequence[Any]],
    step_fn: Callable[[int, Any, np.random.Generator], dict[str, float]],
    label: str = "training",
    stop: Callable[[int], bool] | None = None,
) -> dict[str, float]:
    """Run ``step_fn`` for ``config.steps`` steps, resuming from ``out`` when there is a checkpoint.

    Args:
        out: directory of checkpoint.pt and log.jsonl.
        stateful: name -> object with state_dict/load_state_dict: modules and optimizers.
        optimizers: those whose learning rate follows the schedule.
        epoch_batches: epoch -> its batches, a pure function of the epoch.
        step_fn: (step, batch, random generator) -> figures to log; it does forward, backward and step.
        stop: asked after each epoch (its number, from 0) whether the run ends there: early stopping. What it remembers
            belongs into ``stateful``.

    Returns:
        The mean of the logged figures over the last tenth of the run.
    """
    out.mkdir(parents=True, exist_ok=True)
    workers = parallel.join()
    modules = [item for item in stateful.values() if isinstance(item, torch.nn.Module)]
    step, epoch, position, seconds = 0, 0, 0, 0.0
    checkpoint = out / CHECKPOINT
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        for name, item in stateful.items():
            item.load_state_dict(saved["state"][name])
        step, epoch, position, seconds = (saved[k] for k in ("step", "epoch", "position", "seconds"))
    workers.start_alike(modules)
    began, batches = step, epoch_batches(epoch)
    recent: list[dict[str, float]] = []
    start = last_save = time.monotonic()

    def save() -> None:
        nonlocal last_save
        last_save = time.monotonic()
        if workers.rank == 0:
            state = {name: item.state_dict() for name, item in stateful.items()}
            place = {"step": step, "epoch": epoch, "position": position, "seconds": seconds + last_save - start}
            save_atomically({"state": state, **place}, checkpoint)

    bar = tqdm(total=config.steps, initial=step, desc=label, unit="step", mininterval=10.0, disable=workers.rank > 0)
    with (out / "log.jsonl" if workers.rank == 0 else Path(os.devnull)).open("a", encoding="utf-8") as log:
        while step < config.steps:
            if position >= len(batches):
                if stop is not None and stop(epoch):
                    break
                epoch, position = epoch + 1, 0
                batches = epoch_batches(epoch)
                continue
            for optimizer in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = learning_rate(config, step)
            torch.manual_seed(config.seed * 1_000_003 + step)  # training noise only: nothing here is released
            rng = np.random.default_rng((config.seed, step))
            if workers.size == 1:
                figures = step_fn(step, batches[position], rng)
            else:
                share = workers.share(batches[position])
                with parallel.SharedDraws(workers, len(share)):
                    figures = step_fn(step, share, rng)
                parallel.average_buffers(modules)
                figures = workers.mean(figures)
            bad = [name for name, value in figures.items() if not np.isfinite(value)]
            if bad:
                raise FloatingPointError(
                    f"{out}: {', '.join(bad)} is not finite at step {step}; lower lr, then run again"
                )
            step, position = step + 1, position + 1
            recent = (recent + [figures])[-max(50, config.steps // 10) :]
            bar.update()
            if step % 50 == 0 or step == config.steps:
                means = _means(recent[-50:])
                bar.set_postfix({k: f"{v:.3f}" for k, v in means.items()}, refresh=False)
                log.write(json.dumps({"step": step, "epoch": epoch, **means}) + "\n")
                log.flush()
            if time.monotonic() - last_save > 60 * config.save_minutes:
                save()
        else:
            if stop is not None and position >= len(batches):
                stop(epoch)
    if step > began:
        save()
    bar.close()
    return {**_means(recent), "epochs": float(epoch), "seconds": seconds + time.monotonic() - start}


def update(loss: torch.Tensor, module: torch.nn.Module, optimizer: torch.optim.Optimizer, clip: float) -> float:
    """Backward, clipped gradient, one step; returns the gradient's norm. Averaged over the processes of torchrun."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parallel.average([p.grad for p in module.parameters() if p.grad is not None])
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
    optimizer.step()
    return float(norm)


def save_atomically(content: Any, path: Path) -> None:
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    torch.save(content, tmp)
    tmp.replace(path)


def _means(rows: list[dict[str, float]]) -> dict[str, float]:
    keys = rows[-1].keys() if rows else ()
    return {k: float(np.mean([r[k] for r in rows if k in r])) for k in keys}
