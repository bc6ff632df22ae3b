"""What is said, released: as bottleneck frames without noise, as noisy ones (paper A), or as noisy tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dpanon.data.audio import num_frames
from dpanon.features.content import WhisperEncoder
from dpanon.features.fbank import fbank
from dpanon.models import tokens
from dpanon.models.bottleneck import Bottleneck, to_columns
from dpanon.models.codes import COLUMN
from dpanon.privacy import BottleneckFrames, Guarantee, TokenResponse
from dpanon.privacy.sampling import NoiseSource

CHUNK = 3000  # frames worked on at once: 30 s


class Clean(Protocol):
    """Released content, frames [left, right) of it: -> (1, right - left, M), what ``Bottleneck.decode`` takes."""

    def __call__(self, left: int, right: int) -> Tensor: ...


class Content(Protocol):
    """A way to release content."""

    extractor: Bottleneck

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee | None:
        """Of one frame or token, with their number; None without noise."""

    def release(self, samples: np.ndarray, noise: NoiseSource) -> tuple[Clean, Guarantee | None]:
        """(L,) -> what is left of it, and what that promises."""


class Frames:
    """Bottleneck frames, with the noise of ``mechanism`` if there is one."""

    def __init__(self, extractor: Bottleneck, mechanism: BottleneckFrames | None = None):
        self.extractor, self.mechanism = extractor, mechanism
        self.front = _Front(extractor)

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee | None:
        return None if self.mechanism is None else self.mechanism.guarantee(num_frames, sampler)

    def release(self, samples: np.ndarray, noise: NoiseSource) -> tuple[Clean, Guarantee | None]:
        bn, claim, scale = self.front(samples, self.extractor.encode), None, 0.0
        if self.mechanism is not None:
            released = self.mechanism.release(bn, noise)
            bn, claim, scale = released.value, released.guarantee, self.mechanism.scale
        return (lambda left, right: self.extractor.denoise(torch.from_numpy(bn[left:right])[None], scale)), claim


class Tokens:
    """Segments of one code each, as tokens through randomized response; their number follows from the length."""

    def __init__(self, extractor: Bottleneck, mechanism: TokenResponse):
        if extractor.codes is None or extractor.codes.num != 1:
            raise ValueError("tokens need an extractor with one codebook")
        self.extractor, self.mechanism, self.codes = extractor, mechanism, extractor.codes
        self.front = _Front(extractor)

    def guarantee(self, num_frames: int, sampler: str) -> Guarantee:
        claim = self.mechanism.guarantee(tokens.num_tokens(num_frames), sampler)
        return replace(claim, conditional_on=(), public_side_info=("the number of frames",))

    def release(self, samples: np.ndarray, noise: NoiseSource) -> tuple[Clean, Guarantee | None]:
        num = num_frames(len(samples))
        columns = to_columns(torch.from_numpy(self.front(samples, self.extractor.dense))[None])[0]
        distance = torch.cdist(columns, self.codes.vectors[0]).square().numpy().astype(np.float64)
        released = self.mechanism.release(tokens.to_tokens(distance, num), noise)
        # private until here
        posterior, lengths = tokens.read_tokens(
            released.value, self.mechanism.keep, self.codes.token_chain, self.codes.token_durations
        )
        spread = tokens.spread(posterior @ self.codes.vectors[0], lengths, len(columns))
        frames = spread.reshape(1, COLUMN * len(columns), -1)[:, :num]
        return (lambda left, right: frames[:, left:right]), self.guarantee(num, released.guarantee.sampler)


class _Front:
    """The features that an extractor takes, and what it makes of them, part by part."""

    def __init__(self, extractor: Bottleneck):
        self.extractor = extractor
        self.recogniser = WhisperEncoder() if extractor.config.features == "whisper" else None

    def __call__(self, samples: np.ndarray, work: Callable[[Tensor, Tensor], Tensor]) -> np.ndarray:
        """(L,) -> ``work`` (features, their mean) of all frames, (T, .) float32"""
        feats, step = (fbank(samples), 1) if self.recogniser is None else (self.recogniser(samples), 2)
        mean = torch.from_numpy(feats.mean(0, keepdims=True))[None]
        made = []
        for start, stop, left, right in parts(num_frames(len(samples)), self.extractor.context):
            part = torch.from_numpy(feats[left // step : -(-right // step)])[None]
            made.append(work(part, mean)[0][start - left : stop - left].numpy())
        return np.concatenate(made)


def parts(total: int, context: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, stop, left, right): [start, stop) of ``total`` frames is made from [left, right). Even borders."""
    context += context % 2
    for start in range(0, total, CHUNK):
        stop = min(total, start + CHUNK)
        yield start, stop, max(0, start - context), min(total, stop + context)
