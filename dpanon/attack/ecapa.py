"""The attackers that VoicePrivacy trains on anonymized speech: ECAPA-TDNN (2024), WavLM + ECAPA fine-tuned (2026).

The network and the loss are SpeechBrain's (optional extra ``speechbrain``); the loop, with exact resume, is ours.
Frontend ``fbank`` needs no hub: 80 log-mel energies, mean-subtracted, training from scratch, as 2024 has it. Frontend
``wavlm`` takes microsoft/wavlm-large from a hub and learns with it; begun from an ECAPA that was trained on original
speech (``init``), that is fine-tuning, as 2026 has it.

A badly trained attacker flatters every anonymizer, so the accuracy on training speakers goes into training.json; when
it is low a warning is printed, and dpanon.attack.sanity says so beside the EER.
"""

import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dpanon.attack.asv import AsvConfig, all_released
from dpanon.config import load_config, save_config
from dpanon.data.audio import SHIFT, read_audio
from dpanon.data.batches import Crop, epoch_batches
from dpanon.data.data_dir import DataDir
from dpanon.errors import MissingDependencyError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.metrics import write_json
from dpanon.features.fbank import NUM_MEL, fbank
from dpanon.train.loop import LoopConfig, train, update

FRONTENDS = ("fbank", "wavlm")
_INSTALL = "the attacker ECAPA needs SpeechBrain: pip install 'dpanon[speechbrain]'"


@dataclass(frozen=True)
class EcapaConfig:
    """Every key of conf/ecapa.yaml is a field here. The defaults of size are those of the challenge of 2024."""

    loop: LoopConfig
    frontend: str = "fbank"
    wavlm: str = "microsoft/wavlm-large"  # name on a model hub, or a folder with such a model
    channels: tuple[int, ...] = (512, 512, 512, 512, 1536)
    attention: int = 128
    dim: int = 192
    crop: int = 300  # frames of 10 ms
    batch: int = 256
    margin: float = 0.2
    scale: float = 30.0
    weight_decay: float = 2e-6
    workers: int = 4  # recordings read at once
    kept: int = 0  # crops whose features stay in memory: with little speech, each is read once and not in every epoch
    replicates: int = 1000  # of the bootstrap by speaker, in scoring

    def __post_init__(self):
        if self.frontend not in FRONTENDS:
            raise ValueError(f"unknown frontend {self.frontend!r}; choose one of {', '.join(FRONTENDS)}")
        if self.kept < 0:
            raise ValueError(f"kept must be >= 0, got {self.kept}")
        if len(self.channels) != 5:
            raise ValueError(f"channels has {len(self.channels)} entries; ECAPA-TDNN has 5 layers")


class EcapaNet(nn.Module):
    """Frontend and ECAPA-TDNN.

    Shape:
        x: ``(N, T, 80)`` log-mel energies for ``fbank``, ``(N, L)`` 16 kHz samples for ``wavlm``.
        returns: ``(N, dim)``.

    Raises:
        MissingDependencyError: no SpeechBrain, or WavLM is neither in the cache nor can it be fetched.
    """

    def __init__(self, config: EcapaConfig):
        super().__init__()
        try:
            from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN
        except (ImportError, OSError) as error:
            raise MissingDependencyError(f"{_INSTALL} ({error})") from None
        wavlm: Any = _load_wavlm(config.wavlm) if config.frontend == "wavlm" else None
        self.wavlm = wavlm
        self.ecapa = ECAPA_TDNN(
            NUM_MEL if wavlm is None else wavlm.model.config.hidden_size,
            channels=list(config.channels),
            kernel_sizes=[5, 3, 3, 3, 1],
            dilations=[1, 2, 3, 4, 1],
            attention_channels=config.attention,
            lin_neurons=config.dim,
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.wavlm(x) if self.wavlm is not None else x - x.mean(1, keepdim=True)
        return self.ecapa(x)[:, 0]  # (N, 1, dim) -> (N, dim)

    def prepare(self, samples: np.ndarray) -> np.ndarray:
        """What ``forward`` takes of one recording. (L,) -> (T, 80) or (L,)"""
        return fbank(samples) if self.wavlm is None else np.asarray(samples, dtype=np.float32)


def _load_wavlm(source: str) -> nn.Module:
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
        from speechbrain.integrations.huggingface.wavlm import WavLM

        return WavLM(source, save_path=HF_HUB_CACHE, freeze=False, output_norm=True)
    except (ImportError, OSError, ValueError) as error:
        raise MissingDependencyError(
            f"the frontend wavlm needs SpeechBrain, transformers and {source} from a model hub or its cache: "
            f"pip install 'dpanon[speechbrain]' transformers, or choose frontend fbank ({' '.join(str(error).split())})"
        ) from None


def load_init(net: EcapaNet, init: Path) -> None:
    """Weights to begin with, of all of ``net`` or of its ECAPA.

    Args:
        init: a directory of ``train_ecapa``, or a checkpoint of SpeechBrain's ECAPA_TDNN alone, such as the
            organisers' ``embedding_model.ckpt``.

    Raises:
        EvaluationError: no such file, or weights of another shape.
    """
    file = init / "ecapa.safetensors" if init.is_dir() else init
    if not file.is_file():
        raise EvaluationError(
            f"{file}: no such file: train it with steps/train_ecapa.sh, or name a checkpoint of ECAPA"
        )
    try:
        if file.suffix == ".safetensors":
            net.load_state_dict(load_file(file))
        else:
            net.ecapa.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    except (RuntimeError, AttributeError, TypeError, SafetensorError, pickle.UnpicklingError) as error:
        raise EvaluationError(f"{file}: not weights of this network: {' '.join(str(error).split())[:300]}") from error


def train_ecapa(
    config: EcapaConfig, sets: list[DataDir], out: Path, device: str = "cpu", init: Path | None = None
) -> dict[str, float]:
    """Train on speakers' names: ``<out>/ecapa.safetensors``, ecapa.yaml, and config.yaml for scoring by cosine.

    Args:
        sets: released training speech; a speaker of two sets is one speaker. Utterance ids of sets may be equal.
        init: weights to begin with, for fine-tuning; None: from scratch.
    """
    names = sorted({data.speaker(utt) for data in sets for utt in data.utts})
    if len(names) < 2:
        raise EvaluationError(
            f"{[str(data.path) for data in sets]}: {len(names)} speaker; an attacker needs at least 2"
        )
    label = {name: i for i, name in enumerate(names)}
    torch.manual_seed(config.loop.seed)
    net = EcapaNet(config).to(device)
    if init is not None:
        load_init(net, init)
    from speechbrain.lobes.models.ECAPA_TDNN import Classifier
    from speechbrain.nnet.losses import AdditiveAngularMargin, LogSoftmaxWrapper

    head = Classifier(config.dim, device=device, out_neurons=len(names)).to(device)
    cost = LogSoftmaxWrapper(AdditiveAngularMargin(margin=config.margin, scale=config.scale))
    both = nn.ModuleList([net, head])
    optimizer = torch.optim.Adam(both.parameters(), lr=config.loop.lr, weight_decay=config.weight_decay)

    def batches(epoch: int) -> list[list[tuple[int, Crop]]]:
        groups = [
            [(k, crop) for crop in group]
            for k, data in enumerate(sets)
            for group in epoch_batches(data, config.crop, config.batch, config.loop.seed, epoch)
        ]
        order = np.random.default_rng((config.loop.seed, epoch)).permutation(len(groups))
        return [groups[i] for i in order]

    @lru_cache(config.kept)
    def piece(k: int, crop: Crop) -> np.ndarray:
        return net.prepare(_cut(sets[k], crop))

    with ThreadPoolExecutor(config.workers) as pool:

        def step(index: int, batch: list[tuple[int, Crop]], rng: np.random.Generator) -> dict[str, float]:
            both.train()
            pieces = list(pool.map(lambda item: piece(*item), batch))
            x = torch.from_numpy(np.stack(pieces)).to(device)
            y = torch.tensor([label[sets[k].speaker(crop.utt)] for k, crop in batch], device=device)[:, None]
            logits = head(net(x)[:, None])  # (N, 1, speakers)
            loss = cost(logits, y)
            update(loss, both, optimizer, config.loop.clip)
            return {"loss": loss.item(), "accuracy": float((logits.argmax(-1) == y).float().mean())}

        state: dict[str, Any] = {"net": net, "head": head, "optimizer": optimizer}
        figures = train(out, config.loop, state, [optimizer], batches, step, "ecapa")
    save_file({name: value.contiguous() for name, value in net.state_dict().items()}, out / "ecapa.safetensors")
    save_config(config, out / "ecapa.yaml")
    save_config(AsvConfig(("trained",), ("cosine",), 0.0, replicates=config.replicates), out / "config.yaml")
    numbers = {"num_speakers": len(names), "num_utterances": sum(map(len, sets)), "frontend": config.frontend}
    record = {"sets": [data.path.name for data in sets], "released": all_released(sets), "fine_tuned": init is not None}
    write_json(out / "training.json", numbers | figures | record)
    return figures


def _cut(data: DataDir, crop: Crop) -> np.ndarray:
    samples = read_audio(data.wav(crop.utt))
    piece = samples[crop.start * SHIFT : (crop.start + crop.num_frames) * SHIFT]
    return np.pad(piece, (0, crop.num_frames * SHIFT - len(piece)))


class TrainedEcapa:
    """The extractor in a directory of ``train_ecapa``. Its name holds a digest of the weights: caches must not mix.

    ``attacker`` is what tables call it: ``ecapa-trained``, or ``ecapa-tuned`` if it began with other weights.
    """

    def __init__(self, asv: Path):
        weights = asv / "ecapa.safetensors"
        if not weights.is_file():
            raise EvaluationError(f"{weights}: no such file; train it with steps/train_ecapa.sh")
        config = load_config(EcapaConfig, asv / "ecapa.yaml")
        self.net = EcapaNet(config)
        self.net.load_state_dict(load_file(weights))
        self.net.eval().requires_grad_(False)
        with weights.open("rb") as file:
            self.name = f"ecapa-{config.frontend}-{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"
        self.dim = config.dim
        record = asv / "training.json"
        tuned = record.is_file() and json.loads(record.read_text(encoding="utf-8")).get("fine_tuned")
        self.attacker = "ecapa" + ("-wavlm" if config.frontend == "wavlm" else "") + ("-tuned" if tuned else "-trained")

    @torch.inference_mode()
    def embed(self, samples: np.ndarray) -> np.ndarray:
        vector = self.net(torch.from_numpy(self.net.prepare(samples))[None])[0].numpy()
        return (vector / max(float(np.linalg.norm(vector)), 1e-9)).astype(np.float32)
