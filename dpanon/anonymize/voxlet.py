"""The voice of the system voxlet (paper B): the recording's own x-vector, released, decoded, and nothing else of it.

    recording -> x-vector -> VAE mean --[L2 ball, Gaussian noise: dpanon.privacy]--> clamp, VAE decoder -> x-vector'
    x-vector' -> nearest pseudo-speaker of the public pool -> mean and deviation of log f0

The published converter is given the clean x-vector of the source as well, on a path of its own; here there is none.
"""

from dataclasses import dataclass

import numpy as np

from dpanon.anonymize.embeddings import Protector, both_rules
from dpanon.features.xvector import Extractor
from dpanon.privacy import Guarantee, SpeakerGaussian
from dpanon.privacy.sampling import NoiseSource
from dpanon.synth.targets import Target, TargetPool

ASSUMPTION = "content and prosody"  # carry no identity: Assumption 1 of the paper, which nothing here can prove


@dataclass(frozen=True)
class Voice:
    """A released voice and what it promises: by itself, and as a part of a release that noises everything."""

    target: Target
    guarantee: Guarantee
    facts: dict[str, float]


class ReleasedVoice:
    """Makes target voices of recordings; ``protector`` holds the VAE and the mechanism."""

    def __init__(self, extractor: Extractor, protector: Protector, pool: TargetPool):
        if not isinstance(protector.mechanism, SpeakerGaussian):
            raise ValueError("a released voice needs the Gaussian speaker mechanism")
        if extractor.dim != protector.dim:
            raise ValueError(f"{extractor.name} gives {extractor.dim} entries, the model takes {protector.dim}")
        self.extractor, self.protector, self.pool = extractor, protector, pool
        self.mechanism: SpeakerGaussian = protector.mechanism

    def release(self, samples: np.ndarray, whole: bool, noise: NoiseSource | None = None) -> Voice:
        """(L,) -> the voice.

        Args:
            whole: content and f0 get noise of their own, so that the claim needs no assumption about them.

        Raises:
            PrivacyError: the x-vector is not finite, before anything is drawn.
        """
        protected = self.protector.protect(self.extractor.embed(samples), noise)
        # private until here; from here on only the released x-vector is used
        claim = self.guarantee(whole, protected.guarantee.sampler)
        return Voice(self.voice_of(protected.vector), claim, both_rules(self.mechanism))

    def guarantee(self, whole: bool, sampler: str) -> Guarantee:
        """Alone: per speaker, given equal content and prosody. With noise in both: per utterance, given its length."""
        alone = self.mechanism.guarantee(sampler)
        if not whole:
            return alone
        return Guarantee.gdp(
            self.mechanism.mu,
            "utterance",
            mechanism=alone.mechanism,
            public_side_info=("the number of frames",),
            sampler=sampler,
        )

    def voice_of(self, xvector: np.ndarray) -> Target:
        """The pitch range of the pseudo-speaker that is nearest to a released x-vector: post-processing."""
        nearest = max(self.pool.targets.values(), key=lambda target: float(target.xvector @ xvector))
        return Target("released", nearest.sex, xvector, nearest.log_f0_mean, nearest.log_f0_std)
