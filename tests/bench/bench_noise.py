"""Throughput of the release noise on one thread, beside torch's unsafe noise: python tests/bench/bench_noise.py

Time is that of the thread's own processor use, so a busy machine disturbs it less.
"""

import time

import numpy as np
import torch

from dpanon.privacy import BottleneckFrames, SpeakerGaussian, SystemNoise

SHAPE = (1500, 256)


def rate(function, repeats: int = 20) -> float:
    """Elements per second, best of ``repeats``."""
    function()
    best = float("inf")
    for _ in range(repeats):
        began = time.thread_time()
        function()
        best = min(best, time.thread_time() - began)
    return SHAPE[0] * SHAPE[1] / best


def main() -> None:
    torch.set_num_threads(1)
    frames = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    bottleneck = BottleneckFrames(1.0)
    latent = frames.ravel()
    speaker = SpeakerGaussian(1.0, 1.0, latent.size)
    clipped = bottleneck.clip(frames)
    zeros = torch.zeros(SHAPE)
    unsafe = rate(lambda: torch.distributions.Laplace(zeros, 2.0).sample())
    rows = [
        ("torch Laplace float32 (unsafe)", unsafe),
        ("torch normal float32 (unsafe)", rate(lambda: torch.randn(SHAPE))),
        ("Laplace noise alone", rate(lambda: SystemNoise().add_laplace(clipped, 2.0, 1.0))),
        ("Gaussian noise alone", rate(lambda: SystemNoise().add_gaussian(clipped, 2.0, 1.0))),
        ("clip alone", rate(lambda: bottleneck.clip(frames))),
        ("bottleneck release: clip + Laplace + cast", rate(lambda: bottleneck.release(frames))),
        ("speaker release: clip + Gaussian + cast", rate(lambda: speaker.release(latent))),
    ]
    print(f"{'[1500, 256], one thread':44s} {'M/s':>8s} {'of torch Laplace':>17s}")
    for name, value in rows:
        print(f"{name:44s} {value / 1e6:8.1f} {value / unsafe:17.2f}")


if __name__ == "__main__":
    main()
