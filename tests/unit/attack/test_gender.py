"""Attackers on the sex: what they find, which way round, and what refutes a promise."""

import numpy as np
import pytest

from dpanon.attack.gender import GenderAttackConfig, above_ceiling, attack_gender, auc
from dpanon.evaluate import EvaluationError

CONFIG = GenderAttackConfig(hidden=8, epochs=60, lr=1e-2, batch=32, replicates=50)


def made(seed, num=160, axis=0, dim=8):
    rng = np.random.default_rng(seed)
    labels = (np.arange(num) % 2).astype(np.float32)
    vectors = rng.normal(size=(num, dim))
    vectors[:, axis] += 4.0 * (labels - 0.5)
    return vectors, labels, [f"s{i // 4}" for i in range(num)]


def test_informed_attackers_find_what_ignorant_ones_look_for_elsewhere():
    """The sex moved from one axis to another: hidden from those who know clean embeddings only."""
    clean, labels, _ = made(1)
    released, others, _ = made(2, axis=1)
    test, true, speakers = made(3, axis=1)
    rows = attack_gender({"ignorant": (clean, labels), "informed": (released, others)}, test, true, speakers, CONFIG)
    found = {(row["knowledge"], row["attacker"]): row["auc"] for row in rows}
    assert len(rows) == 4
    assert all(found["informed", name] > 0.95 for name in ("external", "probe"))
    assert all(0.3 < found["ignorant", name] < 0.7 for name in ("external", "probe"))
    assert rows[0]["knowledge"] == "informed"
    assert rows[0]["auc_low"] <= rows[0]["auc"] <= rows[0]["auc_high"]


def test_an_attacker_who_is_always_wrong_is_a_good_one():
    clean, labels, _ = made(1)
    test, true, speakers = made(3)
    rows = attack_gender({"ignorant": (clean, labels)}, test, 1 - true, speakers, CONFIG)
    assert rows[0]["auc"] < 0.05
    assert rows[0]["advantage"] > 0.95
    assert above_ceiling(rows[0], 0.6)
    assert not above_ceiling(rows[0], None)
    assert not above_ceiling({**rows[0], "auc_low": 0.4, "auc_high": 0.65, "auc": 0.55}, 0.6)


def test_unknown_sexes_are_left_out_and_one_sex_is_no_test():
    scores, labels = np.array([0.1, 0.9, 0.5, 0.2]), np.array([0, 1, np.nan, 0])
    assert auc(scores, labels) == 1.0
    assert auc(scores, labels, np.array([1, 1, 1, 0])) == 1.0
    assert np.isnan(auc(scores, labels, np.array([1, 0, 1, 1])))
    vectors, true, speakers = made(1)
    with pytest.raises(EvaluationError, match="both sexes"):
        attack_gender({}, vectors, np.ones(len(true)), speakers, CONFIG)
    with pytest.raises(EvaluationError, match="training speakers of both"):
        attack_gender({"ignorant": (vectors, np.zeros(len(true)))}, vectors, true, speakers, CONFIG)
