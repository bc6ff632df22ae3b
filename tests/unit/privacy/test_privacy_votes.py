"""Answers of teachers: every query is counted, sensitivities are exact, central claims do not mix with local ones."""

import copy
import math
import multiprocessing
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpanon.privacy import (
    BottleneckFrames,
    ConfidentGNMax,
    DpSgd,
    GNMax,
    Guarantee,
    KeyedNoise,
    NoisyVotes,
    PitchBox,
    PrivacyError,
    accounting,
    clip,
    pate,
    psn,
)
from dpanon.privacy.guarantee import CENTRAL, Part

RNG = np.random.default_rng(0)
BAD_NUMBERS = [0, -1.0, math.inf, math.nan, True, "1"]


class Spy:
    """A source that draws nothing and remembers what it was asked for."""

    sampler, releasable = "exact", True

    def __init__(self):
        self.calls = []

    def add_gaussian(self, x, sigma, bound):
        self.calls.append(("gaussian", x.copy(), sigma, bound))
        return x

    def add_laplace(self, x, scale, bound):
        self.calls.append(("laplace", x.copy(), scale, bound))
        return x


def posteriors(teachers, queries, states=5):
    return RNG.dirichlet(np.ones(states), (teachers, queries))


@pytest.mark.parametrize("teachers, queries", [(1, 1), (3, 600), (10, 7)])
def test_gaussian_noise_is_what_the_budget_needs(teachers, queries):
    spy, votes = Spy(), NoisyVotes(teachers, queries, mu=1.5)
    released = votes.release(posteriors(teachers, queries), spy)
    kind, total, sigma, bound = spy.calls[0]
    assert kind == "gaussian" and (np.abs(total) <= bound).all() and released.value.shape == (queries, 5)
    assert sigma == pytest.approx(math.sqrt(2.0 * queries) / 1.5) and sigma >= math.sqrt(2.0 * queries) / 1.5
    assert votes.sigma == pytest.approx(math.sqrt(2.0 * queries) / (1.5 * teachers))
    assert released.guarantee.mu() == pytest.approx(1.5) and released.guarantee.n_releases == queries


def test_laplace_noise_is_what_the_budget_needs():
    spy, votes = Spy(), NoisyVotes(4, 100, epsilon=8.0)
    released = votes.release(posteriors(4, 25), spy)
    assert spy.calls[0][0] == "laplace" and spy.calls[0][2] == pytest.approx(2.0 * 100 / 8.0)
    assert released.guarantee.epsilon() == pytest.approx(2.0) and votes.guarantee().epsilon() == pytest.approx(8.0)


@pytest.mark.parametrize("teachers", [1, 3, 10, 1000])
def test_one_teacher_moves_the_sum_by_no_more_than_the_diameter(teachers):
    """In exact arithmetic, for vertices, dense rows, zeros and rows that are not finite."""
    votes = NoisyVotes(teachers, 1, mu=1.0)
    rows = posteriors(teachers, 1, 4)
    first, second = clip.simplex_pair(4)
    candidates = [first, second, np.zeros(4), np.full(4, 0.25), np.array([np.nan, np.inf, 1.0, -1.0]), 1e300 * first]
    totals = []
    for row in candidates:
        rows[0, 0] = row
        totals.append(votes.clip(rows)[0])
    for a in totals:
        for b in totals:
            assert clip.exact_squared_l2_norm(a - b) <= 2 and clip.exact_l1_norm(a - b) <= 2
    assert np.abs(totals[0] - totals[1]).max() > 1.0 - 1e-9


def test_public_weights_count_by_the_largest():
    spy, votes = Spy(), NoisyVotes(3, 2, mu=1.0, weights=np.array([2.0, 1.0, 1.0]))
    rows = posteriors(3, 2)
    found = votes.release(rows, spy).value
    assert found == pytest.approx(np.einsum("t,tqs->qs", [0.5, 0.25, 0.25], rows), abs=1e-6)
    assert votes.sigma == pytest.approx(0.5 * math.sqrt(2.0 * 2))


def test_a_query_beyond_the_budget_is_refused_before_any_noise():
    spy, votes = Spy(), NoisyVotes(2, 10, mu=1.0)
    votes.release(posteriors(2, 8), spy)
    with pytest.raises(PrivacyError, match="3 queries asked, 2 of 10 left"):
        votes.release(posteriors(2, 3), spy)
    votes.release(posteriors(2, 2), spy)
    assert votes.budget.left == 0 and len(spy.calls) == 2
    with pytest.raises(PrivacyError, match="no claim about 11 queries"):
        votes.guarantee(11)


def test_a_query_without_accounting_is_refused():
    with pytest.raises(PrivacyError, match="either mu .* or epsilon"):
        NoisyVotes(3, 10)
    with pytest.raises(PrivacyError, match="either mu .* or epsilon"):
        NoisyVotes(3, 10, mu=1.0, epsilon=1.0)
    with pytest.raises(TypeError):
        NoisyVotes(3, mu=1.0)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_budget_is_not_copied(clone):
    with pytest.raises(PrivacyError, match="cannot be copied"):
        clone(NoisyVotes(2, 10, mu=1.0).budget)
    if clone is not copy.copy:
        with pytest.raises(PrivacyError, match="cannot be copied"):
            clone(NoisyVotes(2, 10, mu=1.0))


def spend_in_child(budget, queue):
    try:
        budget.spend(1)
        queue.put("spent")
    except PrivacyError as error:
        queue.put(str(error))


def test_a_budget_is_not_spent_twice_by_a_fork():
    context = multiprocessing.get_context("fork")
    queue, budget = context.Queue(), NoisyVotes(2, 10, mu=1.0).budget
    child = context.Process(target=spend_in_child, args=(budget, queue))
    child.start()
    assert "another process" in queue.get(timeout=60)
    child.join()


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: NoisyVotes(x, 10, mu=1.0),
        lambda x: NoisyVotes(2, x, mu=1.0),
        lambda x: NoisyVotes(2, 10, mu=x),
        lambda x: NoisyVotes(2, 10, epsilon=x),
        lambda x: NoisyVotes(2, 10, mu=1.0, rate=x),
        lambda x: NoisyVotes(2, 10, mu=1.0, unit=x),
        lambda x: GNMax(5, 3, x, 10),
        lambda x: ConfidentGNMax(5, 3, 1.0, 10, threshold=x, sigma_check=1.0, answers=2),
        lambda x: ConfidentGNMax(5, 3, 1.0, 10, threshold=1.0, sigma_check=x, answers=2),
        lambda x: ConfidentGNMax(5, 3, 1.0, 10, threshold=1.0, sigma_check=1.0, answers=x),
        lambda x: DpSgd(x, 0.1, 10),
        lambda x: DpSgd(1.0, x, 10),
        lambda x: DpSgd(1.0, 0.1, x),
    ],
)
def test_bad_settings(make, value):
    with pytest.raises(PrivacyError):
        make(value)


@pytest.mark.parametrize(
    "rows",
    [np.ones((3, 1, 2)), np.ones((2, 2)), np.ones((2, 0, 4)), np.ones((2, 1, 4), int), [[1.0]], None],
    ids=range(6),
)
def test_bad_posteriors_spend_nothing(rows):
    votes, spy = NoisyVotes(2, 10, mu=1.0), Spy()
    with pytest.raises(PrivacyError):
        votes.release(rows, spy)
    assert votes.budget.used == 0 and not spy.calls


@pytest.mark.parametrize("weights", [[1.0, 1.0], np.array([1.0, -1.0]), np.zeros(2), np.ones(3), np.array([1, np.nan])])
def test_bad_weights(weights):
    with pytest.raises(PrivacyError):
        NoisyVotes(2, 10, mu=1.0, weights=weights)


def test_sub_sampled_teachers_answer_all_queries_at_once():
    votes, spy = NoisyVotes(3, 6, mu=1.0, rate=1 / 3), Spy()
    with pytest.raises(PrivacyError, match="all of them at once"):
        votes.release(posteriors(3, 5), spy)
    claim = votes.release(posteriors(3, 6), spy).guarantee
    assert claim.kind == "pld" and claim.epsilon(1e-5) == pytest.approx(11.11544124)
    assert claim.epsilon() == math.inf and 0.3 < claim.eer_floor() < 0.5
    with pytest.raises(PrivacyError, match="6 queries asked, 0 of 6 left"):
        votes.release(posteriors(3, 6), spy)
    for more in (lambda: claim.repeat(2), lambda: claim.compose(claim)):
        with pytest.raises(PrivacyError, match="do not add up"):
            more()
    with pytest.raises(PrivacyError, match="Gaussian noise only"):
        NoisyVotes(3, 6, epsilon=1.0, rate=0.5)
    with pytest.raises(PrivacyError, match="at least two"):
        NoisyVotes(1, 6, mu=1.0, rate=0.5)


def test_psn_is_dearer_than_pate_and_the_published_figure_too_small():
    for teachers in (3, 10):
        setting = (1.0, teachers, 1 / teachers, 1e-5)
        published, pate_cost = psn.published_epsilon(*setting), accounting.gdp_epsilon(1.0, 1e-5)
        exact, adaptive = psn.epsilon(*setting), psn.adaptive_epsilon(*setting)
        assert published < pate_cost < exact < adaptive < psn.all_teachers_epsilon(1.0, teachers, 1e-5)
    assert psn.expected_cap(10, 0.1, 1e-6) == 7  # eight or more: 3.7e-7


CENTRAL_CLAIMS = [
    NoisyVotes(3, 6, mu=1.0).guarantee(),
    NoisyVotes(3, 6, mu=1.0, rate=0.5).guarantee(),
    GNMax(5, 3, 10.0, 4).guarantee(),
    DpSgd(1.0, 0.01, 100).guarantee(),
]


@pytest.mark.parametrize("claim", CENTRAL_CLAIMS, ids=lambda claim: claim.mechanism[:12])
def test_a_claim_about_a_training_set(claim):
    assert claim.central and claim.unit == "utterance" and "add or remove one utterance" in claim.sentence(1e-5)
    assert "Membership EER floor" in claim.sentence(1e-5) and "linking it to a voice" not in claim.sentence(1e-5)
    assert Guarantee.from_json(claim.to_json()) == claim
    with pytest.raises(PrivacyError, match="different adjacency"):
        claim.compose(PitchBox(1.0, 1).guarantee())
    with pytest.raises(PrivacyError, match="different adjacency"):
        BottleneckFrames(1.0).guarantee(num_frames=3).to_unit("utterance").compose(claim)
    with pytest.raises(PrivacyError, match="group the partition"):
        claim.repeat(10, "speaker")


def test_sub_sampling_is_not_sold_as_replace_one():
    part = Part("sampled", 1.0, 10, rate=0.1)
    for adjacency in ("", "replace the utterance by any other", "add or remove something"):
        with pytest.raises(PrivacyError, match="add-or-remove adjacency only"):
            Guarantee(parts=(part,), unit="utterance", adjacency=adjacency)
    with pytest.raises(PrivacyError, match="cannot mean"):
        Guarantee(parts=(part,), unit="speaker", adjacency=CENTRAL["utterance"])
    with pytest.raises(PrivacyError, match="not sampled"):
        Part("gaussian", 1.0, rate=0.1)


def test_dp_sgd_composes_with_its_like():
    first, second = DpSgd(1.0, 0.01, 100), DpSgd(2.0, 0.01, 100)
    both = first.guarantee().compose(second.guarantee())
    assert both.epsilon(1e-5) > first.guarantee().epsilon(1e-5) > second.guarantee().epsilon(1e-5) > 0.0
    assert not both.releasable and both.sentence(1e-5).startswith("INSECURE.")  # torch draws the noise
    assert DpSgd(1.0, 0.01, 100, unit="speaker").guarantee().unit == "speaker"


@pytest.mark.parametrize("sampling", ["shuffle", "fixed", "", None, "Poisson "])
def test_sampling_that_is_not_poisson_is_refused(sampling):
    with pytest.raises(PrivacyError, match="not accounted for"):
        DpSgd(1.0, 0.01, 100, sampling=sampling)


def test_batches_of_fixed_size_are_not_sold_as_poisson():
    run = DpSgd(1.0, 0.01, 400)
    run.check_batch_sizes(RNG.binomial(5000, 0.01, 400).tolist(), 5000)
    for sizes, message in (
        ([50] * 400, "fixed-size"),
        ([50] * 396 + [49] * 4, "fixed-size"),
        (RNG.binomial(5000, 0.02, 400).tolist(), "on average"),
        (RNG.binomial(5000, 0.01, 399).tolist(), "every step"),
        ([5001] + [0] * 399, "taken twice"),
        ([-1] * 400, "batch size"),
    ):
        with pytest.raises(PrivacyError, match=message):
            run.check_batch_sizes(sizes, 5000)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(6, 3000), st.integers(2, 60), st.floats(0.01, 0.9))
def test_poisson_batches_are_never_refused(seed, num_units, steps, rate):
    sizes = np.random.default_rng(seed).binomial(num_units, rate, steps).tolist()
    DpSgd(1.0, rate, steps).check_batch_sizes(sizes, num_units)


def test_gnmax_counts_votes_and_queries():
    labels = np.array([[0, 1], [0, 1], [2, 1]])
    spy, votes = Spy(), GNMax(3, 3, sigma=5.0, queries=3)
    released = votes.release(labels, spy)
    assert released.value.tolist() == [0, 1] and spy.calls[0][1].tolist() == [[2, 0, 1], [0, 3, 0]]
    assert spy.calls[0][2] == 5.0
    assert released.guarantee.mu() == pytest.approx(math.sqrt(2.0 * 2) / 5.0)
    with pytest.raises(PrivacyError, match="2 queries asked, 1 of 3 left"):
        votes.release(labels, spy)
    for bad in (labels + 1, labels.astype(float), labels[:2], labels - 1, np.zeros((3, 0), int)):
        with pytest.raises(PrivacyError):
            votes.release(bad, spy)
    assert len(spy.calls) == 1 and votes.budget.used == 2


def test_confident_gnmax_answers_where_teachers_agree_and_claims_all_it_declared():
    labels = np.array([[0, 0, 2, 1], [0, 1, 2, 1], [0, 2, 2, 1]])
    mechanism = ConfidentGNMax(3, 3, 4.0, 8, threshold=2.5, sigma_check=2.0, answers=2)
    released = mechanism.release(labels, Spy())
    assert released.value.tolist() == [0, pate.NO_ANSWER, 2, pate.NO_ANSWER]  # the third is one too many
    assert released.guarantee.mu() == pytest.approx(math.sqrt(8 / 2.0**2 + 2 * 2 / 4.0**2))
    assert mechanism.release(labels, Spy()).value.tolist() == 4 * [pate.NO_ANSWER]
    with pytest.raises(PrivacyError, match="0 of 8 left"):
        mechanism.release(labels, Spy())
    with pytest.raises(PrivacyError, match="at most queries"):
        ConfidentGNMax(3, 3, 4.0, 8, threshold=2.5, sigma_check=2.0, answers=9)


def test_data_dependent_epsilon_is_smaller_and_not_for_publication():
    votes = 200 * [[240, 5, 5] + 7 * [0]]
    found = pate.data_dependent_epsilon(votes, 40.0, 1e-5)
    plain = accounting.gdp_epsilon(math.sqrt(2.0 * 200) / 40.0, 1e-5)
    assert 0.0 < found.value < plain and "NOT FOR PUBLICATION" in str(found)
    split = pate.data_dependent_epsilon(200 * [[130, 120]], 40.0, 1e-5)
    assert split.value >= plain  # no agreement, no gain, and Renyi is looser
    with pytest.raises(PrivacyError, match="no votes"):
        pate.data_dependent_epsilon([], 40.0, 1e-5)
    for bad in ([3.0], [[1, 2]], [1.0, math.nan], [1.0, -1.0]):
        with pytest.raises(PrivacyError):
            pate.log_flip(bad, 40.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=2, max_size=6), st.floats(1.0, 200.0), st.floats(1.01, 500.0))
def test_data_dependent_divergence_is_between_0_and_the_independent_one(votes, sigma, order):
    log_q = pate.log_flip(votes, sigma)
    assert 0.0 <= pate.votes_rdp(log_q, sigma, order) <= order / sigma**2
    assert log_q <= math.log(1.0 - 1.0 / len(votes)) + 1e-12


def test_votes_with_the_real_sampler():
    votes = NoisyVotes(4, 2000, mu=50.0)
    released = votes.release(posteriors(4, 2000))
    assert released.guarantee.releasable and released.value.dtype == np.float32
    again = NoisyVotes(4, 2000, mu=50.0).release(posteriors(4, 2000), KeyedNoise(1, "u", "votes"))
    assert not again.guarantee.releasable
    residual = NoisyVotes(4, 2000, mu=50.0).release(np.zeros((4, 2000, 5))).value
    assert residual.std() == pytest.approx(votes.sigma, rel=0.05)  # 10,000 draws: 7 standard errors
