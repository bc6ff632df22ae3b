"""Whether the text that was recognised is more than the noise can have let through: then the noise is not there."""

import math
from collections.abc import Mapping, Sequence

from dpanon.privacy import capacity

BITS_PER_WORD = 5.0  # of English read aloud, under the best language models: about 15 bits per second of speech


def text_bits(num_words: float, wer: float, bits_per_word: float = BITS_PER_WORD) -> float:
    """The least information in words of which a share ``wer`` is wrong (Fano's inequality per word), in bits.

    >>> text_bits(100, 0.0), text_bits(100, 1.0)
    (500.0, 0.0)
    """
    wrong = min(1.0, max(0.0, wer))
    doubt = sum(-p * math.log2(p) for p in (wrong, 1.0 - wrong) if p > 0.0)
    return max(0.0, num_words * ((1.0 - wrong) * bits_per_word - doubt))


def channel_bits(rows: Sequence[Mapping]) -> float:
    """The most that the releases of these rows of privacy.jsonl carry together, in bits; inf without a claim.

    Frames and pitch with Laplace noise, and the voice of the system voxlet with Gaussian noise; what is not covered
    (length) is left out.
    """
    nats = 0.0
    for row in rows:
        if row.get("epsilon_bn") is None or row.get("epsilon_f0") is None:
            return math.inf
        nats += row["num_frames"] * capacity.laplace_frame_nats(float(row["epsilon_bn"]))
        nats += capacity.pure_nats(float(row["epsilon_f0"]))
        if row.get("mu") is not None:
            nats += capacity.gaussian_ball_nats(float(row["mu"]))
    return nats * capacity.NAT
