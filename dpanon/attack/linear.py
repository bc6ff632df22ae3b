"""The linear attacker of P_ASI: discriminant analysis of what the features of a piece are in the mean over time.

A network has to find directions of little variance by gradient descent; a speaker with ten seconds of speech may be
in these alone. Here they are found at once, by the covariance of pieces of the same speaker.
"""

from collections.abc import Sequence

import numpy as np
from sklearn.covariance import ledoit_wolf

_LEAST = 1e-4  # deviation of a feature that stands still
OVERLAP = 4  # training pieces begin at every quarter of a piece
KINDS = ("mean", "mean and deviation")


def statistics(x: np.ndarray, kind: str) -> np.ndarray:
    """Mean over time of each feature, or mean and log deviation. (T, M) -> (M,) or (2M,)"""
    x = x.astype(np.float64)
    return x.mean(0) if kind == "mean" else np.concatenate([x.mean(0), np.log(x.std(0) + _LEAST)])


def windows(start: int, stop: int, num: int) -> list[tuple[int, int]]:
    """(start, stop) of overlapping pieces, as long as one of ``num`` that [start, stop) is made of."""
    size = (stop - start) // num
    return [(at, at + size) for at in np.linspace(start, stop - size, OVERLAP * (num - 1) + 1).astype(int).tolist()]


class NearestMean:
    """The speaker whose mean is nearest in the metric of the pooled within-speaker covariance (shrunk: Ledoit, Wolf).

    Args:
        x: statistics of training pieces, (N, D). y: their speakers, (N,), numbers from 0 without gaps, some with two.
    """

    def __init__(self, x: np.ndarray, y: Sequence[int]):
        label = np.asarray(y)
        count = np.bincount(label)
        means = np.stack([np.bincount(label, column) for column in x.T], 1) / count[:, None]
        within = x - means[label]
        deviation = within.std(0)
        self.kept = deviation > 1e-8 * np.abs(means).max()  # some features may stand still
        self.kept |= not self.kept.any()
        self.scale = deviation[self.kept] + 1e-12
        covariance, _ = ledoit_wolf(within[:, self.kept] / self.scale, assume_centered=True)
        covariance += 1e-6 * np.eye(len(covariance))  # and some be the same as others
        self.whiten = np.linalg.inv(np.linalg.cholesky(covariance)).T
        self.means = (means[:, self.kept] / self.scale) @ self.whiten

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Speakers of pieces. (N, D) -> (N,)"""
        z = (x[:, self.kept] / self.scale) @ self.whiten
        return ((self.means**2).sum(1) - 2 * z @ self.means.T).argmin(1)  # |z|^2 is the same for all
