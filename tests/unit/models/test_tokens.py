"""Tokens: their number tells the length and no more; they are read again through randomized response."""

import itertools

import numpy as np
import pytest
import torch

from dpanon.models.codes import DURATIONS
from dpanon.models.tokens import (
    cheapest,
    duration_class,
    num_tokens,
    read_tokens,
    segments,
    spread,
    statistics,
    to_tokens,
)
from dpanon.privacy import KeyedNoise, TokenResponse

SIZE = 20


def speech(seed=0, num=60):
    """Distances of columns that follow clear segments, and the codes of the columns."""
    rng = np.random.default_rng(seed)
    order = np.cumsum(rng.integers(1, SIZE, num)) % SIZE  # never the same twice in a row
    codes = np.repeat(order, rng.choice([3, 5], num))
    distance = 1.0 + 0.2 * rng.random((len(codes), SIZE))
    distance[np.arange(len(codes)), codes] -= 1.0
    return distance, codes, order


def test_cheapest_codes_are_those_of_brute_force():
    distance = np.random.default_rng(3).random((5, 3))
    for price in (0.0, 0.2, 0.7, 5.0):
        paths = itertools.product(range(3), repeat=5)
        costs = {
            path: sum(distance[t, k] for t, k in enumerate(path))
            + price * sum(a != b for a, b in itertools.pairwise(path))
            for path in paths
        }
        found = tuple(cheapest(distance, price).tolist())
        assert costs[found] == pytest.approx(min(costs.values()))


@pytest.mark.parametrize("frames", [1, 2, 50, 333, 3000])
def test_the_number_follows_from_the_length(frames):
    rng = np.random.default_rng(frames)
    for distance in (rng.random((-(-frames // 2), SIZE)), np.zeros((-(-frames // 2), SIZE))):
        assert len(to_tokens(distance, frames)) == num_tokens(frames)
    assert 1 <= num_tokens(frames) <= -(-frames // 2)


def test_clear_segments_are_found():
    distance, codes, order = speech()
    found, starts = segments(distance, len(order))
    assert np.array_equal(found, order)
    assert np.array_equal(starts, np.flatnonzero(np.append(True, codes[1:] != codes[:-1])))


@pytest.mark.parametrize("num", [1, 7, 100, 240])
def test_any_number_of_segments_can_be_had(num):
    distance, codes, _ = speech()
    found, starts = segments(distance, min(num, len(codes)))
    assert len(found) == min(num, len(codes)) and starts[0] == 0 and (np.diff(starts) > 0).all()


def test_durations_have_the_nearest_class_in_ratio():
    assert duration_class(np.array([1, 2, 3, 4, 5, 7, 12])).tolist() == [0, 1, 2, 3, 4, 4, 5]


def test_tokens_are_read_through_the_response():
    """Kept with 0.8: neighbours set most of the others right, and no token is worse off than alone."""
    # codes that follow each other in one order only, as sounds of a language do
    rng = np.random.default_rng(0)
    rows = [(np.cumsum(rng.choice([1, 2], 80)) % SIZE) * len(DURATIONS) + rng.integers(0, 2, 80) for _ in range(60)]
    chain, durations = statistics(rows[1:], SIZE)
    mechanism = TokenResponse(np.log(0.8 / 0.2 * (SIZE * len(DURATIONS) - 1)), SIZE * len(DURATIONS))
    assert mechanism.keep == pytest.approx(0.8)
    received = mechanism.release(rows[0], KeyedNoise(1, "u", "release")).value
    posterior, lengths = read_tokens(received, mechanism.keep, chain, durations)
    truth = rows[0] // len(DURATIONS)
    alone = (received // len(DURATIONS) == truth).mean()
    together = (posterior.argmax(1).numpy() == truth).mean()
    assert together > alone and together > 0.9
    assert torch.allclose(posterior.sum(1), torch.ones(80), atol=1e-5)
    assert (lengths > 0).all() and lengths.max() <= max(DURATIONS)


def test_without_noise_tokens_come_back():
    row = to_tokens(speech()[0], 2 * len(speech()[1]), rate=25)
    chain, durations = statistics([row], SIZE)
    posterior, lengths = read_tokens(row, 1.0, chain, durations)
    assert np.array_equal(posterior.argmax(1).numpy(), row // len(DURATIONS))
    assert np.array_equal(lengths, np.array(DURATIONS, dtype=np.float32)[row % len(DURATIONS)])


@pytest.mark.parametrize("columns", [1, 2, 7, 100])
def test_durations_share_the_public_length(columns):
    values = torch.eye(3)
    out = spread(values, np.array([1.5, 9.0, 3.0]), columns)
    assert out.shape == (columns, 3) and torch.equal(out.sum(1), torch.ones(columns))
    if columns == 100:
        assert out.sum(0).tolist() == [11.0, 67.0, 22.0]
