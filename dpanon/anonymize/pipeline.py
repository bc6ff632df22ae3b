"""One utterance: recording -> features -> release -> waveform of a pseudo-speaker (paper A, figure 1).

    recording -> bn --[noise]--> denoise -> decode -> content --\\
              -> f0 --[noise]--> f0 in the target's range -----> synthesizer -> waveform
                                 target of the public pool --/

Between the brackets and the waveform nothing of the recording is used but the number of its frames, in a system
whose ``content`` and ``prosody`` both add noise. What the others leave open, their claim is conditional on.
"""

import hashlib
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpanon.anonymize.content import Clean, Content, parts
from dpanon.anonymize.prosody import Expected, Prosody
from dpanon.anonymize.voxlet import ReleasedVoice
from dpanon.data.audio import num_frames
from dpanon.features.f0 import extract_f0
from dpanon.features.level import normalise_level
from dpanon.models.intonation import Intonation
from dpanon.privacy import Guarantee, KeyedNoise, SystemNoise
from dpanon.privacy.sampling import NoiseSource
from dpanon.synth.targets import Target, TargetPool

SHIFT = 160
_PEAK = 0.99


@dataclass(frozen=True)
class Anonymized:
    """A released utterance and what is promised for it."""

    samples: np.ndarray  # (160 * T,) float32
    num_frames: int
    target: str
    guarantee: Guarantee  # of the utterance
    guarantee_frame: Guarantee | None  # of one bn frame, or of one token
    guarantee_f0: Guarantee | None  # of the utterance's f0
    guarantee_speaker: Guarantee | None = None  # of the released voice (voxlet)
    facts: dict[str, float] = field(default_factory=dict)  # more about the noise, for privacy.jsonl


class Piece(NamedTuple):
    """Decoded content (1, (right - left) / 2, M) of frames [left, right), of which [start, stop) is made."""

    start: int
    stop: int
    left: int
    right: int
    content: Tensor


class System:
    """An anonymization system: how it releases content and prosody, and what speaks.

    With a ``voice`` (system voxlet) the target is not chosen: it is the recording's own x-vector, released. With an
    ``intonation``, ``prosody`` is told the contour that the released content lets expect.
    """

    def __init__(
        self,
        name: str,
        content: Content,
        prosody: Prosody,
        synthesizer,
        pool: TargetPool,
        f0_method: str = "swift",
        voice: ReleasedVoice | None = None,
        intonation: Intonation | None = None,
    ):
        self.name, self.content, self.prosody = name, content, prosody
        self.extractor, self.synthesizer, self.pool = content.extractor, synthesizer, pool
        self.f0_method, self.voice, self.intonation = f0_method, voice, intonation

    def promise(self, num_frames: int, sampler: str) -> Guarantee:
        """What the release of an utterance of so many frames promises, before it is made."""
        claims = self.content.guarantee(num_frames, sampler), self.prosody.guarantee(num_frames, sampler)
        return self._whole(*claims, sampler)

    @torch.inference_mode()
    def anonymize(self, samples: np.ndarray, target: Target, noise: NoiseSource | None = None) -> Anonymized:
        """The recording ``samples`` (L,) in the voice of ``target``, 160 samples for each of its frames.

        Args:
            target: not used by a system with a released voice.
            noise: None draws from the operating system; a ``KeyedNoise`` repeats, for tests, and
                its result is marked not releasable.

        Raises:
            PrivacyError: from the mechanisms, before anything is made.
        """
        samples = normalise_level(samples)
        num = num_frames(len(samples))
        noise = SystemNoise() if noise is None else noise
        f0 = extract_f0(samples, self.f0_method)
        content, content_claim = self.content.release(samples, noise)
        pieces = self._decode(content, num)
        pitch = self.prosody.release(f0, noise, self._expect(pieces))
        noisy = content_claim is not None or pitch.guarantee is not None
        voice = None if self.voice is None else self.voice.release(samples, noisy, noise)
        # private until here; from here on only the released values are used
        whole = self._whole(content_claim, pitch.guarantee, noise.sampler)
        target = target if voice is None else voice.target
        made = self._synthesize(pieces, pitch.of(target), target, noise)
        alone, facts = None, {}
        if voice is not None:
            alone, facts = _given_open(voice.guarantee, content_claim, pitch.guarantee), voice.facts
        return Anonymized(made, num, target.id, whole, content_claim, pitch.guarantee, alone, facts)

    def _whole(self, content: Guarantee | None, f0: Guarantee | None, sampler: str) -> Guarantee:
        """Of the utterance: all claims together, given what has none."""
        claims = [claim for claim in (f0, content and content.to_unit("utterance")) if claim is not None]
        if self.voice is not None:
            claims.append(self.voice.guarantee(bool(claims), sampler))
        if not claims:
            return Guarantee.none(f"the system {self.name} adds no noise")
        whole = claims[0]
        for claim in claims[1:]:
            whole = whole.compose(claim)
        return _given_open(whole, content, f0)

    def _decode(self, content: Clean, num: int) -> list[Piece]:
        """Released content, as the networks behind it take it: part by part, with what each sees around it."""
        context = self.extractor.context + max(
            self.synthesizer.context, 0 if self.intonation is None else self.intonation.context
        )
        return [
            Piece(start, stop, left, right, self.extractor.decode(content(left, right)))
            for start, stop, left, right in parts(num, context)
        ]

    def _expect(self, pieces: list[Piece]) -> Expected | None:
        """What released content lets expect of the contour."""
        if self.intonation is None:
            return None
        made = []
        for piece in pieces:
            whole = self.intonation(piece.content)[0].numpy()
            made.append(whole[piece.start - piece.left : piece.stop - piece.left])
        return Expected(np.concatenate(made), self.intonation.errors.numpy())

    def _synthesize(self, pieces: list[Piece], f0: np.ndarray, target: Target, noise: NoiseSource | None) -> np.ndarray:
        """Released content and f0 (T,) -> samples (160 T,), part by part, faded into each other."""
        generator = _excitation(noise)
        xvector = torch.from_numpy(target.xvector)[None]
        out = np.zeros(len(f0) * SHIFT, dtype=np.float32)
        # the pulse train runs through all parts: each starts in the phase that the frames before it left
        cycles = np.concatenate([[0.0], np.cumsum(f0.astype(np.float64) * SHIFT / 16000.0)])
        for start, stop, left, right, content in pieces:
            phase = torch.tensor([cycles[left] % 1.0])
            made = self._voice(content, torch.from_numpy(f0[left:right])[None], xvector, phase, generator)
            out[start * SHIFT : stop * SHIFT] = made[(start - left) * SHIFT : (stop - left) * SHIFT]
        peak = float(np.abs(out).max()) if len(out) else 0.0
        return out * np.float32(_PEAK / peak) if peak > _PEAK else out

    def _voice(self, content: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor, generator) -> np.ndarray:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
            return self.synthesizer(content, f0, xvector, phase)[0].numpy()


def _given_open(claim: Guarantee, content: Guarantee | None, f0: Guarantee | None) -> Guarantee:
    """A claim of the utterance, conditional on what of it has no noise. That of a voice alone says what it assumes."""
    if content is None and f0 is None:
        return claim
    open_ = [name for name, part in (("content", content), ("pitch", f0)) if part is None]
    return replace(claim, conditional_on=(*claim.conditional_on, *open_))


def _excitation(noise: NoiseSource | None) -> torch.Generator:
    """Randomness of the unvoiced excitation: no privacy noise, but repeatable when the noise is."""
    generator = torch.Generator()
    if isinstance(noise, KeyedNoise):
        digest = hashlib.sha256(repr(sorted(vars(noise).items())).encode()).digest()
        generator.manual_seed(int.from_bytes(digest[:7], "big"))
    else:
        generator.seed()
    return generator
