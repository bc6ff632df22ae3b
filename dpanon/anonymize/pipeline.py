"""One utterance: recording -> features -> release -> waveform of a pseudo-speaker (paper A, figure 1).

    recording -> fbank -> encode -> bn --[noise]--> decode -> content --\\
              -> f0 -> contour -> encode -> h --[noise]--> decode -> f0 --> synthesizer -> waveform
                                                  target of the public pool --/

Between the brackets and the waveform nothing of the recording is used but the number of its frames.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dpanon.anonymize.voxlet import ReleasedVoice
from dpanon.data.audio import num_frames
from dpanon.features.content import WhisperEncoder
from dpanon.features.f0 import extract_f0, normalise_log_f0
from dpanon.features.fbank import fbank
from dpanon.features.level import normalise_level
from dpanon.models.bottleneck import Bottleneck
from dpanon.models.pitch_autoencoder import PitchAutoencoder
from dpanon.privacy import BottleneckFrames, Guarantee, KeyedNoise, PitchBox, SystemNoise
from dpanon.privacy.sampling import NoiseSource
from dpanon.synth.targets import Target, TargetPool

SHIFT = 160
CHUNK = 3000  # frames made at once: 30 s
_CONTOUR_LIMIT = 3.0  # deviations; f0 stays in a range that a voice has
_PEAK = 0.99


@dataclass(frozen=True)
class Anonymized:
    """A released utterance and what is promised for it."""

    samples: np.ndarray  # (160 * T,) float32
    num_frames: int
    target: str
    guarantee: Guarantee  # of the utterance
    guarantee_frame: Guarantee | None  # of one bn frame
    guarantee_f0: Guarantee | None  # of the utterance's f0
    guarantee_speaker: Guarantee | None = None  # of the released voice (voxlet)
    facts: dict[str, float] = field(default_factory=dict)  # more about the noise, for privacy.jsonl


class System:
    """An anonymization system with its networks; ``frames`` and ``box`` are its mechanisms, None for ``plain``.

    With a ``voice`` (system voxlet) the target is not chosen: it is the recording's own x-vector, released.
    """

    def __init__(
        self,
        name: str,
        extractor: Bottleneck,
        synthesizer,
        pool: TargetPool,
        frames: BottleneckFrames | None = None,
        pitch: PitchAutoencoder | None = None,
        box: PitchBox | None = None,
        f0_method: str = "swift",
        voice: ReleasedVoice | None = None,
    ):
        if len({frames is None, pitch is None, box is None}) != 1:
            raise ValueError("the noise of bn and that of f0 come together or not at all")
        self.name, self.extractor, self.synthesizer, self.pool = name, extractor, synthesizer, pool
        self.frames, self.pitch, self.box, self.f0_method = frames, pitch, box, f0_method
        self.voice = voice
        self._encoder: WhisperEncoder | None = None
        if extractor.config.features == "whisper":
            self._recogniser()  # what is missing shows before any work

    @property
    def epsilon_bn(self) -> float | None:
        return None if self.frames is None else self.frames.epsilon

    @property
    def epsilon_f0(self) -> float | None:
        return None if self.box is None else self.box.epsilon

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
        bn = self._bottleneck(samples)
        contour = normalise_log_f0(extract_f0(samples, self.f0_method))
        if self.frames is None or self.box is None or self.pitch is None:
            whole, frame, f0_claim = Guarantee.none("the system plain adds no noise"), None, None
        else:
            noise = SystemNoise() if noise is None else noise
            released = self.frames.release(bn, noise)
            latent = self.pitch.encode(torch.from_numpy(contour)[None])[0]
            released_f0 = self.box.release(latent, noise)
            # private until here; from here on only the released values are used
            bn = released.value
            decoded = self.pitch.decode(torch.from_numpy(released_f0.value)[None], self.box.scale(num))
            contour = decoded[0].numpy()
            frame, f0_claim = released.guarantee, released_f0.guarantee
            whole = f0_claim.compose(frame.to_unit("utterance"))
        voice = None if self.voice is None else self.voice.release(samples, self.frames is not None, noise)
        if voice is not None:
            target = voice.target
            whole = voice.guarantee if self.frames is None else whole.compose(voice.guarantee)
        contour = np.clip(contour, -_CONTOUR_LIMIT, _CONTOUR_LIMIT)
        f0 = np.exp(target.log_f0_mean + target.log_f0_std * contour).astype(np.float32)
        made = self._synthesize(bn, f0, target, noise)
        if voice is None:
            return Anonymized(made, num, target.id, whole, frame, f0_claim)
        return Anonymized(made, num, target.id, whole, frame, f0_claim, voice.guarantee, voice.facts)

    def _bottleneck(self, samples: np.ndarray) -> np.ndarray:
        """(L,) -> bn before noise (T, M) float32, part by part."""
        if self.extractor.config.features == "fbank":
            feats, step = fbank(samples), 1
        else:
            feats, step = self._recogniser()(samples), 2  # frames of 20 ms
        mean = torch.from_numpy(feats.mean(0, keepdims=True))[None]
        out = np.empty((num_frames(len(samples)), self.extractor.config.bottleneck), dtype=np.float32)
        for start, stop, left, right in parts(len(out), self.extractor.context):
            part = torch.from_numpy(feats[left // step : -(-right // step)])[None]
            piece = self.extractor.encode(part, mean)[0]
            out[start:stop] = piece[start - left : stop - left].numpy()
        return out

    def _recogniser(self) -> WhisperEncoder:
        if self._encoder is None:
            self._encoder = WhisperEncoder()
        return self._encoder

    def _synthesize(self, bn: np.ndarray, f0: np.ndarray, target: Target, noise: NoiseSource | None) -> np.ndarray:
        """Released bn (T, M) and f0 (T,) -> samples (160 T,), part by part, faded into each other."""
        generator = _excitation(noise)
        xvector = torch.from_numpy(target.xvector)[None]
        context = self.extractor.context + self.synthesizer.context
        out = np.zeros(len(f0) * SHIFT, dtype=np.float32)
        # the pulse train runs through all parts: each starts in the phase that the frames before it left
        cycles = np.concatenate([[0.0], np.cumsum(f0.astype(np.float64) * SHIFT / 16000.0)])
        for start, stop, left, right in parts(len(f0), context):
            content = self.extractor.decode(torch.from_numpy(bn[left:right])[None])
            phase = torch.tensor([cycles[left] % 1.0])
            piece = self._voice(content, torch.from_numpy(f0[left:right])[None], xvector, phase, generator)
            out[start * SHIFT : stop * SHIFT] = piece[(start - left) * SHIFT : (stop - left) * SHIFT]
        peak = float(np.abs(out).max()) if len(out) else 0.0
        return out * np.float32(_PEAK / peak) if peak > _PEAK else out

    def _voice(self, content: Tensor, f0: Tensor, xvector: Tensor, phase: Tensor, generator) -> np.ndarray:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**62, (1,), generator=generator)))
            return self.synthesizer(content, f0, xvector, phase)[0].numpy()


def parts(total: int, context: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, stop, left, right): [start, stop) of ``total`` frames is made from [left, right). Even borders."""
    context += context % 2
    for start in range(0, total, CHUNK):
        stop = min(total, start + CHUNK)
        yield start, stop, max(0, start - context), min(total, stop + context)


def _excitation(noise: NoiseSource | None) -> torch.Generator:
    """Randomness of the unvoiced excitation: no privacy noise, but repeatable when the noise is."""
    generator = torch.Generator()
    if isinstance(noise, KeyedNoise):
        digest = hashlib.sha256(repr(sorted(vars(noise).items())).encode()).digest()
        generator.manual_seed(int.from_bytes(digest[:7], "big"))
    else:
        generator.seed()
    return generator
