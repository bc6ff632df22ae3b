"""Made embeddings around true ones, for networks that few speakers have to teach."""

import numpy as np
import torch
from sklearn.covariance import ledoit_wolf
from torch import Tensor


def covariance_root(vectors: np.ndarray, labels: np.ndarray) -> Tensor:
    """(D, D), a root of the covariance of embeddings (N, D) around the mean of their label, shrunk by Ledoit-Wolf.

    A few hundred speakers span a part of the space; ``x + randn @ root`` lies in all of it, so that an auto-encoder
    learns to keep voices that it never heard. NaN is a label of its own.
    """
    groups = [labels == label for label in np.unique(labels[~np.isnan(labels)])] + [np.isnan(labels)]
    centred = np.concatenate([vectors[rows] - vectors[rows].mean(0) for rows in groups if rows.any()])
    return torch.from_numpy(np.linalg.cholesky(ledoit_wolf(centred)[0]).T.astype(np.float32))
