"""Exact draws from discrete laws, and the mechanisms that answer with a symbol instead of a noisy number.

Nothing here rounds a probability. A draw compares a uniform variable, of which 63 or 64 bits are known,
with bounds computed in float64 and a proven error; where the known bits do not decide (once in a million
draws and less) more bits and multiple precision do, as in ``sampling``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import libmp

from dpanon.privacy import capacity, clip, exact
from dpanon.privacy.checks import count, positive, shaped
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import Guarantee, Part
from dpanon.privacy.mechanisms import NO_BASELINE, Released
from dpanon.privacy.sampling import Keystream, NoiseSource, SystemNoise

LARGEST_ALPHABET = 1 << 16
LARGEST_SCALE = 2.0**30  # of discrete Laplace noise, in steps
LARGEST_EPSILON = 600.0  # of one symbol; e^-epsilon is still a float
GUARD = 80  # bits of precision beyond those that are compared


class _Symbols:
    """What the mechanisms over an alphabet share: the check of their input, the claim per segment."""

    name = ""

    def __init__(self, epsilon: float, size: int):
        self.epsilon = positive("epsilon", epsilon, NO_BASELINE)
        if self.epsilon > LARGEST_EPSILON:
            raise PrivacyError(f"epsilon of one symbol must be at most {LARGEST_EPSILON:g}, got {epsilon}")
        self.size = count("size", size, least=2)
        if self.size > LARGEST_ALPHABET:
            raise PrivacyError(f"an alphabet has at most {LARGEST_ALPHABET} symbols, got {size}")

    def part(self) -> Part:
        """The loss of one answer."""
        raise NotImplementedError

    def guarantee(self, num_segments: int | None = None, sampler: str = "exact") -> Guarantee:
        """Of one segment; with ``num_segments`` it can be restated ``to_unit("utterance")``."""
        return Guarantee(
            (self.part(),),
            "segment",
            mechanism=self.name,
            conditional_on=("numbers of segments",),
            public_side_info=("the number of segments",),
            not_covered=("how a segment moves the borders and symbols of its neighbours",),
            num_units=num_segments,
            sampler=sampler,
        )

    def _checked(self, tokens: Any) -> np.ndarray:
        tokens = _integers(f"{self.name}: tokens", tokens, "(S,)", 1)
        if tokens.min() < 0 or tokens.max() >= self.size:
            raise PrivacyError(f"{self.name}: a token must be in [0, {self.size}), got {tokens.min()}..{tokens.max()}")
        return tokens

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={self.epsilon:g}, size={self.size})"


class TokenResponse(_Symbols):
    """Make every segment epsilon-DP by k-ary randomized response on its token.

    The token is kept with probability ``e^epsilon / (e^epsilon + k - 1)``, else replaced by one of the
    others. What a segment needs to be heard (its length class, say) belongs into the alphabet: what is
    not in the token is not covered. (Warner 1965.)

    Args:
        epsilon: privacy loss of one segment; finite and > 0.
        size: k, number of symbols.

    Shape:
        tokens: ``(S,)`` integers in [0, k); returns ``Released`` with ``value`` ``(S,)`` int64.
    """

    name = "tokens, each by randomized response"

    @property
    def keep(self) -> float:
        """Probability that a token comes out as it is."""
        return 1.0 / (1.0 + (self.size - 1) * math.exp(-self.epsilon))

    def part(self) -> Part:
        return Part("response", self.epsilon, mass=self.keep)

    def release(self, tokens: Any, noise: NoiseSource | None = None) -> Released:
        tokens = self._checked(tokens)
        noise = SystemNoise() if noise is None else noise
        stream = noise.keystream()
        kept = bernoulli(len(tokens), self._keep, stream)
        others = integers(len(tokens), self.size - 1, stream)
        others += others >= tokens  # all but the token itself
        return Released(np.where(kept, tokens, others), self.guarantee(len(tokens), noise.sampler))

    def _keep(self, precision: int):
        lost = libmp.mpf_exp(libmp.from_float(-self.epsilon), precision)
        total = libmp.mpf_add(libmp.fone, libmp.mpf_mul(libmp.from_int(self.size - 1), lost), precision)
        return libmp.mpf_div(libmp.fone, total, precision)


class SubsetSelection(_Symbols):
    """Make every segment epsilon-DP by a random set of d symbols, likely to hold the right one.

    ``d`` is the size that lets most information through (``capacity.best_share``). The set holds the token with
    probability ``d e^epsilon / (d e^epsilon + k - d)``, and is uniform besides; for d = 1 it is randomized response.
    (Ye and Barg 2018.) It attains the information ceiling of ``capacity``.

    Shape:
        tokens: ``(S,)`` integers in [0, k); returns ``Released`` with ``value`` ``(S, d)`` int64, sorted sets.
    """

    name = "tokens, each by subset selection"

    def __init__(self, epsilon: float, size: int):
        super().__init__(epsilon, size)
        best = self.size * capacity.best_share(self.epsilon)
        self.subset = max(
            {max(1, min(self.size - 1, d)) for d in (math.floor(best), math.ceil(best))}, key=self.information
        )

    @property
    def keep(self) -> float:
        """Probability that the set holds the token."""
        return 1.0 / (1.0 + (self.size - self.subset) / self.subset * math.exp(-self.epsilon))

    def information(self, subset: int) -> float:
        """Nats that a uniform token sends through sets of this size."""
        inside = self.size / (subset + (self.size - subset) * math.exp(-self.epsilon))  # P(set | token in it) / P(set)
        outside = inside * math.exp(-self.epsilon)
        share = subset / self.size
        return share * inside * math.log(inside) + (1.0 - share) * outside * math.log(outside)

    def part(self) -> Part:
        return Part("response", self.epsilon, mass=self.keep * (self.size - self.subset) / (self.size - 1))

    def release(self, tokens: Any, noise: NoiseSource | None = None) -> Released:
        tokens = self._checked(tokens)
        noise = SystemNoise() if noise is None else noise
        stream = noise.keystream()
        holds = bernoulli(len(tokens), self._keep, stream)
        # the others in a uniform order: Fisher and Yates's first d steps, for all segments at once
        order = np.tile(np.arange(self.size - 1), (len(tokens), 1))
        rows = np.arange(len(tokens))
        for i in range(self.subset):
            pick = i + integers(len(tokens), self.size - 1 - i, stream)
            order[rows, i], order[rows, pick] = order[rows, pick].copy(), order[rows, i].copy()
        sets = order[:, : self.subset]
        sets += sets >= tokens[:, None]
        sets[holds, 0] = tokens[holds]  # d - 1 of the others and the token, or d of the others
        return Released(np.sort(sets, axis=1), self.guarantee(len(tokens), noise.sampler))

    def _keep(self, precision: int):
        lost = libmp.mpf_exp(libmp.from_float(-self.epsilon), precision)
        odds = libmp.mpf_div(libmp.from_int(self.size - self.subset), libmp.from_int(self.subset), precision)
        total = libmp.mpf_add(libmp.fone, libmp.mpf_mul(odds, lost), precision)
        return libmp.mpf_div(libmp.fone, total, precision)


class CodebookChoice(_Symbols):
    """Make every segment epsilon-DP by the exponential mechanism over a public codebook.

    The code c of a vector x is drawn with probability proportional to ``exp(-epsilon d(x, c) / (2 D))``, where x is
    clipped to the L2 ball of ``radius`` and D is the largest distance to any code from there. The exponents are
    clipped to [-epsilon/2, 0], so that they never differ by more than epsilon/2 between two inputs, and the
    draw is exact for the exponents as floats: the claim holds to the last digit. This is plain epsilon-DP, not a
    metric relaxation of it. (McSherry and Talwar 2007.)

    Args:
        epsilon: privacy loss of one segment; finite and > 0.
        codebook: ``(k, M)`` public codes.
        radius: of the ball that vectors are clipped to; by default the largest norm of a code.

    Shape:
        x: ``(S, M)`` floats; returns ``Released`` with ``value`` ``(S,)`` int64, the codes' indices.
    """

    name = "codes, each by the exponential mechanism"

    def __init__(self, epsilon: float, codebook: Any, radius: float | None = None):
        self.codebook = shaped("codebook", codebook, "(k, M)", None, None)
        super().__init__(epsilon, len(self.codebook))
        if not np.isfinite(self.codebook).all() or np.abs(self.codebook).max() > 1e100:
            raise PrivacyError("the codebook must be finite")
        norms = np.linalg.norm(self.codebook, axis=1)
        self.radius = positive("radius", float(norms.max()) if radius is None else radius)
        self.longest = float(norms.max()) + self.radius

    def part(self) -> Part:
        return Part("pure", self.epsilon)

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """(S, M) -> (S, k) exponents in [-epsilon/2, 0]."""
        inside = clip.l2_ball(shaped("vectors", x, "(S, M)", None, self.codebook.shape[1]), self.radius)
        squares = (inside**2).sum(1)[:, None] + (self.codebook**2).sum(1) - 2.0 * inside @ self.codebook.T
        distance = np.sqrt(np.maximum(squares, 0.0)) / self.longest
        return np.clip(-0.5 * self.epsilon * distance, -0.5 * self.epsilon, 0.0)

    def release(self, x: Any, noise: NoiseSource | None = None) -> Released:
        weights = self.log_weights(x)
        noise = SystemNoise() if noise is None else noise
        return Released(categorical(weights, noise.keystream()), self.guarantee(len(weights), noise.sampler))


class IntegerLaplace:
    """Make integer counts epsilon-DP by discrete Laplace noise of scale sensitivity / epsilon.

    The caller bounds the counts: ``sensitivity`` is the most by which they can differ in L1 between two inputs.
    (Ghosh, Roughgarden and Sundararajan 2009.)

    Shape:
        counts: ``(M,)`` integers below 2^53; returns ``Released`` with ``value`` ``(M,)`` int64.
    """

    def __init__(self, epsilon: float, sensitivity: int, unit: str = "utterance"):
        self.epsilon = positive("epsilon", epsilon, NO_BASELINE)
        self.sensitivity = count("sensitivity", sensitivity)
        self.unit = unit
        self.scale = math.nextafter(self.sensitivity / self.epsilon, math.inf)
        self.guarantee()  # an unknown unit is found here
        _scale_in_steps(self.scale)

    def release(self, counts: Any, noise: NoiseSource | None = None) -> Released:
        counts = _integers("counts", counts, "(M,)", 1)
        if np.abs(counts).max() > 1 << 53:
            raise PrivacyError("counts must be at most 2^53")
        noise = SystemNoise() if noise is None else noise
        noisy = counts + discrete_laplace(len(counts), self.scale, noise.keystream())
        return Released(noisy, self.guarantee(noise.sampler))

    def guarantee(self, sampler: str = "exact") -> Guarantee:
        return Guarantee.pure(self.epsilon, self.unit, mechanism="counts", sampler=sampler)

    def __repr__(self) -> str:
        return f"IntegerLaplace(epsilon={self.epsilon:g}, sensitivity={self.sensitivity})"


def integers(num: int, high: int, stream: Keystream) -> np.ndarray:
    """``num`` uniform integers in [0, high), int64. Words beyond the last whole multiple are drawn again."""
    count("high", high)
    limit = np.uint64((1 << 64) - 1 - (1 << 64) % high)
    words = stream.words(num).copy()
    while (again := np.flatnonzero(words > limit)).size:
        words[again] = stream.words(again.size)
    return (words % np.uint64(high)).astype(np.int64)


def bernoulli(num: int, probability: Callable[[int], Any], stream: Keystream) -> np.ndarray:
    """``num`` draws that are True with exactly this probability.

    Args:
        probability: in (0, 1), as mpmath's raw number right to the given number of bits.
    """
    threshold = _floor(probability(64 + GUARD), 64)  # off by one at most
    words = stream.words(num).copy()
    last = (1 << 64) - 1  # a probability nearer to 1 than a word tells: its last one is among those that are near
    result = words < np.uint64(min(threshold, last))
    near = (words >= np.uint64(max(threshold - 2, 0))) & (words <= np.uint64(min(threshold + 1, last)))
    for i in np.flatnonzero(near):
        result[i] = _below(int(words[i]), probability, stream.more_bits)
    return result


def categorical(log_weights: np.ndarray, stream: Keystream) -> np.ndarray:
    """One index per row, with probability proportional to exp of its entry, exactly: (S, k) -> (S,) int64."""
    exact.check_libm()
    rows, size = log_weights.shape
    weights = log_weights - log_weights.max(axis=1, keepdims=True)
    spread = -weights.min(axis=1, keepdims=True)
    exact.exp_(weights)
    ends = np.cumsum(weights, axis=1)
    total = ends[:, -1:]
    words = stream.words(rows).copy()
    at = (words >> np.uint64(11)).astype(np.float64)[:, None] * 2.0**-53 * total
    # more than the error of the difference, of exp and of the sums, and the bits of U not looked at
    band = (4.0 * (size + spread) + 64.0) * 2.0**-52 * total
    result = np.minimum((ends <= at).sum(axis=1), size - 1)
    for i in np.flatnonzero((np.abs(ends[:, :-1] - at) <= band).any(axis=1)):
        result[i] = _exact_category(log_weights[i], int(words[i]), stream.more_bits)
    return result.astype(np.int64)


def discrete_laplace(num: int, scale: float, stream: Keystream) -> np.ndarray:
    """``num`` integers n with probability proportional to ``exp(-|n| / scale)``, int64.

    The difference of two geometric variables, each the whole part of ``scale ln(1/U)``.
    """
    exact.check_libm()
    scale = _scale_in_steps(scale)
    words = (stream.words(2 * num) & np.uint64((1 << 63) - 1)).view(np.int64)
    waits = -scale * np.log((words + 0.5) * 2.0**-63)
    whole = np.floor(waits)
    unsure = np.abs(waits - np.round(waits)) <= scale * 2.0**-43 + 2.0**-23
    unsure |= words <= scale * 2.0**24
    for i in np.flatnonzero(unsure):
        whole[i] = exact.laplace_cell(-0.5, True, int(words[i]), scale, 0, stream.more_bits)
    return (whole[:num] - whole[num:]).astype(np.int64)


def _exact_category(log_weights: np.ndarray, word: int, more_bits: Callable[[], int]) -> int:
    depth = 64
    while True:
        precision = depth + GUARD
        ends, total = [], libmp.fzero
        for weight in log_weights:
            total = libmp.mpf_add(total, libmp.mpf_exp(libmp.from_float(float(weight)), precision), precision)
            ends.append(total)
        # U total in units of 2^-depth total: between word and word + 1; errors stay far below GUARD bits
        cells = [_floor(libmp.mpf_div(end, total, precision), depth + GUARD // 2) for end in ends[:-1]]
        low, high = word << (GUARD // 2), (word + 1) << (GUARD // 2)
        first = sum(cell + 1 < low for cell in cells)
        if first == sum(cell - 1 < high for cell in cells):
            return first
        word, depth = (word << 64) | more_bits(), depth + 64


def _below(word: int, probability: Callable[[int], Any], more_bits: Callable[[], int]) -> bool:
    depth = 64
    while True:
        threshold = _floor(probability(depth + GUARD), depth + GUARD // 2)
        if (word + 1) << (GUARD // 2) < threshold:
            return True
        if word << (GUARD // 2) > threshold + 1:
            return False
        word, depth = (word << 64) | more_bits(), depth + 64


def _floor(number, bits: int) -> int:
    return libmp.to_int(libmp.mpf_floor(libmp.mpf_shift(number, bits)))


def _scale_in_steps(scale: float) -> float:
    if positive("scale", scale) > LARGEST_SCALE:
        raise PrivacyError(f"discrete noise has a scale of at most {LARGEST_SCALE:g} steps, got {scale:g}")
    return float(scale)


def _integers(name: str, x: Any, axes: str, ndim: int) -> np.ndarray:
    """An array or tensor of integers as int64."""
    array = np.asarray(x.detach().cpu().numpy() if hasattr(x, "detach") else x)
    if array.dtype == np.bool_ or not np.issubdtype(array.dtype, np.integer):
        raise PrivacyError(f"{name} must be integers, got {array.dtype}")
    if array.ndim != ndim or array.size == 0:
        raise PrivacyError(f"{name} must have shape {axes} and not be empty, got {array.shape}")
    if array.max() > np.iinfo(np.int64).max:
        raise PrivacyError(f"{name} do not fit into 64 bits")
    return array.astype(np.int64)
