"""What an attacker sees of the features that systems release, through the very mechanisms that release them.

========  =======================  =================================  ==========================================
feature   without noise            with noise                         a frame of 10 ms
========  =======================  =================================  ==========================================
bn        system plain             dp_bn, epsilon of one frame        the bottleneck behind ``Bottleneck.denoise``
bn_tdnnf  a training directory     another, that of this epsilon      the bottleneck, dense: paper A's extractor
f0        anon: log f0 as it is    dp_pitch, epsilon of an utterance  the released contour
fbank     log-mel energies         -                                  no system: what the attacker can at best do
========  =======================  =================================  ==========================================
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from dpanon.anonymize.content import Content, Frames
from dpanon.anonymize.pipeline import System
from dpanon.anonymize.pretrained import load_system
from dpanon.data.arrays import load_scp
from dpanon.data.audio import num_frames, read_audio
from dpanon.data.data_dir import DataDir
from dpanon.errors import UsageError
from dpanon.features.f0 import extract_f0
from dpanon.features.fbank import fbank
from dpanon.features.level import normalise_level
from dpanon.models.bottleneck import Bottleneck
from dpanon.privacy import BottleneckFrames
from dpanon.privacy.sampling import NoiseSource

FEATURES = ("bn", "bn_tdnnf", "f0", "fbank")
_SYSTEMS = {"bn": ("plain", "dp_bn", "epsilon_bn"), "f0": ("anon", "dp_pitch", "epsilon_f0")}


@dataclass(frozen=True)
class Extracted:
    """What releases content and nothing else: an extractor that was trained, without targets or a synthesizer."""

    content: Content

    @property
    def extractor(self) -> Bottleneck:
        return self.content.extractor


def extracted(network: Bottleneck, trained_for: float, epsilon: float) -> Extracted:
    """Release of the frames of ``network`` with the noise of ``epsilon``, of one frame; inf: with none.

    Args:
        trained_for: the epsilon of its training.

    Raises:
        UsageError: this is another one. What it would release then is not what anybody trained it for.
    """
    if epsilon != trained_for:
        raise UsageError(f"an extractor trained with epsilon {trained_for:g} is not attacked at {epsilon:g}")
    mechanism = None if math.isinf(epsilon) else BottleneckFrames(epsilon, network.width)
    return Extracted(Frames(network.eval().requires_grad_(False), mechanism))


def system_of(feature: str, epsilon: float, models: Path | None = None) -> System | None:
    """The system whose ``feature`` is attacked; None for fbank, which no system releases.

    Raises:
        UsageError: an unknown feature or that of ``extracted``, an epsilon that is not > 0, or fbank with noise.
    """
    if feature == "bn_tdnnf":
        raise UsageError("bn_tdnnf is of no system, but of an extractor that was trained: give --extractor")
    if feature not in FEATURES:
        raise UsageError(f"unknown feature {feature!r}; choose one of {', '.join(FEATURES)}")
    if not epsilon > 0:
        raise UsageError(f"epsilon must be > 0, or inf for no noise, got {epsilon:g}")
    if feature == "fbank":
        if math.isfinite(epsilon):
            raise UsageError("no system releases fbank with noise: epsilon is inf")
        return None
    clear, noisy, parameter = _SYSTEMS[feature]
    if math.isinf(epsilon):
        return load_system(clear, models=models)
    return load_system(noisy, models=models, **{parameter: epsilon})  # type: ignore[arg-type]


@torch.inference_mode()
def release_features(
    feature: str, system: System | Extracted | None, data: DataDir, noise: Callable[[str], NoiseSource]
) -> dict[str, np.ndarray]:
    """Utterance -> what is released of it, (T, M) float16. Each call draws new noise.

    A content.scp (of an extractor on recogniser features) and an f0.scp of ``data`` save their computation.

    Args:
        noise: utterance -> where its noise comes from.
    """
    stored = _Stored(data) if feature in ("bn", "bn_tdnnf") and data.has("content.scp") else None
    if stored and system.extractor.config.features != "fbank":  # type: ignore[union-attr]
        system.content.front.recogniser = stored  # type: ignore[union-attr]
    else:
        stored = None
    f0 = load_scp(data.path / "f0.scp") if data.has("f0.scp") else None
    found = {}
    for utt in tqdm(data.utts, desc=f"{data.path}: release of {feature}", mininterval=10):
        if system is None:
            found[utt] = fbank(_recording(data, utt))
        elif feature == "f0":
            measured = extract_f0(_recording(data, utt)) if f0 is None else f0[utt]
            found[utt] = system.prosody.release(measured, noise(utt)).values[:, None]  # type: ignore[union-attr]
        else:
            samples = _recording(data, utt) if stored is None else stored.instead_of(utt, data.num_samples(utt))
            clean, _ = system.content.release(samples, noise(utt))
            found[utt] = clean(0, num_frames(len(samples)))[0].numpy()
        found[utt] = found[utt].astype(np.float16)
    return found


class _Stored:
    """Recogniser features that were computed before, in the recogniser's place."""

    def __init__(self, data: DataDir):
        self.table, self.utt = load_scp(data.path / "content.scp"), ""

    def instead_of(self, utt: str, num_samples: int) -> np.ndarray:
        """Samples of no matter what: the features asked for next are those of ``utt``."""
        self.utt = utt
        return np.zeros(num_samples, dtype=np.float32)

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        return self.table[self.utt]


def _recording(data: DataDir, utt: str) -> np.ndarray:
    return normalise_level(read_audio(data.wav(utt)))
