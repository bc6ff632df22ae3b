"""Voice similarity matrices, DeID and G_VD; UAR; the challenge's f0 correlation: by hand and on made data."""

import math

import numpy as np
import pytest

from dpanon.errors import MissingDependencyError
from dpanon.evaluate import EvaluationError, emotion
from dpanon.evaluate.pitch import challenge_f0_correlation, f0_correlation, mean_f0_correlation
from dpanon.evaluate.similarity import (
    Affine,
    d_diag,
    deid,
    gain_of_distinctiveness,
    similarity_matrix,
    voice_metrics,
)


class Dot:
    name = "dot"

    def score(self, enrol, trial):
        return np.stack([e.mean(0) @ trial.T for e in enrol])


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_matrix_by_hand():
    """Speaker a says 1 and 2, b says -1 and -3: a recording never meets itself."""
    values = {"a-0": 1.0, "a-1": 2.0, "b-0": -1.0, "b-1": -3.0}
    side = {utt: np.asarray([value]) for utt, value in values.items()}
    matrix, names = similarity_matrix(side, side, {utt: utt[0] for utt in values}, Dot())
    assert names == ["a", "b"]
    np.testing.assert_allclose(matrix, [[sigmoid(2), sigmoid(-3)], [sigmoid(-3), sigmoid(3)]])


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    speakers = {f"s{k}-{i}": f"s{k}" for k in range(4) for i in range(7)}
    left, right = ({utt: rng.normal(size=3) for utt in speakers} for _ in range(2))
    whole, _ = similarity_matrix(left, right, speakers, Dot())
    monkeypatch.setattr("dpanon.evaluate.similarity._BLOCK", 5)
    np.testing.assert_allclose(similarity_matrix(left, right, speakers, Dot())[0], whole)


def test_diagonal_dominance_by_hand():
    oo = np.asarray([[0.9, 0.1, 0.2], [0.1, 0.8, 0.3], [0.2, 0.3, 1.0]])
    assert d_diag(oo) == pytest.approx(0.9 - 0.2)
    assert deid(oo, np.full((3, 3), 0.5)) == 1.0 and deid(oo, oo) == 0.0
    assert gain_of_distinctiveness(oo, oo) == 0.0
    half = 0.5 + (oo - 0.5) / 2  # every contrast halved
    assert gain_of_distinctiveness(oo, half) == pytest.approx(-10 * math.log10(2))
    assert gain_of_distinctiveness(oo, np.full((3, 3), 0.5)) == -math.inf
    assert math.isnan(deid(np.full((3, 3), 0.5), oo))
    assert d_diag(oo, np.asarray([2, 1, 0])) == pytest.approx((2 * 0.9 + 0.8) / 3 - 0.1)
    assert math.isnan(d_diag(oo, np.asarray([3, 0, 0])))


def test_voice_metrics_have_intervals():
    rng = np.random.default_rng(1)
    oo = np.eye(6) * 0.8 + rng.uniform(0, 0.1, (6, 6))
    out = voice_metrics(oo, rng.uniform(0.4, 0.5, (6, 6)), oo / 2, list("abcdef"), replicates=100)
    assert out["deid_low"] <= out["deid"] <= out["deid_high"] and out["deid"] > 0.9
    assert out["g_vd"] == pytest.approx(-3.01, abs=0.01) and out["g_vd_low"] <= out["g_vd"] + 1e-9
    with pytest.raises(EvaluationError, match="shapes differ"):
        voice_metrics(oo, oo, oo, ["a", "b"])


def test_matrices_that_say_nothing_are_refused():
    one = {"a-0": np.ones(2), "a-1": np.ones(2)}
    with pytest.raises(EvaluationError, match="at least 2 speakers"):
        similarity_matrix(one, one, {"a-0": "a", "a-1": "a"}, Dot())
    lonely = {"a-0": np.ones(2), "b-0": np.ones(2)}
    with pytest.raises(EvaluationError, match="one recording only"):
        similarity_matrix(lonely, lonely, {"a-0": "a", "b-0": "b"}, Dot())


def test_calibration_makes_scores_ratios():
    """Gaussian scores with llr(x) = mu x - mu^2 / 2."""
    rng = np.random.default_rng(2)
    found = Affine.fit(rng.normal(2, 1, 20_000), rng.normal(0, 1, 20_000))
    assert found.scale == pytest.approx(2, abs=0.1) and found.shift == pytest.approx(-2, abs=0.1)
    with pytest.raises(EvaluationError):
        Affine.fit([], [1.0])


# emotions


def test_uar_by_hand():
    """Recalls 2/3 of ang and 1/1 of sad, whatever their numbers."""
    truth, guess = ["ang", "ang", "ang", "sad"], ["ang", "sad", "ang", "sad"]
    assert emotion.uar(truth, guess) == pytest.approx(5 / 6)
    assert emotion.uar(truth, guess, [1, 2, 0, 1]) == pytest.approx((1 / 3 + 1) / 2)
    assert math.isnan(emotion.uar(truth, guess, [1, 1, 1, 0]))
    with pytest.raises(EvaluationError, match="one class"):
        emotion.uar(["sad"] * 3, ["sad"] * 3)
    with pytest.raises(EvaluationError, match="equal numbers"):
        emotion.uar(["sad"], [])


class Nearest:
    """The mean of a class nearest to a number; remembers what it was trained on."""

    name = "nearest"

    def fit(self, features, labels):
        self.trained = len(labels)
        self.means = {name: np.mean([f for f, n in zip(features, labels, strict=True) if n == name]) for name in labels}

    def predict(self, features):
        return [min(self.means, key=lambda name: abs(self.means[name] - value)) for value in features]


def test_a_fold_is_judged_by_the_others_only():
    emotions = {f"s{k}-{i}": ("ang", "sad")[i % 2] for k in range(4) for i in range(4)}
    folds = {utt: str(int(utt[1]) // 2) for utt in emotions}
    speakers = {utt: utt.split("-")[0] for utt in emotions}
    clear = {utt: 1.0 if emotions[utt] == "ang" else -1.0 for utt in emotions}
    classifier = Nearest()
    found = emotion.cross_validated(classifier, clear, clear, emotions, folds)
    assert found == emotions and classifier.trained == 8
    result = emotion.mean_uar(found, emotions, folds, speakers, replicates=50)
    assert (result["uar"], result["uar_low"], result["num_folds"]) == (1.0, 1.0, 2)
    flat = emotion.cross_validated(classifier, clear, dict.fromkeys(clear, 0.9), emotions, folds)
    result = emotion.mean_uar(flat, emotions, folds, speakers, replicates=50)
    assert (result["uar"], result["recall_ang"], result["recall_sad"]) == (0.5, 1.0, 0.0)
    with pytest.raises(EvaluationError, match="fewer than two emotions"):
        emotion.cross_validated(classifier, clear, clear, emotions, dict.fromkeys(emotions, "1"))


def test_functionals_hear_loud_and_high():
    classifier = emotion.load_classifier()
    rng = np.random.default_rng(4)

    def made(high):
        time = np.arange(8000) / 16000
        return (0.3 * np.sin(2 * np.pi * (260 if high else 120) * time) + rng.normal(0, 0.01, 8000)).astype(np.float32)

    features = [classifier.features(made(k % 2)) for k in range(12)]
    assert features[0].shape == (166,)
    classifier.fit(features[:8], ["ang" if k % 2 else "sad" for k in range(8)])
    assert classifier.predict(features[8:]) == ["sad", "ang", "sad", "ang"]


def test_the_hub_is_an_option_with_a_clear_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "speechbrain", None)
    with pytest.raises(MissingDependencyError, match=r"dpanon\[speechbrain\]"):
        emotion.load_classifier("wav2vec2")
    with pytest.raises(EvaluationError, match="unknown emotion classifier"):
        emotion.load_classifier("ears")


# f0 as the challenge has it


def test_the_challenge_correlates_voicing_alone():
    """Two constant voices with the same pauses: nothing in common but the pauses, and yet 1."""
    first = np.where(np.arange(200) % 40 < 25, 120.0, 0.0)
    second = np.where(np.arange(200) % 40 < 25, 240.0, 0.0)
    assert challenge_f0_correlation(first, second) == pytest.approx(1.0)
    assert np.isnan(f0_correlation(first, second))


def test_the_challenge_shifts_in_a_circle():
    rng = np.random.default_rng(5)
    track = 150 + 40 * rng.random(100)
    track[:30] = 0.0
    assert challenge_f0_correlation(track, np.roll(track, 7)) == pytest.approx(1.0)
    assert challenge_f0_correlation(track, np.zeros(100)) == 0.0


def test_the_challenge_stretches_and_cuts():
    """By hand: 100 200 over three frames is 100 150 200; 600 Hz is out of range and becomes 0."""
    assert challenge_f0_correlation(np.asarray([100.0, 150.0, 200.0]), np.asarray([100.0, 200.0])) == pytest.approx(1)
    cut = challenge_f0_correlation(np.asarray([100.0, 150.0, 600.0]), np.asarray([100.0, 150.0, 0.0]))
    assert cut == pytest.approx(1.0)
    with pytest.raises(EvaluationError):
        challenge_f0_correlation(np.zeros(0), np.ones(3))


def test_both_figures_stand_side_by_side():
    track = 150 + 40 * np.random.default_rng(6).random(100)
    other = {"a-1": track, "b-1": np.roll(track, 30)[::-1]}
    out = mean_f0_correlation({"a-1": track, "b-1": track}, other, {"a-1": "a", "b-1": "b"})
    for name, one in (("f0_correlation", f0_correlation), ("f0_correlation_challenge", challenge_f0_correlation)):
        second = one(track, other["b-1"])
        assert out[name] == pytest.approx((1 + second) / 2)
        assert (out[f"{name}_low"], out[f"{name}_high"]) == pytest.approx((second, 1))  # of draws of two speakers
