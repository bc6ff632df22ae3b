"""The low bits of floating-point Laplace noise betray the input; those of the rounded ideal noise do not.

torch draws a float32 Laplace from 2^24 uniforms, so all its outputs for one input can be listed:
four fifths of what is released for x cannot come from x' at all, whatever epsilon is claimed.
"""

import numpy as np
import pytest
import torch

from dpanon.privacy import SystemNoise, audit
from dpanon.privacy.sampling import grid_bits


def torch_support(loc, scale):
    """Every value torch.distributions.Laplace(loc, scale) can give in float32, sorted."""
    eps = torch.finfo(torch.float32).eps
    lowest = np.float32(eps - 1)
    outputs = []
    for start in range(0, 1 << 24, 1 << 22):
        steps = torch.arange(start, start + (1 << 22), dtype=torch.float32) * 2.0**-24
        # uniform_(from, to) is steps * (to - from) + from with one rounding (fused)
        uniform = (steps.double() * float(np.float32(1 - lowest)) + float(lowest)).float()
        outputs.append(loc - scale * uniform.sign() * torch.log1p(-uniform.abs()))
    return np.unique(torch.cat(outputs).numpy())


def impossible(outputs, support):
    """Share of the outputs that are not in a sorted support."""
    where = np.searchsorted(support, outputs).clip(max=support.size - 1)
    return float((support[where] != outputs).mean())


@pytest.mark.slow
def test_torch_float32_laplace_gives_outputs_the_other_input_cannot():
    outputs = torch.distributions.Laplace(torch.zeros(20_000), 2.0).sample().numpy()
    assert impossible(outputs, torch_support(0.0, 2.0)) < 0.05  # the enumeration is right
    assert impossible(outputs, torch_support(1.0, 2.0)) > 0.7  # and only 20 % could come from x' = 1


@pytest.mark.parametrize("x, other", [(0.0, 1.0), (1 / 256, -1 / 256), (0.1, 0.3)])
def test_every_output_of_ours_is_possible_for_the_other_input(x, other):
    """Both inputs put positive probability on every point of one grid, and on nothing else."""
    bits = grid_bits(2.0, 1.0)
    for value in (x, other):
        y = SystemNoise().add_laplace(np.full(20_000, value), 2.0, 1.0)
        assert not audit.grid(y, bits).broken
        assert not audit.grid(y.astype(np.float32), bits).broken


def test_residuals_of_the_wrong_guess_look_like_noise_too():
    """The attack on floats: subtract each candidate input, ask which residual is 'possible'."""
    bits = grid_bits(2.0, 1.0)
    y = SystemNoise().add_laplace(np.full(50_000, 0.1), 2.0, 1.0) * 2.0**bits
    shifted = SystemNoise().add_laplace(np.full(50_000, 0.3), 2.0, 1.0) * 2.0**bits
    for modulus in (2, 3, 5, 7, 16):
        a, b = (np.bincount(v.astype(np.int64) % modulus, minlength=modulus) for v in (y, shifted))
        assert np.abs(a - b).max() < 7 * np.sqrt(2 * 50_000 / modulus)
