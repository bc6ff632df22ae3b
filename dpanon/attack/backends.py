"""How two embeddings are compared: cosine, WCCN + cosine, LDA + PLDA.

All take ``(S, D)`` enrolment embeddings per model, of unit norm. Training sets may be small (a dozen speakers with a
few pieces each), so every covariance is shrunk towards a multiple of the identity by the Ledoit-Wolf rule.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import scipy.linalg
from safetensors.numpy import load_file, save_file
from sklearn.covariance import ledoit_wolf

from dpanon.evaluate import EvaluationError

_EPS = 1e-9


class Backend(Protocol):
    """``score``: enrolment embeddings of each model, (U, D) trial embeddings -> (models, U); higher is more alike."""

    name: str

    def score(self, enrol: Sequence[np.ndarray], trial: np.ndarray) -> np.ndarray: ...


class Cosine:
    """Cosine to the mean of the enrolment embeddings; needs no training."""

    name = "cosine"

    def score(self, enrol: Sequence[np.ndarray], trial: np.ndarray) -> np.ndarray:
        models = np.stack([unit(embeddings).mean(0) for embeddings in enrol])
        return unit(models) @ unit(trial).T


class Wccn:
    """Centre, whiten the within-speaker covariance, then cosine.

    Directions in which one speaker's recordings differ among themselves, such as the target voice of an
    anonymizer that draws one per utterance, count less.
    """

    name = "wccn"

    def __init__(self, mean: np.ndarray, whitener: np.ndarray):
        self.mean, self.whitener = mean, whitener  # (D,), (D, D)

    @classmethod
    def train(cls, embeddings: np.ndarray, speakers: Sequence[str]) -> "Wccn":
        """(N, D), N names"""
        embeddings, index = _check(embeddings, speakers)
        mean = embeddings.mean(0)
        within = _within(embeddings, index)
        return cls(mean, np.linalg.cholesky(np.linalg.inv(within)))

    def score(self, enrol: Sequence[np.ndarray], trial: np.ndarray) -> np.ndarray:
        models = np.stack([unit(self._project(embeddings)).mean(0) for embeddings in enrol])
        return unit(models) @ unit(self._project(trial)).T

    def _project(self, x: np.ndarray) -> np.ndarray:
        return (unit(x) - self.mean) @ self.whitener

    def save(self, path: Path) -> None:
        save_file({"mean": self.mean, "whitener": np.ascontiguousarray(self.whitener)}, path)

    @classmethod
    def load(cls, path: Path) -> "Wccn":
        return cls(**load_file(path))


class LdaPlda:
    """Centre, unit norm, LDA, then the log-likelihood ratio of a two-covariance PLDA.

    A speaker is ``y ~ N(0, between)`` and a recording ``x ~ N(y, within)``. After a joint diagonalisation
    ``within`` is the identity and ``between`` diagonal, so that the ratio of "same y" to "another y" is a sum over
    dimensions. ``S`` enrolment recordings narrow the posterior of y: precision ``1 / between + S``.
    """

    name = "lda-plda"

    def __init__(self, mean: np.ndarray, projection: np.ndarray, centre: np.ndarray, between: np.ndarray):
        self.mean, self.projection = mean, projection  # (D,), (D, M)
        self.centre, self.between = centre, between  # (M,), (M,)

    @classmethod
    def train(cls, embeddings: np.ndarray, speakers: Sequence[str], max_dim: int = 100) -> "LdaPlda":
        """(N, D), N names"""
        embeddings, index = _check(embeddings, speakers)
        mean = embeddings.mean(0)
        x = unit(embeddings - mean)
        within, scatter, excess = _covariances(x, index)
        values, vectors = scipy.linalg.eigh(scatter, within)  # rising; vectors.T @ within @ vectors = 1
        dim = min(max_dim, index.max(), x.shape[1])  # index.max() is the number of speakers less 1
        values, vectors = values[-dim:], vectors[:, -dim:]
        # the means of few recordings scatter even if all speakers are alike
        between = np.maximum(values - excess, 1e-3 * values[-1])
        return cls(mean, vectors, x.mean(0) @ vectors, between)

    def score(self, enrol: Sequence[np.ndarray], trial: np.ndarray) -> np.ndarray:
        x = self._project(trial)  # (U, M)
        total = self.between + 1.0
        other = -0.5 * (np.log(total) + x**2 / total).sum(-1)  # (U,)
        out = np.empty((len(enrol), len(x)))
        for i, embeddings in enumerate(enrol):
            precision = 1.0 / self.between + len(embeddings)
            mean = self._project(embeddings).sum(0) / precision
            variance = 1.0 / precision + 1.0
            out[i] = -0.5 * (np.log(variance) + (x - mean) ** 2 / variance).sum(-1) - other
        return out

    def _project(self, x: np.ndarray) -> np.ndarray:
        return unit(unit(x) - self.mean) @ self.projection - self.centre

    def save(self, path: Path) -> None:
        values = {"mean": self.mean, "projection": self.projection, "centre": self.centre, "between": self.between}
        save_file({name: np.ascontiguousarray(value) for name, value in values.items()}, path)

    @classmethod
    def load(cls, path: Path) -> "LdaPlda":
        return cls(**load_file(path))


TRAINED: dict[str, type[Wccn] | type[LdaPlda]] = {"wccn": Wccn, "lda-plda": LdaPlda}
BACKENDS = ("cosine", *TRAINED)


def unit(x: np.ndarray) -> np.ndarray:
    """Unit L2 norm along the last axis, float64. (..., D) -> (..., D)"""
    x = np.asarray(x, dtype=np.float64)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), _EPS)


def _check(embeddings: np.ndarray, speakers: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    names, index, counts = np.unique(list(speakers), return_inverse=True, return_counts=True)
    if len(embeddings) != len(index):
        raise EvaluationError(f"{len(embeddings)} embeddings of {len(index)} speakers' names: expected equal numbers")
    if len(names) < 3 or (counts > 1).sum() < 2:
        raise EvaluationError(
            f"{len(names)} speakers, {(counts > 1).sum()} with more than one embedding: a trained back-end needs at "
            "least 3 and 2; give more training speech, or split it with segment_seconds"
        )
    if not np.isfinite(embeddings).all():
        raise EvaluationError("training embeddings have NaN or infinite entries")
    return unit(embeddings), index


def _residuals(x: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = np.bincount(index)
    means = np.stack([np.bincount(index, column) for column in x.T], axis=-1) / counts[:, None]
    return x - means[index], means, counts


def _within(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Shrunk covariance of recordings around their speaker's mean; unbiased for the means it estimates. (D, D)

    Pooled over speakers before it is shrunk: a covariance of one speaker's few recordings is shrunk to nothing.
    """
    residuals, _, counts = _residuals(x, index)
    residuals = residuals[counts[index] > 1]
    shrunk, _ = ledoit_wolf(residuals, assume_centered=True)
    covariance = shrunk * len(residuals) / (len(residuals) - (counts > 1).sum())
    return covariance + (1e-6 * np.trace(covariance) / len(covariance) + _EPS) * np.eye(len(covariance))


def _covariances(x: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Within-speaker covariance, covariance of speakers' means, and the share of the first in the second."""
    _, means, counts = _residuals(x, index)
    scatter, _ = ledoit_wolf(means - means.mean(0), assume_centered=True)
    return _within(x, index), scatter * len(means) / (len(means) - 1), float((1.0 / counts).mean())
