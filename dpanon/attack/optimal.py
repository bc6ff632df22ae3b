"""The attacker whom no other beats: it knows the two speakers and the mechanism, and only the noise is between them."""

import numpy as np

from dpanon.evaluate.eer import eer
from dpanon.privacy import KeyedNoise, SpeakerGaussian


def optimal_eer(mechanism: SpeakerGaussian, num: int = 100_000, seed: int = 1) -> float:
    """EER of ``num`` releases of each of two speakers at opposite ends of the L2 ball, by the likelihood ratio.

    For Gaussian noise the ratio is a function of the projection on the line between the two, so one coordinate is all
    that is simulated: the noise of the mechanism itself, from its sampler, under a key. It meets the floor
    ``Phi(-mu / 2)`` of the true mu, whatever mu a rule for sigma claims.
    """
    ends = [float(mechanism.clip(sign * 1e9 * np.eye(1, mechanism.dim)[0])[0]) for sign in (1.0, -1.0)]
    scores = [
        KeyedNoise(seed, str(side), "optimal").add_gaussian(np.full(num, end), mechanism.sigma, mechanism.radius)
        for side, end in enumerate(ends)
    ]
    return eer(scores[0], scores[1])
