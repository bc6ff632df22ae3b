"""Every system of the table: its noise, its claim before and after, and what the claim is conditional on."""

import numpy as np
import pytest
import torch

from dpanon.anonymize import content as parts_of_content
from dpanon.anonymize.batch import Result
from dpanon.anonymize.content import Frames, Tokens
from dpanon.anonymize.pipeline import System
from dpanon.anonymize.prosody import Boxed, Contour, Converted, Kept, Naive
from dpanon.anonymize.statement import details, set_statement, utterance_row
from dpanon.anonymize.systems import DEFAULTS, SYSTEMS, check_parameters, parts_of
from dpanon.cli.anonymize import summary
from dpanon.errors import UsageError
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.intonation import Intonation, IntonationConfig
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.models.tokens import num_symbols, num_tokens
from dpanon.privacy import BottleneckFrames, KeyedNoise, LowRankPitch, PitchBox, TokenResponse
from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise
from dpanon.synth.targets import Target, TargetPool

TARGET = Target("f00a", "f", np.full(192, 192**-0.5, np.float32), np.log(200.0), 0.2)
NONE = dict.fromkeys(DEFAULTS)


def make(name):
    torch.manual_seed(0)
    sizes = {"hidden": 32, "factor": 8, "content": 16, "bottleneck": 12, "codebooks": 1, "code_size": 16}
    extractor = Bottleneck(BottleneckConfig(**sizes)).eval().requires_grad_(False)
    torch.nn.init.normal_(extractor.codes.vectors, std=0.1)
    synth = HarmonicNoise(HarmonicConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)).eval()
    content = {
        "clear": lambda: Frames(extractor),
        "frames": lambda: Frames(extractor, BottleneckFrames(10.0, 16)),
        "tokens": lambda: Tokens(extractor, TokenResponse(8.0, num_symbols(extractor.codes))),
    }
    prosody = {
        "kept": Kept,
        "converted": Converted,
        "naive": lambda: Naive(PitchBox(5.0, 1)),
        "box": lambda: Boxed(PitchAutoencoder(PitchAutoencoderConfig()).eval(), PitchBox(5.0, 4)),
        "contour": lambda: Contour(LowRankPitch(1.0, 3)),
    }
    part, pitch = SYSTEMS[name]
    told = Intonation(IntonationConfig(content=16, hidden=8, dilations=(1, 2))).eval().requires_grad_(False)
    intonation = told if pitch == "contour" else None
    return System(name, content[part](), prosody[pitch](), synth, TargetPool([TARGET]), intonation=intonation)


def voice(hz=120.0, num=16000):
    t = np.arange(num) / 16000
    glide = hz * (t + 0.15 * np.sin(3 * t))
    wave = sum(np.sin(2 * np.pi * k * glide) / k for k in range(1, 15)) * (1 + 0.5 * np.sin(9 * t))
    return (0.05 * wave).astype(np.float32)


NAMES = [name for name, parts in SYSTEMS.items() if parts]
OPEN = {"plain": None, "anon": None, "dp_bn": "pitch", "dp_pitch": "content", "naive": "content"}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_promised_is_what_is_claimed(name):
    system = make(name)
    made = system.anonymize(voice(), TARGET)
    assert made.samples.shape == (16000,) and np.isfinite(made.samples).all()
    assert system.promise(100, "exact") == made.guarantee
    if OPEN.get(name, "") is None:
        assert made.guarantee.kind == "none" and not made.guarantee.releasable
    else:
        assert made.guarantee.unit == "utterance" and made.guarantee.releasable
        assert made.guarantee.conditional_on == ((OPEN[name],) if name in OPEN else ())


@pytest.mark.parametrize("name", ["dp", "dp_contour", "token"])
def test_two_recordings_of_one_length_differ_by_released_values_only(name):
    """Noise that answers with itself alone: nothing of the recording is left."""

    class Blind(KeyedNoise):
        def add_laplace(self, x, scale, bound):
            return super().add_laplace(np.zeros_like(x), scale, bound)

        def add_gaussian(self, x, sigma, bound):
            return super().add_gaussian(np.zeros_like(x), sigma, bound)

    system = make(name)
    if name == "token":
        release = system.content.mechanism.release
        system.content.mechanism.release = lambda tokens, noise: release(np.zeros_like(tokens), noise)
    a, b = (system.anonymize(x, TARGET, Blind(1, "u", "release")).samples for x in (voice(), voice(230.0)))
    np.testing.assert_array_equal(a, b)


def test_pitch_is_kept_or_moved():
    kept, moved = (make(name).prosody.release(np.full(50, 120.0), None).of(TARGET) for name in ("anon", "plain"))
    assert np.allclose(kept, 120.0, rtol=1e-3) and np.allclose(moved, 200.0, rtol=1e-3)
    assert np.allclose(make("anon").prosody.release(np.zeros(5), None).of(TARGET), 150.0)


def test_naive_pitch_is_drowned_in_the_range_of_voices():
    f0 = make("naive").prosody.release(np.full(400, 120.0), KeyedNoise(1, "u", "release")).of(TARGET)
    assert f0.min() >= 59.0 and f0.max() <= 401.0 and np.mean((f0 < 61) | (f0 > 399)) > 0.9


def test_a_contour_with_little_budget_is_the_one_that_released_content_lets_expect(monkeypatch):
    """And it is told of the noisy content: with other noise there, it is another one."""
    system = make("dp_contour")
    system.prosody = Contour(LowRankPitch(1e-6, 3))
    given = []
    release = system.prosody.release
    monkeypatch.setattr(system.prosody, "release", lambda *a: given.append((a[2], made := release(*a))) or made)
    for key in (1, 2):
        system.anonymize(voice(), TARGET, KeyedNoise(key, "u", "release"))
    (first, pitch), (second, _) = given
    np.testing.assert_allclose(pitch.values, first.contour, atol=1e-4)
    assert first.contour.shape == (100,) and first.contour.std() > 0
    assert np.abs(first.contour - second.contour).max() > 0


def test_the_expected_contour_of_a_long_recording_has_no_seams(monkeypatch):
    system = make("dp_contour")
    system.content = Frames(system.extractor)  # without noise, which would differ
    content, _ = system.content.release(voice(num=48000), None)
    whole = system._expect(system._decode(content, 300)).contour
    monkeypatch.setattr(parts_of_content, "CHUNK", 60)
    pieces = system._decode(content, 300)
    assert len(pieces) == 5
    np.testing.assert_allclose(system._expect(pieces).contour, whole, atol=1e-4)


def test_tokens_cost_by_the_second_and_say_so():
    made = make("token").anonymize(voice(), TARGET)
    num = num_tokens(100)
    assert made.guarantee_frame.unit == "segment" and made.guarantee_frame.num_units == num
    assert made.guarantee.epsilon() == np.inf, "Gaussian pitch has no pure epsilon"
    row = utterance_row("u1", made, keyed=False)
    assert (row["epsilon_token"], row["num_tokens"], row["epsilon_frame"]) == (8.0, num, None)
    assert "the number of frames" in row["conditional_on"]


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "voxlet"])
def test_what_was_released_is_summed_up_for_people(name, tmp_path):
    made = make(name).anonymize(voice(), TARGET)
    finished = [(utterance_row("u1", made, keyed=False), details(made))]
    statement = set_statement(name, {}, finished, refused=0, speakers={"u1": "s1"})
    said = summary(Result(tmp_path, statement, released=1, refused=0, kept=0))
    if name in ("dp", "dp_bn"):
        assert "epsilon of a frame 10, of an utterance" in said
    elif name in ("dp_pitch", "naive"):
        assert "epsilon of an utterance" in said and "of a frame" not in said
    elif name in ("token", "dp_contour"):
        assert "EER floor" in said
    else:
        assert "no privacy guarantee" in said


def test_parameters_without_mechanism_and_mechanisms_without_parameter():
    assert check_parameters("dp", NONE, defaults=True) == {"epsilon_bn": 10.0, "epsilon_f0": 10.0}
    assert check_parameters("token", NONE | {"mu_f0": 2.0}, defaults=True) == {"epsilon_token": 14.0, "mu_f0": 2.0}
    for name, given, said in (
        ("dp_bn", {}, "needs --epsilon-bn"),
        ("token", {"epsilon_token": 1.0}, "needs --mu-f0"),
        ("anon", {"mu_f0": 1.0}, "leave out --mu-f0"),
        ("mcadams", {}, "unknown system"),
        ("voxlet", {"epsilon_bn": 1.0, "epsilon_token": 1.0}, "two noises"),
    ):
        with pytest.raises(UsageError, match=said):
            check_parameters(name, NONE | given)
    assert parts_of("voxlet", NONE) == ("clear", "converted")
    assert parts_of("voxlet", NONE | {"epsilon_token": 1.0, "mu_f0": 1.0}) == ("tokens", "contour")
