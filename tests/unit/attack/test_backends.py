"""Back-ends on Gaussian speakers with a nuisance direction, and PLDA against brute-force densities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpanon.attack.backends import BACKENDS, Cosine, LdaPlda, Wccn, unit
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.eer import eer

DIM, NUISANCE = 24, 8


def made_embeddings(num_speakers, per_speaker, seed, nuisance=1.5):
    """Speakers in all dimensions, strong variation of recordings in the first NUISANCE of them."""
    rng = np.random.default_rng(seed)
    scale = np.r_[np.full(NUISANCE, nuisance), np.full(DIM - NUISANCE, 0.3)]
    speakers = rng.normal(size=(num_speakers, DIM)) * 0.6
    x = speakers[:, None] + rng.normal(size=(num_speakers, per_speaker, DIM)) * scale + 0.5
    return unit(x).reshape(-1, DIM), [f"s{i}" for i in range(num_speakers) for _ in range(per_speaker)]


def measured_eer(backend, num_enrol=1, seed=9):
    x, _ = made_embeddings(40, 10, seed)
    x = x.reshape(40, 10, DIM)
    matrix = backend.score(list(x[:, :num_enrol]), x[:, num_enrol:].reshape(-1, DIM))
    same = np.repeat(np.eye(40, dtype=bool), 10 - num_enrol, axis=1)
    return eer(matrix[same], matrix[~same])


@pytest.mark.parametrize("train", [Wccn.train, LdaPlda.train])
def test_training_removes_what_varies_within_a_speaker(train):
    trained = train(*made_embeddings(60, 8, seed=1))
    assert measured_eer(trained) < measured_eer(Cosine()) - 0.05


@pytest.mark.parametrize(
    "backend", [Cosine(), Wccn.train(*made_embeddings(60, 8, 1)), LdaPlda.train(*made_embeddings(60, 8, 1))]
)
def test_more_enrolment_helps(backend):
    assert measured_eer(backend, num_enrol=5) < measured_eer(backend, num_enrol=1)


@pytest.mark.parametrize(("num_speakers", "per_speaker"), [(3, 2), (5, 3), (12, 2)])
@pytest.mark.parametrize("train", [Wccn.train, LdaPlda.train])
def test_small_training_sets_give_finite_scores_better_than_chance(train, num_speakers, per_speaker):
    """Fewer embeddings than dimensions: without shrinkage the covariance has no inverse."""
    backend = train(*made_embeddings(num_speakers, per_speaker, seed=2, nuisance=0.3))
    x, _ = made_embeddings(30, 4, 3, nuisance=0.3)
    x = x.reshape(30, 4, DIM)
    matrix = backend.score(list(x[:, :2]), x[:, 2:].reshape(-1, DIM))
    same = np.repeat(np.eye(30, dtype=bool), 2, axis=1)
    assert np.isfinite(matrix).all() and eer(matrix[same], matrix[~same]) < 0.4


def test_embeddings_without_any_within_variation_are_no_crash():
    """Every piece of a speaker alike: the covariance of recordings is zero."""
    x, names = made_embeddings(10, 1, seed=4)
    x, names = np.repeat(x, 3, axis=0), [name for name in names for _ in range(3)]
    for train in (Wccn.train, LdaPlda.train):
        assert np.isfinite(train(x, names).score([x[:1]], x)).all()


def test_plda_is_the_log_likelihood_ratio():
    """Against joint Gaussian densities of (enrolment..., trial) with shared or independent speaker."""
    plda = LdaPlda.train(*made_embeddings(30, 6, seed=5), max_dim=3)
    x, _ = made_embeddings(1, 4, seed=6)
    enrol, trial = plda._project(x[:3]), plda._project(x[3:])[0]
    expected = 0.0
    for m, b in enumerate(plda.between):
        joint = np.eye(4) + b
        apart = joint.copy()
        apart[3, :3] = apart[:3, 3] = 0.0
        values = np.r_[enrol[:, m], trial[m]]
        expected += multivariate_normal(np.zeros(4), joint).logpdf(values)
        expected -= multivariate_normal(np.zeros(4), apart).logpdf(values)
    assert plda.score([x[:3]], x[3:])[0, 0] == pytest.approx(expected)


def test_wccn_whitens_what_it_was_trained_on():
    x, names = made_embeddings(80, 20, seed=7)
    wccn = Wccn.train(x, names)
    projected = wccn._project(x).reshape(80, 20, DIM)
    residuals = (projected - projected.mean(1, keepdims=True)).reshape(-1, DIM)
    np.testing.assert_allclose(residuals.T @ residuals / (80 * 19), np.eye(DIM), atol=0.1)


def test_cosine_by_hand():
    matrix = Cosine().score([np.asarray([[3.0, 0.0], [0.0, 5.0]])], np.asarray([[2.0, 2.0], [1.0, 0.0], [-1.0, -1.0]]))
    np.testing.assert_allclose(matrix, [[1.0, np.sqrt(0.5), -1.0]])


@pytest.mark.parametrize("cls", [Wccn, LdaPlda])
def test_saved_and_loaded_scores_are_equal(cls, tmp_path):
    x, names = made_embeddings(10, 4, seed=8)
    backend = cls.train(x, names)
    backend.save(tmp_path / "b.safetensors")
    np.testing.assert_array_equal(cls.load(tmp_path / "b.safetensors").score([x[:2]], x), backend.score([x[:2]], x))


def test_too_little_training_speech_is_said():
    x, _ = made_embeddings(4, 1, seed=1)
    for train in (Wccn.train, LdaPlda.train):
        with pytest.raises(EvaluationError, match="segment_seconds"):
            train(x, ["a", "b", "c", "d"])
        with pytest.raises(EvaluationError, match="speakers"):
            train(x, ["a", "a", "b", "b"])
        with pytest.raises(EvaluationError, match="NaN"):
            train(np.full((6, DIM), np.nan), list("aabbcc"))


def test_names():
    assert BACKENDS == ("cosine", "wccn", "lda-plda")
