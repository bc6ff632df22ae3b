"""Training of the pitch auto-encoder with its noise inside (paper A: loss 1 - correlation)."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dpanon.data.arrays import load_scp
from dpanon.data.batches import Crop, epoch_batches
from dpanon.data.data_dir import DataDir
from dpanon.features.f0 import normalise_log_f0
from dpanon.models.losses import correlation_loss
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.train import parallel
from dpanon.train.loop import LoopConfig, save_atomically, train, update

_GAIN_FACTORS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


@dataclass(frozen=True)
class TrainPitchConfig:
    """Every key of conf/f0.yaml is a field here. ``epsilon``, of one utterance, is run.sh's --epsilon-f0."""

    loop: LoopConfig
    epsilon: float  # of one utterance; inf trains without noise, for the system `plain`
    model: PitchAutoencoderConfig = field(default_factory=PitchAutoencoderConfig)
    crop: int = 400  # frames; K in the paper, so the noise has scale C * crop / epsilon
    batch: int = 16


def train_pitch(config: TrainPitchConfig, data: DataDir, out: Path) -> dict[str, float]:
    """Train on a data directory with f0.scp; the network is ``out/checkpoint.pt``, with measured gains."""
    f0 = load_scp(data.path / "f0.scp")
    contours = {utt: normalise_log_f0(f0[utt]) for utt in data.utts}
    voiced = {utt: (f0[utt] > 0).astype(np.float32) for utt in data.utts}
    torch.manual_seed(config.loop.seed)
    model = PitchAutoencoder(config.model)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.loop.lr)
    scale = config.model.channels * config.crop / config.epsilon

    def cut(table: dict[str, np.ndarray], batch: list[Crop]) -> Tensor:
        return parallel.tensor(np.stack([table[c.utt][c.start : c.start + c.num_frames] for c in batch]))

    def step(index: int, batch: list[Crop], rng: np.random.Generator) -> dict[str, float]:
        true, weight = cut(contours, batch), cut(voiced, batch)
        decoded = model.decode_raw(_noised(model.encode(true), scale))
        loss = correlation_loss(decoded, true, weight)
        update(loss, model, optimizer, config.loop.clip)
        return {"correlation": 1 - loss.item()}

    def batches(epoch: int) -> list[list[Crop]]:
        return epoch_batches(data, config.crop, config.batch, config.loop.seed, epoch)

    figures = train(
        out,
        config.loop,
        {"model": model, "optimizer": optimizer},
        [optimizer],
        batches,
        step,
        label=f"f0, epsilon {config.epsilon:g}",
    )
    scales, gains = [], []
    with torch.no_grad():
        for factor in _GAIN_FACTORS:
            correlations = []
            for batch in batches(0)[:40]:
                true, weight = cut(contours, batch), cut(voiced, batch)
                decoded = model.decode_raw(_noised(model.encode(true), factor * max(scale, 1e-2)))
                correlations.append(1 - correlation_loss(decoded, true, weight).item())
            scales.append(factor * max(scale, 1e-2))
            gains.append(max(0.0, float(np.mean(correlations))))
    model.gain_scales, model.gains = torch.tensor(scales), torch.tensor(gains)
    save_atomically({name: value.cpu() for name, value in model.state_dict().items()}, out / "model.pt")
    return {**figures, "gain": gains[3]}


def _noised(h: Tensor, scale: float) -> Tensor:
    """Laplace noise of a scale, as training noise: fast, and it promises nothing."""
    from dpanon.privacy import PitchBox

    _, channels, num = h.shape
    return h if scale == 0 else PitchBox(channels * num / scale, channels).train_noise()(h)
