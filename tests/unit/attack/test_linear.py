"""The linear attacker: finds a direction of little variance, and what it cannot find is chance."""

import numpy as np
import pytest

from dpanon.attack.linear import NearestMean, statistics, windows


def pieces(size, num=30, seed=0):
    """Statistics of 40 speakers, who differ by ``size`` in the last of ten directions, which varies least."""
    rng, label = np.random.default_rng(seed), np.repeat(np.arange(40), num)
    x = rng.normal(size=(len(label), 10)) * np.array([10.0] * 9 + [1.0])
    x[:, 9] += size * label
    mix = np.linalg.qr(np.random.default_rng(9).normal(size=(10, 10)))[0]
    return x @ mix, label


def test_it_finds_the_direction_in_which_speakers_differ():
    attacker = NearestMean(*pieces(6.0))
    x, label = pieces(6.0, seed=1)
    assert (attacker(x) != label).mean() < 0.2
    nearest = np.stack([pieces(6.0)[0][label == k].mean(0) for k in range(40)])
    plain = ((x[:, None] - nearest[None]) ** 2).sum(2).argmin(1)
    assert (plain != label).mean() > 0.6  # without the covariance


def test_speakers_who_do_not_differ_are_not_told():
    attacker = NearestMean(*pieces(0.0))
    x, label = pieces(0.0, seed=1)
    assert (attacker(x) != label).mean() > 0.9


def test_statistics_and_windows():
    x = np.stack([np.full(4, 2.0), [1.0, 3.0, 1.0, 3.0]], 1).astype(np.float16)
    assert statistics(x, "mean").tolist() == [2.0, 2.0]
    assert statistics(x, "mean and deviation") == pytest.approx([2.0, 2.0, np.log(1e-4), np.log(1.0001)])
    assert windows(10, 30, 1) == [(10, 30)]
    assert windows(0, 30, 3) == [(0, 10), (2, 12), (5, 15), (7, 17), (10, 20), (12, 22), (15, 25), (17, 27), (20, 30)]


def test_features_that_stand_still_do_no_harm():
    x, label = pieces(6.0)
    still = np.concatenate([x, np.ones((len(x), 2))], 1)
    assert (NearestMean(still, label)(still) == NearestMean(x, label)(x)).mean() > 0.95
    assert NearestMean(still[:, 10:], label)(still[:, 10:]).shape == (len(x),)
