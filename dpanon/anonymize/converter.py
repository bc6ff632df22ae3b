"""The system voxlet through a voice converter of others instead of the project's synthesizer (paper B).

    recording -> the converter's speaker embedding -> VAE mean --[L2 ball, Gaussian noise: dpanon.privacy]--> decoder
    recording, a public voice as the source's, the released voice as the target's -> converter -> waveform

The converter of the paper is told the clean embedding of the source, to take that voice out of the recording: a path
around the noise. Here it is told a public voice, the same for everybody. What the converter itself hears in the
recording stays in: content, prosody, and whatever it takes for them. The claim is given that, as without a converter.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import soxr
import torch

from dpanon.anonymize.embeddings import Protector, both_rules
from dpanon.anonymize.pipeline import Anonymized
from dpanon.data.audio import SAMPLE_RATE, SHIFT, num_frames, write_wav
from dpanon.errors import MissingDependencyError, UsageError
from dpanon.features.level import normalise_level
from dpanon.privacy import Guarantee, KeyedNoise, SpeakerGaussian
from dpanon.privacy.sampling import NoiseSource
from dpanon.synth.targets import Target, TargetPool

CONVERTERS = ("openvoice",)
_PEAK = 0.99


class Converter(Protocol):
    """A voice converter. ``public_voice`` (D,) is a voice of no one who is protected, of unit norm."""

    name: str
    dim: int
    public_voice: np.ndarray

    def embed(self, samples: np.ndarray) -> np.ndarray:
        """(L,) at 16 kHz -> (D,) float32 of unit norm."""

    def convert(self, samples: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """(L,), two voices (D,) of unit norm -> (L',) float32 at 16 kHz, about as long."""


class ConvertedSpeech:
    """A system as ``dpanon.anonymize.pipeline.System`` is one: ``protector`` holds the VAE and the mechanism."""

    name = "voxlet"

    def __init__(self, converter: Converter, protector: Protector):
        if not isinstance(protector.mechanism, SpeakerGaussian):
            raise ValueError("a released voice needs the Gaussian speaker mechanism")
        if converter.dim != protector.dim:
            raise UsageError(f"{converter.name} gives {converter.dim} entries, the voice model takes {protector.dim}")
        self.converter, self.protector, self.f0_method = converter, protector, "swift"
        self.mechanism: SpeakerGaussian = protector.mechanism
        self.pool = TargetPool([Target("released", "", converter.public_voice, 0.0, 1.0)])

    def promise(self, num_frames: int, sampler: str) -> Guarantee:
        """Per speaker, given equal content and prosody; there is no noise in those."""
        return self.mechanism.guarantee(sampler)

    @torch.inference_mode()
    def anonymize(self, samples: np.ndarray, target: Target, noise: NoiseSource | None = None) -> Anonymized:
        """(L,) -> the recording in the released voice, 160 samples for each of its frames; ``target`` is not used.

        Raises:
            PrivacyError: the embedding is not finite, before anything is drawn.
        """
        samples = normalise_level(samples)
        num = num_frames(len(samples))
        protected = self.protector.protect(self.converter.embed(samples), noise)
        # private until here; from here on only the released voice is used, and the recording as content and prosody
        claim = self.promise(num, protected.guarantee.sampler)
        with torch.random.fork_rng(devices=[]):  # the converter samples: no privacy noise, repeatable with keyed noise
            if isinstance(noise, KeyedNoise):
                torch.manual_seed(1)
            else:
                torch.seed()
            made = self.converter.convert(samples, self.converter.public_voice, protected.vector)
        made = _of_length(made, SHIFT * num)
        return Anonymized(made, num, "released", claim, None, None, claim, both_rules(self.mechanism))


def load_converted(name: str, voice_model: Path | None, mechanism_of: Any) -> ConvertedSpeech:
    """A converter and the VAE of its embeddings, in ``voice_model``.

    Args:
        mechanism_of: (radius, dim) -> the mechanism.
    """
    from dpanon.anonymize.pretrained import load_network

    if voice_model is None or not (voice_model / "speaker.safetensors").is_file():
        raise UsageError(
            f"--converter {name} takes --voice-model DIR with speaker.safetensors, trained on its own embeddings: "
            f"steps/extract_xvector.sh --extractor {name}, then steps/train_speaker.sh"
        )
    network: Any = load_network("speaker", voice_model / "speaker.safetensors")
    mechanism = mechanism_of(float(network.radius), network.config.latent)
    return ConvertedSpeech(load_converter(name), Protector(network, mechanism, network.config.dim))


def load_converter(name: str) -> Converter:
    """UsageError: an unknown name. MissingDependencyError: it is not installed."""
    if name not in CONVERTERS:
        raise UsageError(f"unknown --converter {name!r}; choose one of {', '.join(CONVERTERS)}")
    return OpenVoice()


class OpenVoice:
    """The tone colour converter of OpenVoice (MIT), at 22.05 kHz, and its embeddings of 256 entries.

    tools/install_openvoice.sh puts package, weights and public voices in place; DPANON_OPENVOICE is where the last two
    are. Embeddings have unit norm outside; ``convert`` gives them the mean norm of the public voices back.
    """

    name, dim = "openvoice", 256

    def __init__(self, tool: Any = None, voices: np.ndarray | None = None):
        """``tool``: an object like openvoice.api.ToneColorConverter; ``voices`` (V, 256): public ones."""
        if tool is None or voices is None:
            tool, voices = _installed()
        voices = np.asarray(voices, dtype=np.float64).reshape(-1, self.dim)
        norms = np.linalg.norm(voices, axis=-1)
        if len(voices) == 0 or not np.isfinite(voices).all() or not (norms > 0).all():
            raise UsageError("the public voices of OpenVoice are zero or not finite: install it again")
        mean = voices.mean(0)
        self.tool, self.rate = tool, int(tool.hps.data.sampling_rate)
        self.norm = float(norms.mean())
        self.public_voice = (mean / np.linalg.norm(mean)).astype(np.float32)

    def embed(self, samples: np.ndarray) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            wav = str(_written(folder, samples))
            vector = np.asarray(self.tool.extract_se([wav]).cpu(), dtype=np.float64).reshape(-1)
        return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)

    def convert(self, samples: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            wav = str(_written(folder, samples))
            made = self.tool.convert(wav, self._voice(source), self._voice(target), output_path=None)
        return soxr.resample(np.asarray(made, dtype=np.float32), self.rate, SAMPLE_RATE, quality="HQ")

    def _voice(self, vector: np.ndarray) -> torch.Tensor:
        """(256,) -> (1, 256, 1) as the tool takes it"""
        return torch.from_numpy((self.norm * vector).astype(np.float32))[None, :, None]


def _installed() -> tuple[Any, np.ndarray]:
    folder = Path(os.environ.get("DPANON_OPENVOICE") or Path(sys.prefix) / "share" / "openvoice")
    try:
        from openvoice.api import OpenVoiceBaseClass, ToneColorConverter
    except ImportError as error:
        raise MissingDependencyError(f"OpenVoice is not installed: run tools/install_openvoice.sh ({error})") from None
    if not (folder / "checkpoint.pth").is_file():
        raise MissingDependencyError(f"{folder}: no checkpoint.pth; run tools/install_openvoice.sh")

    class Unmarked(ToneColorConverter):
        """Without the watermark, whose network comes from a hub at every start."""

        def __init__(self, config: str):
            OpenVoiceBaseClass.__init__(self, config, device="cpu")
            self.watermark_model = None

    tool = Unmarked(str(folder / "config.json"))
    tool.load_ckpt(str(folder / "checkpoint.pth"))
    files = sorted((folder / "voices").glob("*.pth"))
    voices = [torch.load(file, map_location="cpu", weights_only=True).reshape(-1).numpy() for file in files]
    return tool, np.asarray(voices)


def _written(folder: str, samples: np.ndarray) -> Path:
    """The tool reads files: one in a folder of this process alone, gone when it is done."""
    wav = Path(folder) / "in.wav"
    write_wav(wav, samples)
    return wav


def _of_length(samples: np.ndarray, length: int) -> np.ndarray:
    """Cut, or filled up with silence; no sample above full scale."""
    out = np.pad(np.asarray(samples, dtype=np.float32), (0, max(0, length - len(samples))))[:length]
    peak = float(np.abs(out).max(initial=0.0))
    return out * np.float32(_PEAK / peak) if peak > _PEAK else out
