"""Training of the auto-encoder that hides the speaker's sex, by alternating updates (paper C, equations 1 to 4)."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity

from dpanon.errors import DataDirError
from dpanon.models.gender_autoencoder import Discriminator, GenderAutoencoder, GenderAutoencoderConfig
from dpanon.train.loop import LoopConfig, save_atomically, train, update
from dpanon.train.spread import covariance_root


@dataclass(frozen=True)
class TrainGenderConfig:
    """Every key of conf/gender.yaml is a field here. ``epsilon`` is run.sh's --epsilon-train.

    It is of the noise in training, a regulariser: it promises nothing for what the network is later used on.
    """

    loop: LoopConfig
    epsilon: float  # inf trains without clip and noise
    model: GenderAutoencoderConfig = field(default_factory=GenderAutoencoderConfig)
    batch: int = 128
    adversary: float = 1.0  # weight of the loss that fools the discriminator; 1 in the paper
    discriminator_steps: int = 1  # for one of the auto-encoder
    copies: int = 1  # of each latent, every one with noise of its own, that the adversary sees at once
    spread: float = 0.0  # of made embeddings around a true one, in deviations of their sex; 0: true ones only

    def __post_init__(self):
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be > 0, got {self.epsilon}; inf trains without noise")
        if not self.spread >= 0:
            raise ValueError(f"spread must be >= 0, got {self.spread}")
        if self.batch < 2 or min(self.discriminator_steps, self.copies) < 1 or not self.adversary >= 0:
            raise ValueError("batch must be at least 2, discriminator_steps at least 1, adversary >= 0")


def train_gender(config: TrainGenderConfig, vectors: np.ndarray, labels: np.ndarray, out: Path) -> dict[str, float]:
    """Train on public embeddings; the network is ``out/model.pt``, its clipping radius measured on all of them.

    Args:
        vectors: ``(N, D)``
        labels: ``(N,)``, 1 female, 0 male, NaN unknown: such embeddings are reconstructed, the adversary skips them.
    """
    check(config, vectors, labels)
    torch.manual_seed(config.loop.seed)
    model, adversary = GenderAutoencoder(config.model), Discriminator(config.model.latent)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.loop.lr)
    opponent = torch.optim.Adam(adversary.parameters(), lr=config.loop.lr)
    inputs, targets = torch.from_numpy(vectors), torch.from_numpy(labels)
    median = _Median()
    root = covariance_root(vectors, labels) if config.spread else None

    def encoded(x: Tensor) -> Tensor:
        z = model.encode(x)
        median.add(z)
        return z

    def noised(z: Tensor) -> Tensor:
        return _noised(z, config.epsilon, median.value)

    def told_apart(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The adversary's logits of noised copies, and the labels that belong to them."""
        return adversary(noised(z.repeat(config.copies, 1))), y.repeat(config.copies)

    def step(index: int, batch: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
        x, y = inputs[batch], targets[batch]
        if root is not None:
            x = x + config.spread * torch.randn_like(x) @ root
        known = ~torch.isnan(y)
        z = encoded(x)
        rec = (1.0 - cosine_similarity(x, model.decode(noised(z)))).mean()
        logits, true = told_apart(z[known], y[known])
        fooled = _mean_error(logits, 1.0 - true)
        update(rec + config.adversary * fooled, model, optimizer, config.loop.clip)
        with torch.no_grad():
            z = encoded(x)[known]
        for _ in range(config.discriminator_steps):
            logits, true = told_apart(z, y[known])
            told = _mean_error(logits, true)
            update(told, adversary, opponent, config.loop.clip)
        right = ((logits > 0) == (true > 0.5)).float().sum() / max(1, len(logits))
        return {"reconstruction": rec.item(), "discriminator": told.item(), "accuracy": right.item()}

    figures = train(
        out,
        config.loop,
        {"model": model, "adversary": adversary, "optimizer": optimizer, "opponent": opponent, "median": median},
        [optimizer, opponent],
        lambda epoch: balanced_batches(labels, config.batch, config.loop.seed, epoch),
        step,
        label=f"gender, epsilon {config.epsilon:g}",
    )
    model.eval()
    with torch.no_grad():
        model.radius = model.encode(inputs).abs().sum(-1).median()
    save_atomically(model.state_dict(), out / "model.pt")
    return {**figures, "radius": float(model.radius)}


def check(config: TrainGenderConfig, vectors: np.ndarray, labels: np.ndarray) -> None:
    """DataDirError for data that this network cannot be trained on."""
    if vectors.shape[1] != config.model.dim:
        raise DataDirError(f"the embeddings have {vectors.shape[1]} entries; set model.dim={vectors.shape[1]}")
    counts = [int((labels == sex).sum()) for sex in (1, 0)]
    if min(counts) < config.batch // 4:
        raise DataDirError(
            f"{counts[0]} female and {counts[1]} male embeddings: a batch of {config.batch} needs "
            f"{config.batch // 4} of each; give more speech, or a smaller batch"
        )


def balanced_batches(labels: np.ndarray, batch: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Rows of an epoch: as many female as male ones, all unlabelled ones, shuffled; no short batch at the end."""
    rng = np.random.default_rng((seed, epoch, 1))
    groups = [np.flatnonzero(labels == sex) for sex in (1, 0)]
    num = min(map(len, groups))
    rows = np.concatenate([*(rng.permutation(group)[:num] for group in groups), np.flatnonzero(np.isnan(labels))])
    rows = rng.permutation(rows)
    batch = min(batch, len(rows))
    return [rows[start : start + batch] for start in range(0, len(rows) - batch + 1, batch)]


class _Median:
    """Running median of the L1 norm of latents before the clip, from public batches."""

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, z: Tensor, momentum: float = 0.01) -> None:
        now = float(z.detach().abs().sum(-1).median())
        self.value = now if self.value == 0.0 else (1.0 - momentum) * self.value + momentum * now

    def state_dict(self) -> dict[str, float]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.value = state["value"]


def _mean_error(logits: Tensor, y: Tensor) -> Tensor:
    """Cross entropy in nats; 0 of a batch without labels."""
    return binary_cross_entropy_with_logits(logits, y, reduction="sum") / max(1, len(y))


def _noised(z: Tensor, epsilon: float, radius: float) -> Tensor:
    """Clip and Laplace noise of a release of ``epsilon``, as training noise: fast, and it promises nothing."""
    from dpanon.privacy import ClippedLatent

    if epsilon == float("inf"):
        return z
    return ClippedLatent(epsilon, radius, z.shape[1]).train_noise()(z)
