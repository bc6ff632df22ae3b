"""From content, f0 and a target x-vector to a waveform; every synthesizer has the interface of ``Synthesizer``."""

from typing import Protocol

from torch import Tensor


class Synthesizer(Protocol):
    """What the rest of dpanon needs of a synthesizer, whatever is inside."""

    context: int  # frames of 10 ms on either side that one sample depends on

    def __call__(self, content: Tensor, f0: Tensor, xvector: Tensor) -> Tensor:
        """content (N, ceil(T/2), D), f0 (N, T) Hz > 0, x-vector (N, 192) -> samples (N, 160 * T)"""
        ...
