"""EER: hand-computed cases, an independent brute force, and what must be refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.eer import eer, eer_and_threshold, error_rates


@pytest.mark.parametrize(
    ("target", "nontarget", "expected"),
    [
        ([3, 4], [1, 2], 0.0),  # separable
        ([1, 2], [3, 4], 1.0),  # perfectly wrong
        ([1, 1, 1], [1, 1], 0.5),  # tell nothing
        ([2, 4, 6, 8], [1, 3, 5, 7], 0.5),  # at 4: FNR 1/2, FPR 1/2
        ([2, 3, 4], [1, 1.5, 3.5], 1 / 3),
        ([1, 2], [1, 0], 0.25),  # the tie is a line from (1/2, 0) to (0, 1/2)
        ([0, 1], [0], 1 / 3),  # a line from (1, 0) to (0, 1/2) crosses at 1/3
    ],
)
def test_hand_computed(target, nontarget, expected):
    assert eer(target, nontarget) == pytest.approx(expected, abs=1e-12)


def brute_force(target, nontarget):
    """The polyline in exact fractions, by counting at every threshold: O(N^2)."""
    points = [(Fraction(1), Fraction(0))]
    for threshold in sorted({*target, *nontarget}):
        fpr = Fraction(sum(s > threshold for s in nontarget), len(nontarget))
        fnr = Fraction(sum(s <= threshold for s in target), len(target))
        points.append((fpr, fnr))
    for (fpr0, fnr0), (fpr1, fnr1) in zip(points, points[1:], strict=False):
        if fnr1 >= fpr1:
            step = (fpr0 - fnr0) / ((fpr0 - fnr0) + (fnr1 - fpr1))
            return float(fnr0 + step * (fnr1 - fnr0))
    raise AssertionError("the last point has FNR 1")


def hull_by_pairs(target, nontarget):
    """ROCCH EER: the lowest crossing of any line between two points, since the hull is the lowest of them."""
    _, fnr, fpr = error_rates(
        np.concatenate([target, nontarget]).astype(float), np.repeat([True, False], [len(target), len(nontarget)])
    )
    gap = fnr - fpr
    left, right = np.flatnonzero(gap < 0)[:, None], np.flatnonzero(gap >= 0)[None]
    return float((fnr[left] + (fnr[right] - fnr[left]) * gap[left] / (gap[left] - gap[right])).min())


relaxed = settings(deadline=None)
scores = st.lists(st.integers(-5, 5), min_size=1, max_size=12)


@relaxed
@given(scores, scores)
def test_equals_brute_force(target, nontarget):
    assert eer(target, nontarget) == pytest.approx(brute_force(target, nontarget), abs=1e-12)


@relaxed
@given(scores, scores)
def test_hull_is_the_lowest_line_and_is_not_above_the_default(target, nontarget):
    hull = eer(target, nontarget, "hull")
    assert hull == pytest.approx(hull_by_pairs(target, nontarget), abs=1e-12)
    assert hull <= eer(target, nontarget) + 1e-12


@relaxed
@given(scores, scores)
def test_a_rising_map_of_the_scores_changes_nothing_and_a_sign_turns_it_round(target, nontarget):
    value = eer(target, nontarget)
    assert eer(np.exp(target), np.exp(nontarget)) == pytest.approx(value, abs=1e-12)
    assert eer(-np.asarray(target), -np.asarray(nontarget)) == pytest.approx(1 - value, abs=1e-12)


def test_two_gaussians():
    rng = np.random.default_rng(1)
    assert eer(rng.normal(1, 1, 200_000), rng.normal(-1, 1, 200_000)) == pytest.approx(norm.cdf(-1), abs=0.002)


def test_a_million_trials_take_no_quadratic_memory():
    rng = np.random.default_rng(2)
    assert eer(rng.normal(size=100_000), rng.normal(size=900_000)) == pytest.approx(0.5, abs=0.005)


def test_the_threshold_separates():
    value, threshold = eer_and_threshold([3.0, 4.0], [1.0, 2.0])
    assert value == 0 and 2.0 <= threshold < 3.0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_score_that_is_not_finite_is_an_error_not_an_eer(bad, all_of_them):
    with pytest.raises(EvaluationError, match="NaN or infinite"):
        eer([bad, bad] if all_of_them else [1.0, bad], [0.0])
    with pytest.raises(EvaluationError, match="NaN or infinite"):
        eer([1.0], [bad, bad] if all_of_them else [0.0, bad])


def test_one_kind_of_trials_is_an_error():
    with pytest.raises(EvaluationError, match="no nontarget"):
        eer([1.0], [])
    with pytest.raises(EvaluationError, match="no target"):
        eer([], [1.0])


def test_unknown_method():
    with pytest.raises(EvaluationError, match="choose one of"):
        eer([1.0], [0.0], "roc")


def test_integer_weights_are_copies_of_trials():
    rng = np.random.default_rng(3)
    values, is_target = rng.integers(0, 6, 30).astype(float), rng.random(30) < 0.5
    weights = rng.integers(0, 4, (5, 30))
    _, fnr, fpr = error_rates(values, is_target, weights)
    for i, weight in enumerate(weights):
        copies = np.repeat(np.arange(30), weight)
        thresholds, fnr_i, fpr_i = error_rates(values[copies], is_target[copies])
        keep = np.isin(error_rates(values, is_target)[0], thresholds)
        np.testing.assert_allclose(fnr[i][keep], fnr_i)
        np.testing.assert_allclose(fpr[i][keep], fpr_i)
