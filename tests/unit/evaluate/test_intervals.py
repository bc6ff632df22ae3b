"""Intervals: reproducible, of the right width, and by speaker."""

import time

import numpy as np
import pytest
from scipy.stats import binom

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.eer import eer
from dpanon.evaluate.intervals import bootstrap_eer, bootstrap_ratio, clopper_pearson, eer_upper_bound


def made_trials(num_speakers=20, per_speaker=10, spread=0.0, seed=1):
    """Scores whose speakers differ by ``spread``."""
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(num_speakers)]
    ease = rng.normal(0, spread, num_speakers) if spread else np.zeros(num_speakers)
    rows = [
        (names[e], names[t], e == t, rng.normal(2.0 + ease[t] if e == t else 0.0))
        for e in range(num_speakers)
        for t in range(num_speakers)
        for _ in range(per_speaker)
    ]
    enrol, trial, same, values = zip(*rows, strict=True)
    return np.asarray(values), np.asarray(same), enrol, trial


def test_bootstrap_is_reproducible_and_holds_the_estimate():
    values, same, enrol, trial = made_trials()
    first = bootstrap_eer(values, same, enrol, trial)
    assert first == bootstrap_eer(values, same, enrol, trial)
    assert first != bootstrap_eer(values, same, enrol, trial, seed=7)
    assert first.low < eer(values[same], values[~same]) < first.high


def test_bootstrap_equals_a_loop_over_copies():
    """The weighted sweep against building each resampled trial list and scoring it."""
    values, same, enrol, trial = made_trials(6, 3)
    names = sorted(set(enrol))
    counts = np.random.default_rng(20_000).multinomial(6, np.full(6, 1 / 6), 50)
    loop = []
    for count in counts:
        weight = dict(zip(names, count, strict=True))
        copies = [weight[t] if s else weight[e] * weight[t] for e, t, s in zip(enrol, trial, same, strict=True)]
        target = np.repeat(values, copies)[np.repeat(same, copies)]
        nontarget = np.repeat(values, copies)[~np.repeat(same, copies)]
        if len(target) and len(nontarget):
            loop.append(eer(target, nontarget))
    ours = bootstrap_eer(values, same, enrol, trial, replicates=50)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(loop, [0.025, 0.975])), abs=1e-12)


def test_bootstrap_is_by_speaker_not_by_trial():
    """Trials copied ten times say nothing new: the interval must not shrink."""
    values, same, enrol, trial = made_trials(15, 2, spread=1.0)
    once = bootstrap_eer(values, same, enrol, trial)
    many = bootstrap_eer(np.tile(values, 10), np.tile(same, 10), enrol * 10, trial * 10)
    assert (many.low, many.high) == pytest.approx((once.low, once.high))


def test_a_draw_without_nontargets_is_left_out():
    interval = bootstrap_eer([1.0, 0.0, 1.0, 0.0], [True, False, True, False], "aabb", "abba", replicates=100)
    assert (interval.low, interval.high) == (0.0, 0.0)


def test_twenty_thousand_trials_are_fast():
    values, same, enrol, trial = made_trials(30, 25)
    began = time.process_time()
    bootstrap_eer(values, same, enrol, trial, replicates=200)
    assert len(values) == 22500 and time.process_time() - began < 20


def test_coverage_of_the_mean():
    """About 95 % of the intervals hold the true mean of speakers' values."""
    rng = np.random.default_rng(5)
    hits = 0
    for seed in range(200):
        speakers = np.repeat(np.arange(40), 3)
        values = np.repeat(rng.normal(0.7, 0.2, 40), 3) + rng.normal(0, 0.05, 120)
        interval = bootstrap_ratio(values, np.ones(120), [str(s) for s in speakers], replicates=300, seed=seed)
        hits += interval.low <= 0.7 <= interval.high
    assert 0.88 < hits / 200 < 0.99


@pytest.mark.parametrize(("errors", "trials"), [(0, 10), (3, 10), (10, 10), (412, 997)])
def test_clopper_pearson_is_where_the_binomial_tail_is_its_share(errors, trials):
    interval = clopper_pearson(errors, trials)
    assert interval.low == 0 if errors == 0 else binom.sf(errors - 1, trials, interval.low) == pytest.approx(0.025)
    assert interval.high == 1 if errors == trials else binom.cdf(errors, trials, interval.high) == pytest.approx(0.025)


def test_clopper_pearson_reference_value():
    """An error rate of 0.412 of 997 trials."""
    interval = clopper_pearson(411, 997)
    assert (interval.low, interval.high) == pytest.approx((0.381, 0.443), abs=1e-3)


def test_no_rate_of_nothing():
    with pytest.raises(EvaluationError):
        clopper_pearson(0, 0)


def test_upper_bound_is_not_zero_when_no_error_was_seen():
    values, same = np.asarray([2.0] * 10 + [1.0] * 90), np.asarray([True] * 10 + [False] * 90)
    assert eer_upper_bound(values, same, threshold=1.5) == pytest.approx(clopper_pearson(0, 10, 0.99).high)
