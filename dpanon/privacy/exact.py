"""The exact side of the sampler: decide a draw that float64 could not, by drawing more bits.

Works on mpmath's stateless numbers (``libmp``), whose precision is an argument: mpmath's usual
contexts keep it in a global, which threads would share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from mpmath import libmp

from dpanon.privacy.errors import PrivacyError

GUARD = 160  # bits of precision beyond those of U; what is computed is right to 2^-60 of a cell and better


def laplace_cell(x: float, positive: bool, k: int, scale: float, bits: int, more_bits: Callable[[], int]) -> int:
    """floor((x +- scale * ln(1/U)) * 2^bits + 1/2) with U in [k, k + 1) * 2^-63, U refined as needed."""
    depth = 63
    while True:
        if k > 0:
            precision = depth + GUARD
            ends = []
            for end in (k, k + 1):
                log = libmp.mpf_log(libmp.from_man_exp(end, -depth), precision)
                move = libmp.mpf_mul(libmp.from_float(float(scale)), log, precision)
                ends.append(_cell_units(x, libmp.mpf_neg(move) if positive else move, bits, precision))
            cell = _agreed(min(ends) - 1, max(ends) + 1)
            if cell is not None:
                return cell
        k, depth = (k << 64) | more_bits(), depth + 64


def gaussian_cells(
    x: Sequence[float] | np.ndarray, k: int, turn: int, sigma: float, bits: int, more_bits: Callable[[], int]
) -> tuple[int, int]:
    """Both cells of a pair: radius sqrt(-2 ln U) with U in [k, k + 1) * 2^-63, angle pi * [turn, turn + 1) * 2^-63."""
    depth = 63
    while True:
        if k > 0:
            precision = depth + GUARD
            radii = [_radius(end, depth, sigma, precision) for end in (k + 1, k)]
            cells = []
            for which in (0, 1):
                moves = []
                for angle in (turn, turn + 1):
                    cos_sin = libmp.mpf_cos_sin_pi(libmp.from_man_exp(angle, -depth), precision)
                    moves += [libmp.mpf_mul(radius, cos_sin[which], precision) for radius in radii]
                ends = [_cell_units(float(x[which]), move, bits, precision) for move in moves]
                # A corner misses an extremum of cos or sin by less than (pi 2^-depth)^2 of the radius: the
                # spread of the corners of one radius bounds its effect when doubled.
                slack = 1 + 2 * _angle_slack(radii[1], depth, bits, precision)
                cells.append(_agreed(min(ends) - slack, max(ends) + slack))
            if cells[0] is not None and cells[1] is not None:
                return cells[0], cells[1]
        k, depth = (k << 64) | more_bits(), depth + 64
        turn = (turn << 64) | more_bits()


def log_(x: np.ndarray) -> None:
    """ln in place. torch's vector functions are twice numpy's speed, and as exact (``check_libm``)."""
    import torch

    torch.from_numpy(x).log_()


def exp_(x: np.ndarray) -> None:
    import torch

    torch.from_numpy(x).exp_()


def cos_(x: np.ndarray) -> None:
    import torch

    torch.from_numpy(x).cos_()


def sin_(x: np.ndarray) -> None:
    import torch

    torch.from_numpy(x).sin_()


@functools.cache
def check_libm(num: int = 199) -> None:
    """The filter trusts log, exp, sin and cos to a few units in the last place: compare them once with mpmath."""
    u = (np.arange(num) + 0.5) / num
    u = np.concatenate([u, u**9, 1.0 - u**30 / 8])
    for name, function, points, reference in (
        ("log", log_, u, libmp.mpf_log),
        ("exp", exp_, -700.0 * u, libmp.mpf_exp),
        ("cos", cos_, np.pi * (2 * u - 1), libmp.mpf_cos),
        ("sin", sin_, np.pi * (2 * u - 1), libmp.mpf_sin),
    ):
        truth = np.array([libmp.to_float(reference(libmp.from_float(float(p)), 80)) for p in points])
        values = points.copy()
        function(values)
        allowed = 2.0**-50 * np.maximum(np.abs(truth), 2.0**-2 if name in ("cos", "sin") else 0.0)
        if (np.abs(values - truth) > allowed).any():
            raise PrivacyError(f"{name} is not accurate on this machine: no noise can be drawn safely")


UNITS = 80  # fraction bits of a cell position held as an integer


def _cell_units(x: float, move, bits: int, precision: int) -> int:
    """(x + move) * 2^bits + 1/2 in units of 2^-UNITS, rounded down."""
    total = libmp.mpf_add(libmp.from_float(float(x)), move, precision + 1100)  # exact: x may be far smaller
    return libmp.to_int(libmp.mpf_floor(libmp.mpf_shift(total, bits + UNITS))) + (1 << (UNITS - 1))


def _agreed(low: int, high: int) -> int | None:
    return low >> UNITS if low >> UNITS == high >> UNITS else None


def _radius(end: int, depth: int, sigma: float, precision: int):
    if end >> depth:  # U = 1: radius 0
        return libmp.fzero
    log = libmp.mpf_log(libmp.from_man_exp(end, -depth), precision)
    root = libmp.mpf_sqrt(libmp.mpf_shift(libmp.mpf_neg(log), 1), precision)
    return libmp.mpf_mul(libmp.from_float(float(sigma)), root, precision)


def _angle_slack(radius, depth: int, bits: int, precision: int) -> int:
    """radius * pi * 2^-depth in the units of ``_cell_units``, rounded up."""
    arc = libmp.mpf_mul(radius, libmp.mpf_pi(precision), precision)
    return libmp.to_int(libmp.mpf_floor(libmp.mpf_shift(arc, bits + UNITS - depth))) + 1
