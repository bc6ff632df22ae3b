"""A system without networks, for tests of the work around it; also a program: `dpanon anonymize` with that system.

The mechanisms and their noise are the real ones. FAKE_DELAY is the seconds that a recording takes.
"""

import os
import secrets
import sys
import time
import types
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpanon.data.audio import num_frames
from dpanon.errors import UsageError
from dpanon.privacy import BottleneckFrames, Guarantee, PitchBox

DIM = 4


class FakePool:
    """As TargetPool, which costs a process seconds for torch."""

    def __init__(self):
        self.ids = tuple(f"{sex}0{i}a" for sex in "fm" for i in range(4))

    def choose(self, target="random"):
        if target != "random" and target not in self.ids:
            raise UsageError(f"unknown target {target!r}; choose random or one of {', '.join(self.ids)}")
        name = secrets.choice(self.ids) if target == "random" else target
        return SimpleNamespace(id=name, log_f0_mean=5.0 + self.ids.index(name) / 9)


@dataclass(frozen=True)
class Made:
    samples: np.ndarray
    num_frames: int
    target: str
    guarantee: Any
    guarantee_frame: Any
    guarantee_f0: Any


class FakeSystem:
    def __init__(self, name, epsilon_bn, epsilon_f0):
        self.name, self.f0_method = name, "swift"
        self.frames = BottleneckFrames(epsilon_bn, DIM) if name == "dp" else None
        self.box = PitchBox(epsilon_f0, 1) if name == "dp" else None
        self.pool = FakePool()

    def promise(self, num_frames, sampler):
        if self.frames is None:
            return Guarantee.none("the fake adds no noise")
        return self.box.guarantee(sampler).compose(self.frames.guarantee(num_frames, sampler).to_unit("utterance"))

    def anonymize(self, samples, target, noise=None):
        time.sleep(float(os.environ.get("FAKE_DELAY", "0")))
        if np.abs(samples[:10] - 0.25).max() < 1e-3:
            raise RuntimeError("a bug")
        if np.abs(samples[:10] - 0.125).max() < 1e-3:
            os._exit(9)  # as the kernel does when memory runs out
        num = num_frames(len(samples))
        bn = np.repeat(np.pad(samples, (0, 160))[: num * 160 : 160, None], DIM, 1)
        whole, frame, f0 = Guarantee.none("the fake adds no noise"), None, None
        if self.frames:
            released = self.frames.release(bn, noise)
            pitch = self.box.release(np.zeros((1, num)), noise)
            bn, frame, f0 = released.value, released.guarantee, pitch.guarantee
            whole = f0.compose(frame.to_unit("utterance"))
        wave = np.repeat(np.tanh(bn.mean(1)), 160) * np.exp(-target.log_f0_mean / 9)
        return Made(
            samples=wave.astype(np.float32),
            num_frames=num,
            target=target.id,
            guarantee=whole,
            guarantee_frame=frame,
            guarantee_f0=f0,
        )


def load(options):
    return load_system(options.system, options.epsilon_bn, options.epsilon_f0)


def load_system(name, epsilon_bn=None, epsilon_f0=None, models=None):
    if epsilon_bn not in (None, 1.0, 10.0, 100.0):
        raise UsageError(f"no weights for --epsilon-bn {epsilon_bn:g}; choose one of 100, 10, 1")
    return FakeSystem(name, epsilon_bn, epsilon_f0)


if __name__ in ("__main__", "__mp_main__"):  # the latter in worker processes
    stub = types.ModuleType("dpanon.anonymize.pretrained")
    stub.load_system = load_system
    sys.modules["dpanon.anonymize.pretrained"] = stub

if __name__ == "__main__":
    from dpanon.cli import anonymize, run

    run(anonymize.main)
