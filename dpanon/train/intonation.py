"""Training of the intonation network: content, through its noise, -> the contour of f0."""

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from dpanon.data.arrays import load_scp
from dpanon.data.audio import read_audio
from dpanon.data.batches import Crop, epoch_batches
from dpanon.data.data_dir import DataDir
from dpanon.errors import ConfigError
from dpanon.features.f0 import normalise_log_f0
from dpanon.features.fbank import fbank
from dpanon.features.level import normalise_level
from dpanon.models.bottleneck import Bottleneck
from dpanon.models.intonation import COEFFICIENTS, Intonation, IntonationConfig
from dpanon.privacy import LowRankPitch
from dpanon.train import parallel
from dpanon.train.bottleneck import train_noise
from dpanon.train.loop import LoopConfig, save_atomically, train, update

_MEDIAN_SQUARE = 0.4549  # of a standard normal variable
_LEAST_VOICED = 20  # frames of an utterance that is measured


@dataclass(frozen=True)
class TrainIntonationConfig:
    """Every key of conf/intonation.yaml is a field here."""

    loop: LoopConfig
    model: IntonationConfig = field(default_factory=IntonationConfig)
    crop: int = 600  # frames
    batch: int = 12
    factors: tuple[float, ...] = (1.0, 1.0, 1.0, 0.3, 0.1)  # of epsilon; each step draws one: other noise is heard, too
    unvoiced: float = 0.1  # weight of frames without a voice, where a contour is a straight line
    held_out: int = 10  # every so many-th speaker measures and does not train

    def __post_init__(self):
        if not self.factors or not all(math.isfinite(factor) and factor > 0 for factor in self.factors):
            raise ValueError(f"factors are of epsilon, finite and > 0, got {list(self.factors)}")
        if self.held_out < 2 or not 0 < self.unvoiced <= 1:
            raise ValueError("held_out must be at least 2, unvoiced in (0, 1]")


def train_intonation(
    config: TrainIntonationConfig, extractor: Bottleneck, epsilon: float | None, data: DataDir, out: Path
) -> dict[str, float]:
    """Train on a data directory with f0.scp, and content.scp if the extractor wants it; ``out/model.pt`` is made.

    Args:
        extractor: trained, and left as it is.
        epsilon: of one frame, the noise in the content; None for the system `plain`.

    Returns:
        Figures of the last tenth of the run, and ``correlation`` of held-out utterances at the first factor: the mean
        of utterances over their voiced frames.

    Raises:
        ConfigError: the extractor gives content of another size, or there is nothing to hold out.
    """
    if extractor.config.content != config.model.content:
        raise ConfigError(
            f"the extractor gives content of {extractor.config.content}, model.content is {config.model.content}"
        )
    corpus = _Corpus(data, extractor.config.features)
    held = set(data.speakers[:: config.held_out])
    measured = [utt for utt in data.utts if data.speaker(utt) in held and corpus.voiced[utt].sum() >= _LEAST_VOICED]
    if len(data.speakers) < 2 or not measured:
        raise ConfigError(f"{data.path}: needs two speakers, one of them with voiced speech, to hold one out")
    extractor.eval().requires_grad_(False)
    strengths = [None] if epsilon is None else [epsilon * factor for factor in config.factors]
    noises = [train_noise(strength, extractor.width) for strength in strengths]
    torch.manual_seed(config.loop.seed)  # of the first weights; nothing here is released
    model = Intonation(config.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.loop.lr, weight_decay=0.02)

    def content_of(features: Tensor, mean: Tensor, number: int) -> Tensor:
        with torch.no_grad():
            return extractor.transmit(features, mean, *noises[number])[0]

    def step(index: int, batch: list[Crop], rng: np.random.Generator) -> dict[str, float]:
        b = corpus.batch(batch)
        model.train()
        estimate = model(content_of(b["features"], b["mean"], int(rng.integers(len(noises)))))
        weight = config.unvoiced + (1 - config.unvoiced) * b["voiced"]
        errors = (weight * (estimate - b["contour"]).square()).sum(1) / weight.sum(1)
        loss = errors.mean()
        update(loss, model, optimizer, config.loop.clip)
        return {"error": loss.item()}

    def batches(epoch: int) -> list[list[Crop]]:
        crops = epoch_batches(data, config.crop, 1, config.loop.seed, epoch)  # in a random order
        kept = [crop for (crop,) in crops if data.speaker(crop.utt) not in held]
        if len(kept) < config.batch:
            raise ConfigError(f"{data.path}: {len(kept)} crops of {config.crop} frames, a batch takes {config.batch}")
        return [kept[at : at + config.batch] for at in range(0, len(kept) - config.batch + 1, config.batch)]

    state = {"model": model, "optimizer": optimizer}
    figures = train(out, config.loop, state, [optimizer], batches, step, label="intonation")
    model.eval()
    torch.manual_seed(config.loop.seed)  # of the training noise
    mechanism = LowRankPitch(1.0, COEFFICIENTS)
    squares, correlations = [], []
    for utt in tqdm(measured, desc=f"{out}: held-out utterances", mininterval=10):
        b = corpus.batch([Crop(utt, 0, len(corpus.contours[utt]) // 2 * 2)])
        with torch.no_grad():
            estimate = model(content_of(b["features"], b["mean"], 0))[0].cpu().numpy()
        true, voiced = corpus.contours[utt][: len(estimate)], corpus.voiced[utt][: len(estimate)] > 0
        squares.append((mechanism.coefficients(true) - mechanism.coefficients(estimate)) ** 2)
        correlations.append(float(np.corrcoef(true[voiced], estimate[voiced])[0, 1]))
    # of normal errors the mean square; a long silence that holds an odd last value is not to count
    model.errors = torch.tensor(np.median(squares, 0) / _MEDIAN_SQUARE, dtype=torch.float32)
    save_atomically({name: value.cpu() for name, value in model.state_dict().items()}, out / "model.pt")
    return {**figures, "correlation": float(np.mean(correlations)), "held_out": len(measured)}


class _Corpus:
    """A data directory in memory: the extractor's features, contours and where they are voiced."""

    def __init__(self, data: DataDir, features: str):
        content = load_scp(data.path / "content.scp") if features == "whisper" else None
        self.per_feature = 1 if content is None else 2  # frames
        f0 = load_scp(data.path / "f0.scp")
        self.features, self.contours, self.voiced = {}, {}, {}
        for utt in data.utts:
            self.features[utt] = fbank(normalise_level(read_audio(data.wav(utt)))) if content is None else content[utt]
            self.contours[utt] = normalise_log_f0(f0[utt])
            self.voiced[utt] = (f0[utt] > 0).astype(np.float32)

    def batch(self, crops: list[Crop]) -> dict[str, Tensor]:
        rows: dict[str, list[np.ndarray]] = {name: [] for name in ("features", "mean", "contour", "voiced")}
        for crop in crops:
            start = crop.start // 2 * 2
            frames = slice(start, start + crop.num_frames)
            feats = self.features[crop.utt]
            rows["features"].append(feats[start // self.per_feature : frames.stop // self.per_feature])
            rows["mean"].append(feats.mean(0, keepdims=True))
            rows["contour"].append(self.contours[crop.utt][frames])
            rows["voiced"].append(self.voiced[crop.utt][frames])
        return {name: parallel.tensor(np.stack(values)) for name, values in rows.items()}
