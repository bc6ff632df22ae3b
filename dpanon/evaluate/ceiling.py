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

    Content (frames with Laplace noise, or tokens), pitch (its box, or its contour), and the voice of the system voxlet;
    what is not covered (length) is left out.
    """
    nats = 0.0
    for row in rows:
        given = {name for name in ("epsilon_bn", "epsilon_token", "epsilon_f0", "mu_f0") if row.get(name) is not None}
        if not given & {"epsilon_bn", "epsilon_token"} or not given & {"epsilon_f0", "mu_f0"}:
            return math.inf  # content or pitch go as they are
        if "epsilon_bn" in given:
            nats += row["num_frames"] * capacity.laplace_frame_nats(float(row["epsilon_bn"]))
        if "epsilon_token" in given:
            nats += row["num_tokens"] * capacity.pure_nats(float(row["epsilon_token"]))
        if "epsilon_f0" in given:
            nats += capacity.pure_nats(float(row["epsilon_f0"]))
        for name in ("mu_f0", "mu"):
            if row.get(name) is not None:
                nats += capacity.gaussian_ball_nats(float(row[name]))
    return nats * capacity.NAT
