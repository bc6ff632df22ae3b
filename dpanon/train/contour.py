"""The public shape of f0 contours: where ``LowRankPitch`` puts its ball, and over how many coefficients."""

import math

import numpy as np

from dpanon.features.f0 import normalise_log_f0
from dpanon.privacy import LowRankPitch

RANKS, RADII = range(1, 13), (0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def fit_contour(f0: list[np.ndarray], mu: float = 1.0) -> dict:
    """Rank, radius and centre with the largest correlation at ``mu`` between contours and what is released of them.

    Args:
        f0: (T,) Hz of each public recording, 0 where there is none.

    Returns:
        ``rank``, ``radius`` (deviations of log f0), ``centre`` (rank,), and the ``correlation`` expected.

    The noise has zero mean and a known variance, so that nothing is drawn here.
    """
    contours = [normalise_log_f0(row) for row in f0 if (row > 0).sum() > 20]
    if not contours:
        raise ValueError("no recording with 20 voiced frames: nothing to learn a contour from")
    most = LowRankPitch(mu, max(RANKS))
    coefficients = np.stack([most.coefficients(contour) for contour in contours])
    energy = float(np.mean([np.var(contour) for contour in contours]))
    best: dict = {"correlation": -math.inf}
    for rank in RANKS:
        true, centre = coefficients[:, :rank], coefficients[:, :rank].mean(0)
        for radius in RADII:
            mechanism = LowRankPitch(mu, rank, radius, centre)
            signal = radius**2 / (rank + 2)
            share = signal / (signal + mechanism.sigma**2)  # as LowRankPitch.contour shrinks
            seen = centre + share * np.stack([mechanism.clip(row) for row in true])
            power = float((seen**2).sum(1).mean()) + share**2 * rank * mechanism.sigma**2
            correlation = float((seen * true).sum(1).mean()) / math.sqrt(energy * power)
            if correlation > best["correlation"]:
                best = {"rank": rank, "radius": radius, "centre": centre.tolist(), "correlation": correlation}
    return best
