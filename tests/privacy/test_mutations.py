"""Twelve ways to break a noise layer; each is put in, and the audit must find each of them.

The audit compares a release with its claim and with a clip of its own, so a mutant cannot vouch
for itself. An honest mechanism fails one check in 1e9.
"""

import numpy as np
import torch

from dpanon.privacy import BottleneckFrames, ReleaseNoise, SpeakerGaussian, SystemNoise, audit, clip

NOISE = SystemNoise()


def found(findings):
    """Names of the checks that refute the claim."""
    return {finding.check.split(" 2^")[0] for finding in findings if finding.broken}


def frames_found(release):
    """``release(x, epsilon)`` of a mutant of the bottleneck layer."""
    return found(audit.frames(lambda epsilon, dim: lambda x: release(x, epsilon)))


def speaker_found(release):
    return found(audit.speaker(lambda mu, radius, dim: lambda z: release(z, mu, radius)))


def test_honest_frames_pass():
    assert frames_found(lambda x, epsilon: BottleneckFrames(epsilon, x.shape[1]).release(x).value) == set()


def test_honest_speaker_passes():
    assert speaker_found(lambda z, mu, radius: SpeakerGaussian(mu, radius, len(z)).release(z).value) == set()


def test_honest_release_layer_passes_in_train_and_in_eval():
    def layer(mode):
        def release(x, epsilon):
            module = ReleaseNoise(BottleneckFrames(epsilon, x.shape[1])).train(mode)
            return module(torch.from_numpy(x)[None]).value[0].numpy()

        return release

    assert frames_found(layer(True)) == frames_found(layer(False)) == set()


def test_mutation_01_half_the_scale():
    broken = frames_found(lambda x, eps: NOISE.add_laplace(clip.l1_sphere(x), 1.0 / eps, 1.0))
    assert {"Laplace scale", "laplace shape", "event"} <= broken


def test_mutation_02_radius_for_diameter():
    """Sensitivity C instead of 2C, in the mechanism's own arithmetic."""

    class Radius(BottleneckFrames):
        def __init__(self, epsilon, dim):
            super().__init__(epsilon, dim)
            self.scale = self.radius / self.epsilon

    broken = frames_found(lambda x, eps: Radius(eps, x.shape[1]).release(x).value)
    assert {"Laplace scale", "event"} <= broken


def test_mutation_03_sigma_as_the_paper_prints_it():
    broken = speaker_found(lambda z, mu, radius: NOISE.add_gaussian(clip.l2_ball(z, radius), radius / mu, radius))
    assert "Gaussian scale" in broken


def test_mutation_04_clip_skipped():
    broken = frames_found(lambda x, eps: NOISE.add_laplace(clip.sanitise(x).clip(-1e6, 1e6), 2.0 / eps, 1.0))
    assert {"laplace shape", "event"} & broken and "laplace shape" in broken


def test_mutation_05_clip_after_noise():
    broken = frames_found(
        lambda x, eps: clip.l1_sphere(NOISE.add_laplace(clip.sanitise(x).clip(-1e6, 1e6), 2.0 / eps, 1e6))
    )
    assert {"laplace shape", "Laplace scale"} <= broken


def test_mutation_06_seed_fixed():
    def release(x, epsilon):
        noise = np.random.default_rng(0).laplace(size=x.shape) * 2.0 / epsilon
        return np.round((clip.l1_sphere(x) + noise) * 2.0**20) / 2.0**20 + 0.0

    assert "repeated noise" in frames_found(release)


def test_mutation_06b_seed_taken_from_the_global_generator():
    def release(x, epsilon):
        noise = np.random.laplace(size=x.shape) * 2.0 / epsilon  # noqa: NPY002
        return np.round((clip.l1_sphere(x) + noise) * 2.0**20) / 2.0**20 + 0.0

    assert "repeated noise" in frames_found(release)


def test_mutation_07_one_noise_for_all_frames():
    def release(x, epsilon):
        shared = NOISE.add_laplace(np.zeros((1, x.shape[1])), 2.0 / epsilon, 1.0)
        return clip.l1_sphere(x) + shared

    assert "lag correlation" in frames_found(release)


def test_mutation_08_no_noise_in_eval():
    class OnlyInTraining(ReleaseNoise):
        def forward(self, x, noise=None):
            return super().forward(x, noise).value if self.training else x

    def release(x, epsilon):
        return OnlyInTraining(BottleneckFrames(epsilon, x.shape[1])).eval()(torch.from_numpy(x)[None])[0].numpy()

    assert frames_found(release)


def test_mutation_09_noise_on_half_the_batch():
    def release(x, epsilon):
        y = clip.l1_sphere(x)
        y[: len(y) // 2] = NOISE.add_laplace(y[: len(y) // 2], 2.0 / epsilon, 1.0)
        return y

    assert {"Laplace scale", "laplace shape"} <= frames_found(release)


def test_mutation_10_norm_over_the_wrong_axis():
    broken = frames_found(lambda x, eps: NOISE.add_laplace(clip.l1_sphere(x.T).T, 2.0 / eps, 1.0))
    assert "laplace shape" in broken


def test_mutation_10b_l2_norm_for_l1():
    broken = frames_found(lambda x, eps: NOISE.add_laplace(clip.l2_ball(x), 2.0 / eps, 1.0))
    assert "laplace shape" in broken


def test_mutation_11_float32_sampler():
    def release(x, epsilon):
        noise = torch.distributions.Laplace(0.0, 2.0 / epsilon).sample(x.shape)
        return (torch.from_numpy(clip.l1_sphere(x)).float() + noise).numpy()

    assert "grid" in frames_found(release)


def test_mutation_12_nan_passes_through():
    def release(x, epsilon):
        y = BottleneckFrames(epsilon, x.shape[1]).release(x).value
        return np.where(np.isnan(x), np.nan, y)

    assert "grid" in frames_found(release)
