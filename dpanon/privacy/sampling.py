"""Ideal Laplace and Gaussian noise, correctly rounded; and the sources that key it.

``y = g * round((x + Z) / g)`` with Z the *ideal real-valued* noise, x the exact value of the
clipped float64 and g a power of two. As a function of the ideal mechanism's output alone, y has
exactly the ideal guarantee: nothing is lost to rounding, and no output betrays the input by its
low bits, as 80 % of the outputs of a float32 Laplace do.

How: one 64-bit word of keystream per variable says in which interval of width 2^-63 the uniform
variable lies. ``(x + Z) / g`` is computed in float64 with a proven error; where every completion
of U rounds alike (all but about one draw in a million) that decides. Otherwise 64 more bits are
drawn and the ends of the interval are evaluated in multiple precision, until they agree.

The keystream is AES-256-CTR under a key drawn from the operating system for each call. There is
no module-level state and no object holds a key between calls of ``SystemNoise``, so forks,
threads, copies, pickles, ``torch.manual_seed`` and ``np.random.seed`` change nothing.
"""

from __future__ import annotations

import hashlib
import math
import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dpanon.privacy import exact
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import EXACT, INSECURE, KEYED

CHUNK = 1 << 14  # elements worked on at a time: all buffers stay in the cache
SIGN = np.uint64(1 << 63)
MAGNITUDE = np.uint64((1 << 63) - 1)


class NoiseSource(Protocol):
    """Adds noise to clipped values; says whether the sum may leave."""

    @property
    def releasable(self) -> bool: ...

    @property
    def sampler(self) -> str: ...

    def add_laplace(self, x: np.ndarray, scale: float, bound: float) -> np.ndarray: ...

    def add_gaussian(self, x: np.ndarray, sigma: float, bound: float) -> np.ndarray: ...

    def keystream(self) -> Keystream: ...


class SystemNoise:
    """Fresh noise from the operating system at every call: the default everywhere.

    With ``DPANON_INSECURE_FAST=1`` in the environment it is torch's floating point noise, whose
    low bits betray the input; every guarantee is then stamped INSECURE.
    """

    def __init__(self) -> None:
        self.sampler = INSECURE if os.environ.get("DPANON_INSECURE_FAST") == "1" else EXACT
        self.releasable = self.sampler == EXACT

    def add_laplace(self, x: np.ndarray, scale: float, bound: float) -> np.ndarray:
        if self.sampler == INSECURE:
            return x + _torch_laplace(x.shape, scale)
        return add_laplace(x, scale, bound, self.keystream())

    def add_gaussian(self, x: np.ndarray, sigma: float, bound: float) -> np.ndarray:
        if self.sampler == INSECURE:
            return x + _torch_gaussian(x.shape, sigma)
        return add_gaussian(x, sigma, bound, self.keystream())

    def keystream(self) -> Keystream:
        """A fresh one: for the draws of discrete mechanisms, which are exact in any case."""
        return Keystream(os.urandom(32))


class KeyedNoise:
    """Repeatable noise for one utterance, for tests and tables. Its output must not be released.

    The same sampler under a key made of the arguments and the number of draws before this one:
    not of the job, the order of utterances or the process.
    """

    releasable = False
    sampler = KEYED

    def __init__(self, seed: int, utt_id: str, stream: str):
        self._material = "".join(f"{len(str(part))}:{part}," for part in (seed, utt_id, stream))
        self._draws = 0

    def add_laplace(self, x: np.ndarray, scale: float, bound: float) -> np.ndarray:
        return add_laplace(x, scale, bound, self.keystream())

    def add_gaussian(self, x: np.ndarray, sigma: float, bound: float) -> np.ndarray:
        return add_gaussian(x, sigma, bound, self.keystream())

    def keystream(self) -> Keystream:
        material = f"dpanon keyed noise|{self._material}|{self._draws}"
        self._draws += 1
        return Keystream(hashlib.sha256(material.encode()).digest())


class Keystream:
    """AES-256-CTR under one key: a stream of words, and apart from it the bits of undecided draws."""

    def __init__(self, key: bytes):
        if len(key) != 32:
            raise PrivacyError(f"a key has 32 bytes, got {len(key)}")
        self._words = _counter_mode(key, stream=0)
        self._extra = _counter_mode(key, stream=1)
        self._zeros = b""
        self._buffer = bytearray()

    def words(self, num: int) -> np.ndarray:
        """The next ``num`` words; the array is overwritten by the next call."""
        if len(self._zeros) != 8 * num:
            self._zeros, self._buffer = bytes(8 * num), bytearray(8 * num + 16)
        self._words.update_into(self._zeros, self._buffer)
        return np.frombuffer(self._buffer, dtype="<u8", count=num)

    def more_bits(self) -> int:
        return int.from_bytes(self._extra.update(bytes(8)), "little")


def add_laplace(x: np.ndarray, scale: float, bound: float, stream: Keystream) -> np.ndarray:
    """x + Lap(scale), rounded to the grid. ``bound`` >= |x| is public: the grid depends on it, not on x."""
    exact.check_libm()
    bits = grid_bits(scale, bound)
    unit, ratio = 2.0**bits, scale * 2.0**bits
    limit = 0.5 - _band(ratio, unit, bound)
    least = ratio * 2.0**24  # below, the interval of U is too wide for the filter
    flat = np.ascontiguousarray(x, dtype=np.float64).ravel()
    y = np.empty_like(flat)
    buffers = np.empty((2, min(CHUNK, flat.size)))
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        n = y[start : start + CHUNK]
        s, centre = buffers[:, : part.size]
        words = stream.words(part.size)
        sign = words & SIGN
        np.bitwise_and(words, MAGNITUDE, out=words)
        np.copyto(s, words.view(np.int64), casting="same_kind")
        s += 0.5
        lowest = s.min()
        s *= 2.0**-63
        exact.log_(s)  # ln U <= 0
        s_bits = s.view(np.uint64)
        s_bits ^= sign
        s *= ratio
        np.multiply(part, unit, out=centre)
        centre += 0.5
        s += centre
        np.floor(s, out=n)
        s -= n
        s -= 0.5
        np.abs(s, out=s)  # distance from the middle of a cell, whose border is at 0.5
        if lowest < least or s.max() >= limit:
            k = words.view(np.int64)
            for i in np.flatnonzero((s >= limit) | (k < least)):
                n[i] = exact.laplace_cell(float(part[i]), bool(sign[i]), int(k[i]), scale, bits, stream.more_bits)
        n *= 1.0 / unit
        n += 0.0  # no -0.0
    return y.reshape(x.shape)


def add_gaussian(x: np.ndarray, sigma: float, bound: float, stream: Keystream) -> np.ndarray:
    """x + N(0, sigma^2), rounded to the grid, by Box and Muller's pairs. ``bound`` >= |x| is public."""
    exact.check_libm()
    bits = grid_bits(sigma, bound)
    unit, ratio = 2.0**bits, sigma * 2.0**bits
    limit = 0.5 - _band(ratio, unit, bound)
    least, most = ratio * 2.0**24, 2.0**63 * (1.0 - 2.0**-16)  # beyond ``most`` the root loses digits
    flat = np.ascontiguousarray(x, dtype=np.float64).ravel()
    half = (flat.size + 1) // 2
    y = np.zeros((2, half))  # element i and i + half share a pair of words
    y.ravel()[: flat.size] = flat
    step = CHUNK // 2
    buffers = np.empty((4, min(step, half)))
    for start in range(0, half, step):
        n = y[:, start : start + step]  # holds x, then the cell, then the value
        num = n.shape[1]
        u, s, centre = buffers[0, :num], buffers[1:3, :num], buffers[3, :num]
        words = stream.words(2 * num).view(np.int64)
        magnitude, turn = words[:num], words[num:]
        magnitude &= np.int64(MAGNITUDE)
        np.copyto(u, magnitude, casting="same_kind")
        u += 0.5
        lowest, highest = u.min(), u.max()
        u *= 2.0**-63
        exact.log_(u)
        u *= -2.0
        np.sqrt(u, out=u)
        u *= ratio
        np.copyto(s[0], turn, casting="same_kind")
        s[0] *= math.pi * 2.0**-63
        s[1] = s[0]
        exact.cos_(s[0])
        exact.sin_(s[1])
        undecided = np.zeros(num, dtype=bool)
        for row, cells in zip(s, n, strict=True):
            row *= u
            np.multiply(cells, unit, out=centre)
            centre += 0.5
            row += centre
            np.floor(row, out=centre)
            row -= centre
            row -= 0.5
            np.abs(row, out=row)
            if row.max() >= limit:
                undecided |= row >= limit
            row[:] = centre
        if lowest < least or highest > most:
            undecided |= (magnitude < least) | (magnitude > most)
        for i in np.flatnonzero(undecided):  # both of a pair: they share the bits drawn to decide
            pair = (float(n[0, i]), float(n[1, i]))
            s[:, i] = exact.gaussian_cells(pair, int(magnitude[i]), int(turn[i]), sigma, bits, stream.more_bits)
        np.multiply(s, 1.0 / unit, out=n)
        n += 0.0
    return y.ravel()[: flat.size].reshape(x.shape)


def grid_bits(scale: float, bound: float) -> int:
    """k of the grid 2^-k: about 2^21 steps per noise scale, and at most 2^24 to the bound."""
    return min(22 - math.frexp(scale)[1], 24 - math.frexp(bound)[1])


def _band(ratio: float, unit: float, bound: float) -> float:
    """More than the error of s: ln and its argument (2^-44 of the scale, doubled), the sum, the interval of U."""
    return ratio * 2.0**-43 + bound * unit * 2.0**-50 + 2.0**-23


def _counter_mode(key: bytes, stream: int):
    return Cipher(algorithms.AES(key), modes.CTR(bytes([stream]) + bytes(15))).encryptor()


def _torch_laplace(shape: tuple[int, ...], scale: float) -> np.ndarray:
    import torch

    uniform = torch.rand(shape) - 0.5
    return (-scale * uniform.sign() * torch.log1p(-2 * uniform.abs()).clamp_min(-30)).double().numpy()


def _torch_gaussian(shape: tuple[int, ...], sigma: float) -> np.ndarray:
    import torch

    return (sigma * torch.randn(shape)).double().numpy()
