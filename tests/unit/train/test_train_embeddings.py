"""Training of the auto-encoders of embeddings on made vectors."""

import numpy as np
import pytest
import torch

from dpanon.errors import DataDirError
from dpanon.models.gender_autoencoder import GenderAutoencoder, GenderAutoencoderConfig
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.train import gender
from dpanon.train.gender import TrainGenderConfig, balanced_batches, train_gender
from dpanon.train.loop import LoopConfig
from dpanon.train.speaker import TrainSpeakerConfig, train_speaker
from dpanon.train.spread import covariance_root

SIZES = GenderAutoencoderConfig(dim=12, latent=6)


def made(num=64, dim=12):
    """Two sexes apart along the first axis; every fifth label unknown."""
    rng = np.random.default_rng(3)
    labels = (np.arange(num) % 2).astype(np.float32)
    vectors = rng.normal(size=(num, dim))
    vectors[:, 0] += 3.0 * (labels - 0.5)
    labels[::5] = np.nan
    return vectors.astype(np.float32), labels


@pytest.mark.parametrize("epsilon", [15.0, float("inf")])
def test_the_radius_is_the_median_norm_of_all_public_latents(tmp_path, epsilon):
    vectors, labels = made()
    config = TrainGenderConfig(LoopConfig(steps=20, warmup=2), epsilon, SIZES, batch=16)
    figures = train_gender(config, vectors, labels, tmp_path)
    model = GenderAutoencoder(SIZES)
    model.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    norms = model.eval().encode(torch.from_numpy(vectors)).abs().sum(-1)
    assert torch.allclose(norms.median(), model.radius)
    assert figures["radius"] == float(model.radius) > 0


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path):
    vectors, labels = made()
    whole = TrainGenderConfig(LoopConfig(steps=12, warmup=2), 15.0, SIZES, batch=16)
    train_gender(whole, vectors, labels, tmp_path / "whole")
    loop = LoopConfig(steps=12, warmup=2)

    class Stopped(Exception):
        pass

    def stop(self, z, momentum=0.01, calls=[0]):  # noqa: B006
        calls[0] += 1
        if calls[0] == 13:
            raise Stopped
        return add(self, z, momentum)

    add = gender._Median.add
    saving = TrainGenderConfig(LoopConfig(steps=12, warmup=2, save_minutes=0.0), 15.0, SIZES, batch=16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gender._Median, "add", stop)
        with pytest.raises(Stopped):
            train_gender(saving, vectors, labels, tmp_path / "parts")
    train_gender(TrainGenderConfig(loop, 15.0, SIZES, batch=16), vectors, labels, tmp_path / "parts")
    one, other = (torch.load(tmp_path / name / "model.pt", weights_only=True) for name in ("whole", "parts"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_batches_hold_as_many_of_each_sex_and_all_that_are_unknown():
    labels = np.array([1] * 30 + [0] * 10 + [np.nan] * 12, dtype=np.float32)
    batches = balanced_batches(labels, 8, 1, 0)
    rows = np.concatenate(batches)
    assert len(rows) == len(set(rows)) == 32
    assert all(len(batch) == 8 for batch in batches)
    everything = balanced_batches(labels, 32, 1, 0)[0]
    assert [int((labels[everything] == sex).sum()) for sex in (1, 0)] == [10, 10]
    assert not all(np.array_equal(a, b) for a, b in zip(batches, balanced_batches(labels, 8, 1, 1), strict=True))


def test_made_embeddings_spread_in_every_direction():
    """Of 64 vectors in 100 dimensions, whose own covariance is singular."""
    vectors, labels = made(dim=100)
    root = covariance_root(vectors, labels)
    drawn = (torch.randn(4000, 100, generator=torch.Generator().manual_seed(1)) @ root).numpy()
    assert np.linalg.matrix_rank(root.numpy()) == 100
    assert drawn[:, 0].std() < 1.5  # around the mean of a sex, not of both
    assert drawn.std() == pytest.approx(1.0, rel=0.1)


def test_data_that_does_not_fit_is_refused(tmp_path):
    vectors, labels = made()
    config = TrainGenderConfig(LoopConfig(steps=1), 15.0, SIZES, batch=16)
    with pytest.raises(DataDirError, match="model.dim=7"):
        train_gender(config, vectors[:, :7], labels, tmp_path)
    with pytest.raises(DataDirError, match="0 male"):
        train_gender(config, vectors, np.where(labels == 0, np.nan, labels), tmp_path)
    with pytest.raises(ValueError, match="epsilon"):
        TrainGenderConfig(LoopConfig(steps=1), 0.0)
    with pytest.raises(ValueError, match="epsilon"):
        TrainGenderConfig(LoopConfig(steps=1), float("nan"))


def test_the_vae_measures_its_bounds_on_public_latents(tmp_path):
    vectors, _ = made()
    sizes = SpeakerVaeConfig(dim=12, latent=3, widths=(8,))
    config = TrainSpeakerConfig(LoopConfig(steps=30, warmup=2, lr=1e-2), sizes, batch=16)
    figures = train_speaker(config, vectors, tmp_path)
    model = SpeakerVae(sizes)
    model.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
    mean = model.eval().encode(torch.from_numpy(vectors))
    assert torch.allclose(torch.quantile(torch.linalg.vector_norm(mean, dim=-1), 0.5), model.radius, rtol=1e-4)
    assert torch.allclose(torch.quantile(mean.abs().flatten(), 0.99), model.clamp, rtol=1e-4)
    assert figures["radius"] > 0 and np.isfinite(figures["cosine_of_means"])
    with pytest.raises(DataDirError, match="model.dim=5"):
        train_speaker(config, vectors[:, :5], tmp_path)
