"""minDCF, TPR at low FPR, Cllr, minCllr and ZEBRA: by hand, against quadrature, brute force and scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_curve

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.detection import (
    calibrated_llr,
    cllr,
    distinct,
    eer_of,
    min_cllr,
    min_dcf,
    tally,
    tpr_at_fpr,
    weighted_tally,
)
from dpanon.evaluate.eer import eer
from dpanon.evaluate.intervals import bootstrap_eer, bootstrap_trials
from dpanon.evaluate.linkability import linkability, linkability_of
from dpanon.evaluate.zebra import MAX_EXPECTED, category, expected_disclosure, zebra

scores = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=30)
FIGURES = (eer_of, min_dcf, tpr_at_fpr, cllr, min_cllr, linkability_of, zebra)


# by hand


def test_a_table_by_hand():
    table = tally([2.0, 3.0, 3.0], [1.0, 2.0])
    assert table.values.tolist() == [1, 2, 3]
    assert table.target.tolist() == [0, 1, 2] and table.nontarget.tolist() == [1, 1, 0]
    fnr, fpr = table.error_rates()
    np.testing.assert_allclose(fnr, [0, 0, 1 / 3, 1])
    np.testing.assert_allclose(fpr, [1, 0.5, 0, 0])


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_a_table_counts_every_score(target, nontarget):
    table = tally(target, nontarget)
    assert table.values.tolist() == sorted({*target, *nontarget})
    assert table.target.tolist() == [target.count(value) for value in table.values]
    assert table.nontarget.tolist() == [nontarget.count(value) for value in table.values]


def test_min_dcf_by_hand():
    """Thresholds: accept all 0.99/0.01, above 1: 0.5 * 99, above 2: 1/3, none: 1."""
    table = tally([2.0, 3.0, 3.0], [1.0, 2.0])
    assert min_dcf(table) == pytest.approx(1 / 3)
    assert min_dcf(table, p_target=0.9) == pytest.approx(min(1.0, 0.5, 0.9 / 3 / 0.1))
    assert min_dcf(tally([0.0], [1.0])) == 1.0
    assert min_dcf(tally([1.0], [0.0])) == 0.0


def test_tpr_at_fpr_by_hand():
    nontarget = np.arange(100.0)  # FPR 0.01: one may pass
    assert tpr_at_fpr(tally([98.5, 99.5, 50.0, 98.0], nontarget)) == pytest.approx(0.5)
    assert tpr_at_fpr(tally([98.5, 99.5, 50.0, 98.0], nontarget), 0.02) == pytest.approx(0.75)
    assert tpr_at_fpr(tally([98.5, 99.5, 50.0, 98.0], nontarget), 0.0) == pytest.approx(0.25)
    assert tpr_at_fpr(tally([1.0, 3.0], [2.0])) == 0.5


def test_cllr_by_hand():
    assert cllr(tally([0.0], [0.0])) == pytest.approx(1.0)
    assert cllr(tally([math.log(3)], [-math.log(3)])) == pytest.approx(math.log2(4 / 3))
    assert cllr(tally([math.log(3)], [math.log(3)])) == pytest.approx((math.log2(4 / 3) + 2) / 2)


def test_pav_by_hand():
    """Scores 1 n, 2 t, 3 n, 4 t t: 2 and 3 violate and pool; shares t 1/3, n 1/2: the pool has odds 2/3."""
    table = tally([2.0, 4.0, 4.0], [1.0, 3.0])
    np.testing.assert_allclose(np.exp(calibrated_llr(table)), [0, 2 / 3, 2 / 3, np.inf])
    pool = (math.log2(1 + 3 / 2) / 3 + math.log2(1 + 2 / 3) / 2) / 2
    assert min_cllr(table) == pytest.approx(pool)
    assert min_cllr(tally([1.0, 2.0], [-1.0, 0.0])) == 0.0
    assert min_cllr(tally([-1.0, 0.0], [1.0, 2.0])) == 1.0  # the wrong way round: the best monotone answer is none


def test_zebra_by_hand():
    """Two of three of each kind are told apart by odds of 2, so every trial has L = 2 or 1/2."""
    table = tally([1.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    found = zebra(table)
    assert found.worst == pytest.approx(math.log10(2)) and found.category == "A"
    cost = (2 / 3) * (1 - math.log(2)) + (1 / 3) * (4 * math.log(2) - 2)  # T(2), T(1/2) times 2 ln 2
    assert found.expected == pytest.approx((1 - 2 * cost) / (2 * math.log(2)))
    assert zebra(tally([1.0], [0.0])).expected == pytest.approx(MAX_EXPECTED)
    assert zebra(tally([1.0], [0.0])).category == "F" and zebra(tally([1.0], [0.0])).worst == math.inf
    assert (zebra(tally([1.0], [1.0])).expected, zebra(tally([1.0], [1.0])).category) == (0, "0")


@pytest.mark.parametrize(
    ("worst", "name"), [(0, "0"), (0.1, "A"), (1, "B"), (2, "C"), (3.9, "C"), (4, "D"), (5, "E"), (6, "F"), (99, "F")]
)
def test_zebra_categories(worst, name):
    assert category(worst) == name


# closed forms and quadrature


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_cllr_of_two_gaussians_is_its_integral(mu):
    """Log-likelihood ratios of N(+-mu^2/2, mu^2) are calibrated, so minCllr is Cllr."""
    rng = np.random.default_rng(1)
    table = tally(rng.normal(mu * mu / 2, mu, 200_000), rng.normal(-mu * mu / 2, mu, 200_000))

    def integrand(x):
        return norm.pdf(x, mu * mu / 2, mu) * np.logaddexp(0, -x) / np.log(2)

    truth = quad(integrand, -30, 30, points=[0], limit=200)[0]  # both halves are alike
    assert cllr(table) == pytest.approx(truth, abs=0.01)
    assert min_cllr(table) == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize("llr", [-8.0, -0.5, -1e-5, 0.0, 1e-4, 2e-3, 0.7, 12.0])
def test_expected_disclosure_is_the_area_between_the_curves(llr):
    same, different, llrs = np.asarray([0.3, 0.7]), np.asarray([0.6, 0.4]), np.asarray([llr, 0.4])

    def gap(p):
        odds = p / (1 - p)
        prior = -p * np.log2(p) - (1 - p) * np.log2(1 - p)
        ece = p * same @ np.log2(1 + 1 / (np.exp(llrs) * odds))
        return prior - ece - (1 - p) * different @ np.log2(1 + np.exp(llrs) * odds)

    truth = quad(gap, 0, 1, limit=200)[0]
    assert expected_disclosure(same, different, llrs) == pytest.approx(max(truth, 0), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_against_scikit_learn_and_brute_force(target, nontarget):
    table = tally(target, nontarget)
    fpr, tpr, _ = roc_curve([1] * len(target) + [0] * len(nontarget), target + nontarget, drop_intermediate=False)
    assert min_dcf(table) == pytest.approx(min(0.01 * (1 - tpr) + 0.99 * fpr) / 0.01)
    for limit in (0.0, 0.01, 0.2, 1.0):
        assert tpr_at_fpr(table, limit) == pytest.approx(max(tpr[fpr <= limit + 1e-12]))
    gap = (1 - tpr) - fpr  # falls along roc_curve's thresholds
    right = int(np.argmax(gap <= 0))
    share = gap[right - 1] / (gap[right - 1] - gap[right])
    assert eer_of(table) == pytest.approx(fpr[right - 1] + share * (fpr[right] - fpr[right - 1]))
    assert eer_of(table) == pytest.approx(eer(target, nontarget))


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_bounds_and_monotone_maps(target, nontarget):
    table, warped = tally(target, nontarget), tally(np.exp(np.asarray(target) / 9), np.exp(np.asarray(nontarget) / 9))
    for figure in (eer_of, min_dcf, min_cllr, tpr_at_fpr):
        assert 0 <= figure(table) <= 1
        assert figure(warped) == pytest.approx(figure(table), abs=1e-9)
    assert min_cllr(table) <= cllr(table) + 1e-9
    assert 0 <= zebra(table).expected <= MAX_EXPECTED
    assert zebra(warped).expected == pytest.approx(zebra(table).expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(scores, scores)
def test_minimum_cllr_beats_every_monotone_step(target, nontarget):
    """Brute force: no two-level calibration is better."""
    table = tally(target, nontarget)
    same, different = table.shares
    for cut in range(len(table.values) + 1):
        for low, high in ((-3.0, 3.0), (-1.0, 2.0), (0.0, 0.0)):
            llr = np.where(np.arange(len(table.values)) < cut, low, high)
            cost = (same @ np.logaddexp(0, -llr) + different @ np.logaddexp(0, llr)) / (2 * np.log(2))
            assert min_cllr(table) <= cost + 1e-9


@settings(max_examples=60, deadline=None)
@given(scores, scores)
def test_calibration_is_scikit_learns_isotonic_regression(target, nontarget):
    table = tally(target, nontarget)
    same, different = table.shares
    posterior = IsotonicRegression().fit_transform(
        table.values, same / (same + different), sample_weight=same + different
    )
    with np.errstate(divide="ignore"):
        truth = np.log(posterior) - np.log1p(-posterior)
    np.testing.assert_allclose(calibrated_llr(table), truth, atol=1e-9)


# refusals, weights, intervals


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(
    ("target", "nontarget"), [([], [1.0]), ([1.0], []), ([np.nan] * 3, [np.nan] * 3), ([1.0, np.inf], [0.0])]
)
def test_scores_that_mean_nothing_are_refused(figure, target, nontarget):
    with pytest.raises(EvaluationError):
        figure(tally(target, nontarget))


def test_bad_settings():
    table = tally([1.0], [0.0])
    with pytest.raises(EvaluationError):
        min_dcf(table, p_target=0)
    with pytest.raises(EvaluationError):
        tpr_at_fpr(table, -0.1)


def test_a_weight_of_two_is_a_trial_twice():
    rng = np.random.default_rng(2)
    target, nontarget = rng.normal(1, 1, 40).round(1), rng.normal(0, 1, 60).round(1)
    both, is_target = np.concatenate([target, nontarget]), np.repeat([True, False], [40, 60])
    weights = rng.integers(0, 3, 100)
    values, index = distinct(both)
    weighted = weighted_tally(values, *((index[kind], weights[kind]) for kind in (is_target, ~is_target)))
    repeated = tally(np.repeat(target, weights[:40]), np.repeat(nontarget, weights[40:]))
    for figure in (eer_of, min_dcf, tpr_at_fpr, cllr, min_cllr):
        assert figure(weighted) == pytest.approx(figure(repeated)), figure.__name__
    assert zebra(weighted).expected == pytest.approx(zebra(repeated).expected)
    assert zebra(weighted).worst == pytest.approx(zebra(repeated).worst)
    assert linkability_of(weighted, method="monotone") == pytest.approx(
        linkability(np.repeat(target, weights[:40]), np.repeat(nontarget, weights[40:]), method="monotone")
    )


def test_intervals_are_those_of_the_eer():
    rng = np.random.default_rng(3)
    speakers = [f"s{k}" for k in range(8)]
    rows = [(a, b, a == b) for a in speakers for b in speakers for _ in range(4)]
    is_target = np.asarray([same for *_, same in rows])
    values = rng.normal(0, 1, len(rows)) + 1.5 * is_target
    sides = [a for a, _, _ in rows], [b for _, b, _ in rows]
    found = bootstrap_trials({"eer": eer_of, "min_cllr": min_cllr}, values, is_target, *sides, replicates=200)
    alone = bootstrap_eer(values, is_target, *sides, replicates=200)
    assert (found["eer"].low, found["eer"].high) == pytest.approx((alone.low, alone.high))
    assert found["min_cllr"].low < min_cllr(tally(values[is_target], values[~is_target])) < found["min_cllr"].high
