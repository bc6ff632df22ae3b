"""Sanitise and project: what every mechanism does before it adds noise.

All of it is float64, whatever comes in: float32 norms are off by 1e-7, and half of all
float32 "unit" frames lie outside the ball. Each projection aims a little inside (``SHRINK``)
and is then certified: a row whose norm is not provably within the radius becomes zero.
Each set has its diameter beside it, the reason, and the pair of points that reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpanon.privacy.errors import PrivacyError

SHRINK = 2.0**-40  # relative; far above the rounding of a float64 norm, far below anything audible
TINY = 2.0**-100  # rows of a smaller norm are scaled as if they had this one, so zero stays zero
HUGE = 2.0**400  # beyond it squares and sums could overflow
BLOCK = 1 << 13  # entries projected at a time: they stay in the cache


def sanitise(x: np.ndarray) -> np.ndarray:
    """float64, NaN and infinite entries -> 0. Done before the clip: no bound holds for them after it."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    finite = np.isfinite(x)
    return x if finite.all() else np.where(finite, x, 0.0)


def l1_sphere(x: np.ndarray, radius: float = 1.0) -> np.ndarray:
    """Scale every row (last axis) to L1 norm ``radius``; a zero row stays zero. (..., M) -> (..., M)"""
    return _project(x, _l1, radius, TINY)


def l1_ball(x: np.ndarray, radius: float = 1.0) -> np.ndarray:
    """Shrink rows (last axis) whose L1 norm exceeds ``radius``. (..., M) -> (..., M)"""
    return _project(x, _l1, radius)


def l2_ball(x: np.ndarray, radius: float = 1.0) -> np.ndarray:
    """Shrink rows (last axis) whose L2 norm exceeds ``radius``. (..., M) -> (..., M)"""
    return _project(x, _l2, radius)


def unit_box(x: np.ndarray) -> np.ndarray:
    """Clip every entry to [0, 1]; exact, so it needs neither shrink nor certificate. Any shape."""
    return np.clip(sanitise(x), 0.0, 1.0) + 0.0  # -0.0 would tell its sign


def simplex(x: np.ndarray) -> np.ndarray:
    """Rows >= 0 of sum 1 (negative entries -> 0); a zero row stays zero, which widens no diameter."""
    return l1_sphere(np.maximum(sanitise(x), 0.0))


def l1_ball_diameter(radius: float) -> float:
    """Largest L1 distance between two points of the L1 ball (and of its sphere).

    Triangle inequality: ``|x - y|_1 <= |x|_1 + |y|_1 <= 2 * radius``, reached by ``x = -y`` on the
    sphere, and by any two vectors of disjoint support, so non-negative entries do not help.
    """
    return 2.0 * radius


def l1_ball_pair(dim: int, radius: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """The antipodal vertices that reach ``l1_ball_diameter``."""
    x = np.zeros(dim)
    x[0] = radius
    return x, -x


def l2_ball_diameter(radius: float) -> float:
    """Largest L2 distance between two points of the L2 ball: ``2 * radius``, reached by ``x = -y``.

    One radius is the distance to the null vector only: not between two people.
    """
    return 2.0 * radius


def l2_ball_pair(dim: int, radius: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Antipodal points of norm ``radius`` that reach ``l2_ball_diameter``."""
    x = np.zeros(dim)
    x[0] = radius
    return x, -x


def unit_box_l1_diameter(*shape: int) -> float:
    """Largest L1 distance in ``[0, 1]^shape``: the number of entries, reached by all-0 and all-1."""
    return float(math.prod(shape))


def unit_box_l2_diameter(*shape: int) -> float:
    """Largest L2 distance in ``[0, 1]^shape``: the root of the number of entries, same pair."""
    return math.sqrt(math.prod(shape))


def unit_box_pair(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    """The opposite corners that reach both diameters of the box."""
    return np.zeros(shape), np.ones(shape)


def simplex_l1_diameter() -> float:
    """Largest L1 distance between two probability vectors: 2, reached by two vertices."""
    return 2.0


def simplex_l2_diameter() -> float:
    """Largest L2 distance between two probability vectors: sqrt(2), reached by two vertices.

    ``|p - q|_2^2 <= |p|_2^2 + |q|_2^2 <= 2`` since the entries are >= 0.
    """
    return math.sqrt(2.0)


def simplex_pair(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Two vertices, which reach both diameters of the simplex."""
    if dim < 2:
        raise PrivacyError("a simplex of one point has no pair")
    vertices = np.eye(dim)
    return vertices[0], vertices[1]


def exact_l1_norm(row: np.ndarray) -> Fraction:
    """The L1 norm of a float64 vector without rounding (slow: for tests and audits)."""
    return sum((abs(Fraction(float(v))) for v in np.ravel(row)), Fraction(0))


def exact_squared_l2_norm(row: np.ndarray) -> Fraction:
    """The squared L2 norm of a float64 vector without rounding (slow: for tests and audits)."""
    return sum((Fraction(float(v)) ** 2 for v in np.ravel(row)), Fraction(0))


Norm = Callable[[np.ndarray], np.ndarray]


def _l1(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.abs(x).sum(axis=-1, keepdims=True)


def _l2(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.sqrt(np.einsum("...i,...i->...", x, x))[..., None]


def _slack(x: np.ndarray) -> float:
    """Relative rounding of a sum of M terms and of the root: at most (M + 2) units of 2^-53; doubled."""
    return (x.shape[-1] + 2) * 2.0**-52


def _project(x: np.ndarray, norm: Norm, radius: float, least: float | None = None) -> np.ndarray:
    """Divide every row by max(norm, ``least``), times the radius; by default no row is made larger."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    aim = radius * (1.0 - max(SHRINK, 4.0 * _slack(x)))
    least = aim if least is None else least
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty_like(rows)
    block = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), block):
        out[start : start + block] = _project_block(rows[start : start + block], norm, radius, aim, least)
    return out.reshape(x.shape)


def _project_block(x: np.ndarray, norm: Norm, radius: float, aim: float, least: float) -> np.ndarray:
    size = norm(x)
    if not (size <= HUGE).all():  # NaN, infinite or enormous entries somewhere
        x = sanitise(x)
        largest = np.abs(x).max(axis=-1, keepdims=True)
        x = np.where(largest > HUGE, x / np.maximum(largest, HUGE) * HUGE, x)  # keeps the direction
        size = norm(x)
    x = x * (aim / np.maximum(size, least))
    inside = norm(x) * (1.0 + _slack(x)) <= radius  # the certificate: true norm <= radius, proved
    return x if inside.all() else np.where(inside, x, 0.0)  # never raises: that would depend on the data
