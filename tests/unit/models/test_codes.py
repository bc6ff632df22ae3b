"""Codes in the bottleneck: what gets the noise is one-hot, and is read again from all of an utterance."""

import numpy as np
import pytest
import torch

from dpanon.models.bottleneck import Bottleneck, BottleneckConfig, to_columns
from dpanon.models.codes import Codebooks
from dpanon.privacy import BottleneckFrames, KeyedNoise
from dpanon.train.bottleneck import train_noise
from dpanon.train.codes import count_tokens, with_codes

SMALL = {"hidden": 32, "factor": 8, "content": 16, "bottleneck": 12}


def books(num=1, size=8, dim=6):
    torch.manual_seed(0)
    codes = Codebooks(num, size, dim)
    torch.nn.init.normal_(codes.vectors)
    return codes.requires_grad_(False)


@pytest.mark.parametrize("num", [1, 2, 4])
def test_a_frame_is_on_the_unit_sphere_and_says_the_code(num):
    codes = books(num)
    chosen = codes.quantise(torch.randn(2, 5, 6))
    for frames in (9, 10):
        spread = codes.one_hot(chosen, frames)
        assert spread.shape == (2, frames, codes.width)
        assert torch.allclose(spread.abs().sum(-1), torch.ones(2, frames))
        assert torch.equal(codes.posterior(spread, 0.0).argmax(-1), chosen)


def test_each_codebook_takes_what_is_left():
    codes = books(3)
    x = torch.randn(1, 200, 6)
    chosen = codes.quantise(x)
    rest = x[0]
    for book in range(3):
        assert torch.equal(torch.cdist(rest, codes.vectors[book]).argmin(1), chosen[0, :, book])
        rest = rest - codes.vectors[book][chosen[0, :, book]]


def test_posterior_is_that_of_brute_force():
    """Against the sum over all paths of three columns."""
    codes = books(1, 3)
    codes.transitions[0] = torch.tensor([[5.0, 1.0, 1.0], [1.0, 4.0, 2.0], [2.0, 2.0, 3.0]])
    scale, y = 0.7, torch.randn(1, 6, 3)
    chain = codes.transitions[0] / codes.transitions[0].sum(1, keepdim=True) + 1e-4
    chain = (chain / chain.sum(1, keepdim=True)).numpy()
    corners = np.eye(3)
    likelihood = np.array(
        [
            [np.prod(np.exp(-np.abs(y[0, 2 * c : 2 * c + 2].numpy() - corners[k]) / scale)) for k in range(3)]
            for c in range(3)
        ]
    )
    expected = np.zeros((3, 3))
    for a in range(3):
        for b in range(3):
            for c in range(3):
                weight = likelihood[0, a] * chain[a, b] * likelihood[1, b] * chain[b, c] * likelihood[2, c]
                expected[[0, 1, 2], [a, b, c]] += weight
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(codes.posterior(y, scale)[0, :, 0].numpy(), expected, atol=1e-4)


@pytest.mark.parametrize(("epsilon", "least"), [(100.0, 1.0), (10.0, 0.9)])
def test_codes_are_read_through_the_release(epsilon, least):
    """Even codes that know nothing of each other; those of speech do."""
    codes = books(1, 256)
    chosen = torch.randint(0, 256, (1, 300, 1))
    frames = BottleneckFrames(epsilon, 256)
    released = frames.release(codes.one_hot(chosen, 600)[0], KeyedNoise(1, "u", "release"))
    posterior = codes.posterior(torch.from_numpy(released.value)[None], frames.scale)
    assert (posterior.argmax(-1) == chosen).float().mean() >= least
    assert torch.allclose(posterior.sum(-1), torch.ones(1, 300, 1), atol=1e-4)


def test_far_too_much_noise_is_still_a_distribution():
    codes = books(1, 16)
    posterior = codes.posterior(2000.0 * torch.randn(1, 41, 16), 2000.0)
    assert torch.isfinite(posterior).all() and posterior.shape == (1, 21, 1, 16)


def coded(features="fbank"):
    torch.manual_seed(1)
    plain = Bottleneck(BottleneckConfig(features=features, **SMALL)).eval()
    dim = 80 if features == "fbank" else 384
    recordings = [(x, x.mean(0)) for x in np.random.default_rng(0).standard_normal((6, 60, dim)).astype(np.float32)]
    return plain, with_codes(plain, 1, 8, recordings).eval(), recordings


def test_an_extractor_gets_codes_and_keeps_its_weights():
    plain, made, recordings = coded()
    assert made.width == 8 and plain.width == 12
    x = torch.from_numpy(recordings[0][0])[None]
    assert torch.equal(plain.dense(x), made.dense(x))
    frames = made.encode(x)
    assert frames.shape == (1, 60, 8) and torch.equal(frames.sum(-1), torch.ones(1, 60))
    clean = made.denoise(frames, 0.0)
    nearest = torch.cdist(to_columns(made.dense(x))[0], made.codes.vectors[0]).argmin(1)
    assert torch.allclose(to_columns(clean)[0], made.codes.vectors[0][nearest])
    assert torch.allclose(made.codes.transitions.sum(), torch.tensor(8.0), atol=1e-3)
    assert with_codes(made, 2, 4, recordings) is made, "codes are given once"


def test_training_moves_the_extractor_and_its_code_vectors():
    _, made, recordings = coded()
    made.train().requires_grad_(True)
    noise, scale = train_noise(50.0, made.width)
    before = made.codes.transitions.clone()
    content, cost = made.transmit(torch.from_numpy(recordings[0][0])[None], None, noise, scale)
    assert content.shape == (1, 30, 16) and cost > 0
    content.square().sum().backward()
    assert made.input.weight.grad.abs().sum() > 0, "straight through the codes"
    assert made.codes.vectors.grad.abs().sum() > 0
    assert not torch.equal(made.codes.transitions, before)


def test_tokens_are_counted_in_public_speech():
    _, made, recordings = coded()
    count_tokens(made, recordings)
    for table in (made.codes.token_chain, made.codes.token_durations):
        assert torch.allclose(table.sum(1), torch.ones(8), atol=1e-5) and (table > 0).all()
