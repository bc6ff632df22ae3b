"""Training of the variational auto-encoder of speaker embeddings (paper B: squared error + KL, no clip, no noise)."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from dpanon.errors import DataDirError
from dpanon.models.gender_autoencoder import rms
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.train.loop import LoopConfig, save_atomically, train, update
from dpanon.train.spread import covariance_root


@dataclass(frozen=True)
class TrainSpeakerConfig:
    """Every key of conf/speaker.yaml is a field here."""

    loop: LoopConfig
    model: SpeakerVaeConfig = field(default_factory=SpeakerVaeConfig)
    batch: int = 256
    kl: float = 1.0  # weight of the KL divergence against the squared error of entries of unit root mean square
    spread: float = (
        0.0  # deviation of noise on the entries of a training embedding: few speakers are soon learnt by heart
    )
    radius_quantile: float = 0.5  # of the L2 norms of public latents: U. Larger ones are clipped to it
    clamp_quantile: float = 0.99  # of the absolute entries of public latents: c

    def __post_init__(self):
        if self.batch < 1 or not self.kl >= 0 or not self.spread >= 0:
            raise ValueError("batch must be at least 1, kl and spread >= 0")
        if not (0 < self.radius_quantile <= 1 and 0 < self.clamp_quantile <= 1):
            raise ValueError("quantiles are within (0, 1]")


def train_speaker(config: TrainSpeakerConfig, vectors: np.ndarray, out: Path) -> dict[str, float]:
    """Train on public embeddings (N, D); the network is ``out/model.pt``, with U and c measured on all of them."""
    if vectors.shape[1] != config.model.dim:
        raise DataDirError(f"the embeddings have {vectors.shape[1]} entries; set model.dim={vectors.shape[1]}")
    torch.manual_seed(config.loop.seed)
    model = SpeakerVae(config.model)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.loop.lr)
    inputs = torch.from_numpy(vectors)
    inputs = inputs / rms(inputs)
    batch = min(config.batch, len(inputs))
    root = covariance_root(inputs.numpy(), np.full(len(inputs), np.nan)) if config.spread else None

    def batches(epoch: int) -> list[np.ndarray]:
        order = np.random.default_rng((config.loop.seed, epoch, 2)).permutation(len(inputs))
        return [order[start : start + batch] for start in range(0, len(order) - batch + 1, batch)]

    def step(index: int, rows: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
        x = inputs[rows]
        if root is not None:
            x = x + config.spread * torch.randn_like(x) @ root
            x = x / rms(x)
        mean, log_variance = model.posterior(x)
        z = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        decoded = model.decode_raw(z)
        error = (decoded - x).square().sum(-1).mean()
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(-1).mean()
        update(error + config.kl * divergence, model, optimizer, config.loop.clip)
        cosine = torch.nn.functional.cosine_similarity(decoded, x).mean()
        return {"error": error.item(), "kl": divergence.item(), "cosine": cosine.item()}

    figures = train(
        out, config.loop, {"model": model, "optimizer": optimizer}, [optimizer], batches, step, label="speaker"
    )
    model.eval()
    with torch.no_grad():
        mean = model.encode(inputs)
        model.radius = torch.quantile(torch.linalg.vector_norm(mean, dim=-1), config.radius_quantile)
        model.clamp = torch.quantile(mean.abs().flatten(), config.clamp_quantile)
        cosine = torch.nn.functional.cosine_similarity(model.decode(mean), inputs).mean()
    save_atomically(model.state_dict(), out / "model.pt")
    return {**figures, "radius": float(model.radius), "clamp": float(model.clamp), "cosine_of_means": float(cosine)}
