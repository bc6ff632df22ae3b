"""Discrete draws have the law they claim, to the last bit where it matters; symbols keep their promise."""

import math

import numpy as np
import pytest
from mpmath import libmp
from scipy import stats

from dpanon.privacy import (
    CodebookChoice,
    IntegerLaplace,
    KeyedNoise,
    PrivacyError,
    SubsetSelection,
    SystemNoise,
    TokenResponse,
    audit,
    discrete,
)

FALSE_ALARM = 1e-9


def stream():
    return SystemNoise().keystream()


def of_law(counts, expected):
    """Chi-squared: False once in 1e9 runs when the law is right."""
    expected = np.asarray(expected) / np.sum(expected) * np.sum(counts)
    return stats.chisquare(counts, expected).pvalue > FALSE_ALARM


class Words:
    """A stream of chosen words, and of chosen bits to decide with."""

    def __init__(self, words, bits=()):
        self.given, self.bits = list(words), list(bits)

    def words(self, num):
        given, self.given = self.given[:num], self.given[num:]
        return np.array(given, dtype=np.uint64)

    def more_bits(self):
        return self.bits.pop(0)


@pytest.mark.parametrize("high", [1, 2, 3, 7, 1000])
def test_integers_are_uniform(high):
    drawn = discrete.integers(50_000, high, stream())
    assert drawn.min() >= 0 and drawn.max() < high
    if high > 1:
        assert of_law(np.bincount(drawn, minlength=high), np.ones(high))


def test_integers_beyond_the_last_multiple_are_drawn_again():
    """2^64 = 1 mod 3: the word 2^64 - 1 would favour 0."""
    assert discrete.integers(1, 3, Words([2**64 - 1, 5])).tolist() == [2]


@pytest.mark.parametrize("scale", [0.3, 1.0, 8.0, 1024.0])
def test_discrete_laplace_has_its_law(scale):
    drawn = discrete.discrete_laplace(60_000, scale, stream())
    ratio = math.exp(-1 / scale)
    variance = 2 * ratio / (1 - ratio) ** 2
    assert drawn.mean() == pytest.approx(0, abs=6.5 * math.sqrt(variance / drawn.size))
    most = int(3 * scale) + 1
    law = np.array([(1 - ratio) / (1 + ratio) * ratio ** abs(n) for n in range(-most, most + 1)])
    counts = np.array([(drawn == n).sum() for n in range(-most, most + 1)])
    assert of_law(np.append(counts, drawn.size - counts.sum()), np.append(law, 1 - law.sum()))


def test_discrete_laplace_of_scale_8_has_the_tables_variance():
    drawn = discrete.discrete_laplace(200_000, 8.0, stream())
    assert drawn.var() == pytest.approx(127.8334635, rel=0.05)


def test_the_exact_path_agrees_with_the_fast_one():
    """Same words, one decided in float64 and one in multiple precision."""
    words = np.random.default_rng(1).integers(2**40, 2**63, 200)
    fast = discrete.discrete_laplace(100, 50.0, Words(words))
    exact = [discrete.exact.laplace_cell(-0.5, True, int(w), 50.0, 0, lambda: 0) for w in words]
    assert fast.tolist() == [a - b for a, b in zip(exact[:100], exact[100:], strict=True)]


def test_a_probability_is_compared_exactly():
    """Words next to the threshold of 1/3 are decided by more bits, the others are not asked for any."""
    third = 2**64 // 3  # 1/3 = third + 1/3 steps

    def probability(precision):
        return libmp.mpf_div(libmp.fone, libmp.from_int(3), precision)

    assert discrete.bernoulli(2, probability, Words([third - 3, third + 3])).tolist() == [True, False]
    below, above = Words([third], [0]), Words([third], [2**63])
    assert discrete.bernoulli(1, probability, below).tolist() == [True]
    assert discrete.bernoulli(1, probability, above).tolist() == [False]
    again = Words([third], [third, third, 0])  # as far as 128 bits say it may be either
    assert discrete.bernoulli(1, probability, again).tolist() == [True] and again.bits == []


@pytest.mark.parametrize("epsilon", [45.0, 60.0, 500.0, 600.0])
def test_a_probability_of_almost_one(epsilon):
    """Nearer to 1 than 64 bits tell: all is kept but for the last word, which more bits decide."""
    mechanism = discrete.TokenResponse(epsilon, 1024)
    tokens = np.arange(1000)
    assert np.array_equal(mechanism.release(tokens, KeyedNoise(1, "u", "release")).value, tokens)
    last = 2**64 - 1
    assert discrete.bernoulli(2, mechanism._keep, Words([last, 0], [2**64 - 2**40])).tolist()[1] is True
    lost = Words([last], [last] * 20)
    assert discrete.bernoulli(1, mechanism._keep, lost).tolist() == [False], "beyond any probability below 1"


def test_categories_are_exact_at_their_borders():
    weights = np.log([[1.0, 1.0]])  # the border is at one half
    half = 2**63
    for word, bits, expected in ((half - 2**14, [], 0), (half + 2**14, [], 1)):
        assert discrete.categorical(weights, Words([word], bits)).tolist() == [expected]
    assert discrete.categorical(weights, Words([half - 1], [2**64 - 1, 0])).tolist() == [0]
    assert discrete.categorical(weights, Words([half], [1])).tolist() == [1]


@pytest.mark.parametrize("spread", [0.0, 1.0, 40.0])
def test_categories_have_their_law(spread):
    weights = -spread * np.linspace(0, 1, 6)[None]
    drawn = discrete.categorical(np.repeat(weights, 40_000, 0), stream())
    law = np.exp(weights[0]) / np.exp(weights[0]).sum()
    frequent = law * drawn.size > 5
    counts = np.bincount(drawn, minlength=6)
    assert of_law(np.append(counts[frequent], counts[~frequent].sum() + 1e-9), np.append(law[frequent], 1e-9))


@pytest.mark.parametrize("epsilon, size", [(0.5, 2), (2.0, 5), (5.0, 40)])
def test_tokens_are_kept_at_the_stated_rate_and_no_more(epsilon, size):
    mechanism = TokenResponse(epsilon, size)
    drawn = mechanism.release(np.full(60_000, size - 1)).value
    assert mechanism.keep == pytest.approx(math.exp(epsilon) / (math.exp(epsilon) + size - 1))
    law = np.full(size, (1 - mechanism.keep) / (size - 1))
    law[-1] = mechanism.keep
    assert of_law(np.bincount(drawn, minlength=size), law)


@pytest.mark.parametrize("make", [TokenResponse, SubsetSelection])
def test_answers_meet_epsilon_and_do_not_exceed_it(make):
    """The event 'token 0 is in it, token 1 is not' has likelihood ratio e^epsilon."""
    mechanism, num = make(1.0, 6), 40_000

    def event(sets):
        return ((sets == 0).any(-1) if sets.ndim == 2 else sets == 0) & ~(
            (sets == 1).any(-1) if sets.ndim == 2 else sets == 1
        )

    high, low = (event(mechanism.release(np.full(num, token)).value) for token in (0, 1))
    assert not audit.event(int(high.sum()), int(low.sum()), num, 1.0).broken
    assert math.log(high.mean() / low.mean()) == pytest.approx(1.0, abs=0.1)
    assert high.mean() == pytest.approx(mechanism.part().mass, abs=6 * 0.5 / math.sqrt(num))
    half_the_claim = audit.event(int(high.sum()), int(low.sum()), num, 0.5)
    assert half_the_claim.broken


def test_a_subset_holds_the_token_at_the_stated_rate_and_the_others_alike():
    mechanism = SubsetSelection(1.0, 12)
    sets = mechanism.release(np.full(40_000, 3)).value
    assert sets.shape == (40_000, mechanism.subset) and (np.diff(sets, axis=1) > 0).all()
    counts = np.bincount(sets.ravel(), minlength=12)
    assert counts[3] / 40_000 == pytest.approx(mechanism.keep, abs=0.02)
    others = np.delete(counts, 3)
    assert np.ptp(others) < 12 * math.sqrt(others.mean())


def test_the_subset_size_attains_the_information_ceiling():
    from dpanon.privacy import capacity

    for epsilon in (0.5, 1.0, 3.0):
        mechanism = SubsetSelection(epsilon, 400)
        assert mechanism.information(mechanism.subset) == pytest.approx(capacity.pure_nats(epsilon), rel=0.01)


def test_a_code_is_drawn_by_its_distance_and_inputs_beyond_the_ball_are_no_exception():
    codes = np.random.default_rng(0).normal(size=(20, 4))
    mechanism = CodebookChoice(4.0, codes)
    x = np.repeat(codes[:1], 30_000, 0)
    weights = mechanism.log_weights(x[:1])[0]
    assert weights.max() == weights[0] and weights.min() >= -2.0 and weights.max() <= 0.0
    drawn = mechanism.release(x).value
    assert of_law(np.bincount(drawn, minlength=20), np.exp(weights))
    far = mechanism.log_weights(np.array([[1e300, 0, 0, 0], [np.nan] * 4, [-np.inf, 1, 1, 1]]))
    assert np.isfinite(far).all() and far.min() >= -2.0 and far.max() <= 0.0


def test_exponents_of_two_inputs_never_differ_by_more_than_half_of_epsilon():
    rng = np.random.default_rng(2)
    mechanism = CodebookChoice(3.0, rng.normal(size=(9, 3)))
    weights = mechanism.log_weights(rng.normal(size=(500, 3)) * 10 ** rng.uniform(-9, 9, (500, 1)))
    assert np.abs(weights[:, None] - weights[None]).max() <= 1.5


def test_counts_stay_integers():
    released = IntegerLaplace(0.5, 2).release(np.array([3, 0, 10**15]))
    assert released.value.dtype == np.int64 and released.guarantee.params == {"epsilon": 0.5}
    keyed = [IntegerLaplace(0.5, 2).release(np.arange(50), KeyedNoise(1, "utt", "x")) for _ in range(2)]
    assert (keyed[0].value == keyed[1].value).all() and not keyed[0].guarantee.releasable


def test_segments_add_up_and_the_alphabet_makes_the_sum_smaller():
    one = TokenResponse(4.0, 256).release(np.zeros(25, dtype=int)).guarantee
    whole = one.to_unit("utterance")
    assert one.unit == "segment" and whole.epsilon() == 100.0
    assert whole.epsilon(1e-6) == pytest.approx(59.65, abs=0.05)
    assert whole.n_releases == 1
    assert one.eer_floor() == pytest.approx(0.5 * (1 - 0.17633 * (1 - math.exp(-4))), abs=1e-4)
    again = type(whole).from_json(whole.to_json())
    assert again == whole


@pytest.mark.parametrize(
    "call",
    [
        lambda: TokenResponse(0, 5),
        lambda: TokenResponse(math.inf, 5),
        lambda: TokenResponse(math.nan, 5),
        lambda: TokenResponse(True, 5),
        lambda: TokenResponse(1.0, 1),
        lambda: TokenResponse(1.0, 10**9),
        lambda: TokenResponse(1.0, 5).release(np.array([5])),
        lambda: TokenResponse(1.0, 5).release(np.array([-1])),
        lambda: TokenResponse(1.0, 5).release(np.array([1.0])),
        lambda: TokenResponse(1.0, 5).release(np.array([True])),
        lambda: TokenResponse(1.0, 5).release(np.zeros((0,), dtype=int)),
        lambda: TokenResponse(1.0, 5).release(np.zeros((2, 2), dtype=int)),
        lambda: SubsetSelection("1", 5),
        lambda: CodebookChoice(1.0, np.full((3, 2), np.nan)),
        lambda: CodebookChoice(1.0, np.ones((3, 2)), radius=0),
        lambda: CodebookChoice(1.0, np.ones((3, 2))).release(np.ones((4, 3))),
        lambda: IntegerLaplace(1.0, 0),
        lambda: IntegerLaplace(1.0, 1.5),
        lambda: IntegerLaplace(1e-12, 1),
        lambda: IntegerLaplace(1.0, 1, unit="word"),
        lambda: IntegerLaplace(1.0, 1).release(np.array([2**60])),
        lambda: discrete.discrete_laplace(1, math.inf, stream()),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(PrivacyError):
        call()
