"""A public ladder of lengths: pad to the next rung, and the release tells the rung instead of the length."""

from __future__ import annotations

import math
from dataclasses import replace

from dpanon.privacy.checks import count, positive
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import Guarantee

FIRST = 100  # frames of the lowest rung: one second
RATIO = 1.25
LONGEST = 10_000_000  # frames: a day and more
STEP = "the step of the public ladder of lengths"
_FRAMES = "the number of frames"


def rung(num_frames: int, first: int = FIRST, ratio: float = RATIO) -> int:
    """The lowest rung of ``first, ceil(first ratio), ...`` that is not under ``num_frames``.

    The ladder depends on nothing but its two public numbers, so the rung is all that the padded length tells.

    >>> rung(1), rung(100), rung(101)
    (100, 100, 126)
    """
    if count("num_frames", num_frames) > LONGEST:
        raise PrivacyError(f"the ladder of lengths ends at {LONGEST} frames, got {num_frames}")
    height = count("first", first)
    if positive("ratio", ratio) <= 1.0:
        raise PrivacyError(f"ratio must be > 1, got {ratio}")
    while height < num_frames:
        height = max(height + 1, 2 * math.ceil(height * ratio / 2))  # even, as frames of 20 ms need it
    return height


def on_ladder(guarantee: Guarantee) -> Guarantee:
    """The claim of a padded utterance: the same numbers, for all lengths that pad to the same rung."""
    if guarantee.unit != "utterance":
        raise PrivacyError(f"an utterance is padded, so the claim must be about one, got one about a {guarantee.unit}")
    return replace(
        guarantee,
        adjacency="replace the utterance by any other whose length is on the same step of the public ladder",
        public_side_info=tuple(STEP if word == _FRAMES else word for word in guarantee.public_side_info),
    )
