"""Refuse bad parameters and bad arrays before any noise is drawn."""

from __future__ import annotations

import math
import numbers
import sys
from typing import Any

import numpy as np

from dpanon.privacy.errors import PrivacyError

LARGEST = 1e30  # scales beyond it overflow the float32 that is released


def positive(name: str, value: Any, advice: str = "") -> float:
    """A finite real number > 0, as float; a bool is not a number here."""
    advice = f"; {advice}" if advice else ""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.floating, np.integer)):
        raise PrivacyError(f"{name} must be a finite number > 0, got {value!r} of type {type(value).__name__}{advice}")
    number = float(value)
    if not 0.0 < number < math.inf:
        raise PrivacyError(f"{name} must be finite and > 0, got {value}{advice}")
    return number


def scale_in_range(name: str, value: float) -> float:
    """A noise scale that float32 can carry; what is beyond was mistyped."""
    if not 1.0 / LARGEST <= value <= LARGEST:
        raise PrivacyError(f"{name} gives noise of scale {value:g}, outside [{1 / LARGEST:g}, {LARGEST:g}]")
    return value


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer >= ``least``; a bool is not an integer here."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise PrivacyError(f"{name} must be an integer >= {least}, got {value!r} of type {type(value).__name__}")
    if value < least:
        raise PrivacyError(f"{name} must be >= {least}, got {value}")
    return int(value)


def probability(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = positive(name, value)
    if number >= 1.0:
        raise PrivacyError(f"{name} must be in (0, 1), got {value}")
    return number


def shaped(name: str, x: Any, axes: str, *sizes: int | None) -> np.ndarray:
    """An array or tensor of floats as an ndarray of float64, with every axis checked.

    ``sizes`` holds the required length of each axis, None where any length >= 1 will do.
    """
    array = to_numpy(name, x)
    if array.ndim != len(sizes):
        raise PrivacyError(f"{name} must have shape {axes}, got {array.ndim} axes: {array.shape}")
    if array.size == 0:
        raise PrivacyError(f"{name} is empty, shape {array.shape}: there is nothing to release")
    for have, want in zip(array.shape, sizes, strict=True):
        if want is not None and have != want:
            raise PrivacyError(f"{name} must have shape {axes} with {want} where it has {have}: {array.shape}")
    return array


def to_numpy(name: str, x: Any) -> np.ndarray:
    """Floats of any precision, stride or device -> C-contiguous float64 (read only: it may share memory with ``x``)."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        if not x.is_floating_point():
            raise PrivacyError(f"{name} must be of a float dtype, got {x.dtype}")
        if x.layout != torch.strided or x.device.type == "meta":
            raise PrivacyError(f"{name} must be a dense tensor with data, got layout {x.layout} on {x.device}")
        return np.ascontiguousarray(x.detach().to(device="cpu", dtype=torch.float64).numpy())
    if not isinstance(x, np.ndarray):
        raise PrivacyError(f"{name} must be a numpy array or a torch tensor, got {type(x).__name__}")
    if isinstance(x, np.ma.MaskedArray):
        raise PrivacyError(f"{name} is a masked array; fill it first, the mask would be lost")
    if not np.issubdtype(x.dtype, np.floating):
        raise PrivacyError(f"{name} must be of a float dtype, got {x.dtype}")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(x, dtype=np.float64)
