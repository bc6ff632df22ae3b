"""From content, f0 and a target x-vector to a waveform; every synthesizer has the interface of ``Synthesizer``.

``harmonic`` (the default) works at frame rate and runs on a CPU; ``nsf`` and ``hifigan`` make samples behind an
acoustic model, as paper A does. ``choose`` has them by name.
"""

from typing import Protocol

from torch import Tensor


class Synthesizer(Protocol):
    """What the rest of dpanon needs of a synthesizer, whatever is inside."""

    @property
    def context(self) -> int:
        """Frames of 10 ms on either side that one sample depends on: parts that overlap by it make the whole."""

    def __call__(self, content: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor | None = None) -> Tensor:
        """content (N, ceil(T/2), D), f0 (N, T) Hz > 0, x-vector (N, 192) -> samples (N, 160 * T)

        ``phase`` (N,) in cycles is where the excitation at f0 starts, so that it runs on from part to part.
        """
        ...
