"""A claim names its unit, adds only to its like, survives JSON, and says the truth in words."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpanon.privacy import BottleneckFrames, Guarantee, KeyedNoise, PitchBox, PrivacyError, SpeakerGaussian, floors

BN = BottleneckFrames(1.0)
F0 = PitchBox(2.0, channels=4)


def test_frames_restated_for_the_utterance_add_up_with_pitch():
    total = F0.guarantee().compose(BN.guarantee(num_frames=300).to_unit("utterance"))
    assert total.kind == "pure" and total.params == {"epsilon": 302.0}
    assert total.unit == "utterance" and total.n_releases == 1


@pytest.mark.parametrize("first, second", [(BN.guarantee(), F0.guarantee()), (F0.guarantee(), BN.guarantee())])
def test_claims_of_different_units_do_not_add(first, second):
    with pytest.raises(PrivacyError, match="different unit"):
        first.compose(second)


def test_claims_of_different_adjacency_do_not_add():
    with pytest.raises(PrivacyError, match="different adjacency"):
        SpeakerGaussian(1.0, 1.0, 4).guarantee().compose(F0.guarantee().repeat(1, "speaker"))


def test_a_claim_is_never_restated_for_a_smaller_unit():
    with pytest.raises(PrivacyError, match="larger unit"):
        F0.guarantee().repeat(2, "frame")


def test_the_number_of_frames_must_be_known_to_restate():
    with pytest.raises(PrivacyError, match="not known"):
        BN.guarantee().to_unit("utterance")


def test_utterances_add_up_for_the_speaker():
    utterance = F0.guarantee().compose(BN.guarantee(num_frames=100).to_unit("utterance"))
    speaker = utterance.repeat(10, "speaker")
    assert speaker.epsilon() == 1020.0 and speaker.n_releases == 10


def test_gaussian_releases_add_in_squares():
    five = SpeakerGaussian(0.2, 3.0, 8).guarantee().repeat(25)
    assert five.kind == "gdp" and five.mu() == pytest.approx(1.0) and five.n_releases == 25
    assert five.eer_floor() == pytest.approx(floors.eer_gdp(1.0))


def test_as_published_says_twice_mu():
    published = SpeakerGaussian.as_published(0.1, radius=1.0, dim=64)
    assert published.sigma == pytest.approx(10.0)
    assert published.guarantee().params["mu"] == pytest.approx(0.2)
    assert "as published for mu = 0.1" in published.guarantee().sentence()
    assert published.guarantee().eer_floor() == pytest.approx(0.4601721627)


def test_no_claim_swallows_what_it_is_added_to():
    none = Guarantee.none("plain system: no noise")
    assert none.compose(F0.guarantee()).kind == F0.guarantee().compose(none).kind == "none"
    assert none.epsilon(1e-6) == math.inf and none.eer_floor() == 0.0 and not none.releasable
    assert none.sentence() == "No privacy guarantee: plain system: no noise."


def test_the_worse_sampler_marks_the_sum():
    noisy = F0.release(np.ones((4, 3)), KeyedNoise(0, "u", "f0")).guarantee
    assert noisy.sampler == "keyed" and not noisy.releasable
    assert noisy.compose(F0.guarantee()).sampler == F0.guarantee().compose(noisy).sampler == "keyed"
    assert noisy.sentence().startswith("NOT RELEASABLE.")


def test_a_floor_under_one_percent_is_printed_as_vacuous():
    assert "vacuous" in BottleneckFrames(10.0).guarantee().sentence()
    strong = BottleneckFrames(1.0).guarantee().sentence()
    assert "vacuous" not in strong and "30.33 %" in strong


def test_the_sentence_has_every_clause_of_the_template():
    words = SpeakerGaussian(0.5, 1.0, 64).guarantee().sentence()
    for clause in ("0.5-GDP", "given equal content", "One release", "40.13 %", "Not covered", "Sampler", "speaker"):
        assert clause in words
    words = BN.guarantee(num_frames=300).to_unit("utterance").sentence()
    for clause in ("300-DP", "same number of frames", "the number of frames", "vacuous"):
        assert clause in words


def test_floor_of_many_frames_is_quick_when_vacuous_and_tight_when_not():
    long = BottleneckFrames(1.0).guarantee(num_frames=1500).to_unit("utterance")
    assert 0.0 <= long.eer_floor() < floors.VACUOUS
    two = Guarantee.laplace(0.5, unit="frame").repeat(2, "utterance")
    assert floors.eer_pure(1.0) < two.eer_floor() < floors.eer_laplace(0.5)
    assert two.eer_floor() >= floors.eer_laplace(1.0)  # the concentrated shift dominates


def test_tight_epsilon_is_never_above_basic():
    frames = Guarantee.laplace(0.1, unit="frame").repeat(100, "utterance")
    assert frames.epsilon() == pytest.approx(10.0)
    assert frames.epsilon(1e-6) == pytest.approx(4.692667, rel=1e-4)
    assert Guarantee.pure(0.001, unit="frame").epsilon(1e-9) <= 0.001


def test_approximate_claims_add_both_numbers():
    twice = Guarantee.approx(1.0, 1e-6, unit="utterance").repeat(2)
    assert twice.kind == "approx" and twice.params == {"epsilon": 2.0, "delta": 2e-6}
    assert twice.epsilon(1e-7) == math.inf and twice.epsilon(1e-5) == pytest.approx(2.0)
    assert twice.eer_floor() == pytest.approx(floors.eer_approx(2.0, 2e-6))
    assert twice.epsilon() == math.inf


def test_mixed_mechanisms_need_a_loss_distribution():
    gaussian = Guarantee.gdp(0.5, unit="utterance")
    mixed = gaussian.compose(Guarantee.laplace(0.5, unit="utterance"))
    assert mixed.kind == "pld" and mixed.epsilon() == math.inf
    assert gaussian.epsilon(1e-5) < mixed.epsilon(1e-5) < gaussian.epsilon(1e-5) + 0.5 + 1e-3
    assert mixed.eer_floor() < gaussian.eer_floor()


GUARANTEES = [
    BN.guarantee(num_frames=7),
    BN.guarantee(num_frames=7).to_unit("utterance").compose(F0.guarantee()),
    SpeakerGaussian.as_published(0.3, 2.0, 8).guarantee().repeat(3),
    Guarantee.none("training regulariser"),
    Guarantee.approx(0.5, 1e-7, unit="speaker"),
    Guarantee.gdp(1.0, unit="utterance").compose(Guarantee.pure(1.0, unit="utterance")),
]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda g: g.kind)
def test_json_gives_the_same_guarantee_back(guarantee):
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert json.loads(guarantee.to_json())["schema"] == 1


def changed(**values):
    return json.dumps({**BN.guarantee(num_frames=7).to_dict(), **values})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "nan",
        "[" * 100_000,
        changed(params={"epsilon": 0.5}),
        changed(kind="gdp"),
        changed(unit="frames"),
        changed(sampler="good"),
        changed(schema=2),
        changed(schema=True),
        changed(more=1),
        changed(n_releases=0),
        changed(n_releases=True),
        changed(n_releases=1.5),
        changed(num_units="7"),
        changed(adjacency=None),
        changed(conditional_on="abc"),
        changed(not_covered=[1]),
        changed(parts=[]),
        changed(parts=[{"family": "laplace", "value": -1.0, "times": 1, "delta": 0.0}]),
        changed(parts=[{"family": "laplace", "value": 1.0, "times": 0, "delta": 0.0}]),
        changed(parts=[{"family": "laplace", "value": 1.0, "times": 1, "delta": 0.1}]),
        changed(parts=[{"family": "magic", "value": 1.0, "times": 1, "delta": 0.0}]),
        changed(parts=[{"family": "laplace", "value": 1.0, "times": 1}]),
        changed(parts=[{"family": "laplace", "value": 10**400, "times": 1, "delta": 0.0}]),
        changed(parts=[{"family": "laplace", "value": math.nan, "times": 1, "delta": 0.0}]),
        changed(parts=[{"family": ["laplace"], "value": 1.0, "times": 1, "delta": 0.0}]),
        changed(parts=["laplace"]),
    ],
    ids=range(30),
)
def test_a_record_that_is_not_a_guarantee_is_refused(text):
    with pytest.raises(PrivacyError):
        Guarantee.from_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(BN.guarantee().to_dict())), JSON)
def test_any_field_may_hold_anything_and_only_a_privacy_error_comes(key, value):
    record = {**BN.guarantee(num_frames=3).to_dict(), key: value}
    try:
        assert Guarantee.from_dict(record).kind == "pure"
    except PrivacyError:
        pass


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 1e3), st.integers(1, 10_000))
def test_repeat_is_linear_and_floors_stay_probabilities(epsilon, n):
    repeated = Guarantee.pure(epsilon, unit="frame").repeat(n, "utterance")
    assert repeated.epsilon() == pytest.approx(n * epsilon)
    assert 0.0 <= floors.eer_pure(repeated.epsilon()) <= 0.5


@pytest.mark.parametrize("epsilon", [499.0, 501.0, 1e3, 1e5])
def test_ceilings_of_a_long_utterance_are_one_not_an_overflow(epsilon):
    assert floors.linkability_laplace(epsilon) == pytest.approx(1.0, abs=1e-6)
    assert floors.reid_laplace(epsilon, 20) == pytest.approx(1.0, abs=1e-6)
    assert floors.linkability_laplace(epsilon) <= 1.0 and floors.auc_laplace(epsilon) <= 1.0


def test_a_number_beyond_floats_is_no_guarantee_however_it_was_parsed():
    record = Guarantee.pure(1.0, "utterance").to_dict()
    record["parts"][0]["value"] = 10**400
    for read in (Guarantee.from_dict, lambda value: Guarantee.from_json(json.dumps(value))):
        with pytest.raises(PrivacyError):
            read(record)
