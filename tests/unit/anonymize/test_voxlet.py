"""The released voice: no path of the clean x-vector around the noise, both rules for sigma, one guarantee."""

import numpy as np
import pytest
import torch

from dpanon.anonymize import pretrained
from dpanon.anonymize.content import Frames
from dpanon.anonymize.embeddings import Protector, both_rules, speaker_mechanism
from dpanon.anonymize.pipeline import System
from dpanon.anonymize.prosody import Boxed, Converted
from dpanon.anonymize.statement import details, set_statement, utterance_row
from dpanon.anonymize.voxlet import ReleasedVoice
from dpanon.anonymize.workers import promised
from dpanon.attack.optimal import optimal_eer
from dpanon.errors import UsageError
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.privacy import BottleneckFrames, KeyedNoise, PitchBox, PrivacyError, SpeakerGaussian
from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise
from dpanon.synth.targets import Target, TargetPool

LOW = Target("m00", "m", np.eye(192, dtype=np.float32)[0], np.log(100.0), 0.1)
HIGH = Target("f00", "f", np.eye(192, dtype=np.float32)[1], np.log(200.0), 0.2)


class FakeExtractor:
    """Gives one array again and again, so that a test can spoil it later."""

    name, dim = "campplus", 192

    def __init__(self):
        rng = np.random.default_rng(5)
        self.vector = (rng.normal(size=192) / 192**0.5).astype(np.float32)

    def embed(self, samples):
        return self.vector


def vae():
    torch.manual_seed(2)
    network = SpeakerVae(SpeakerVaeConfig(latent=4, widths=(16,))).eval()
    network.radius, network.clamp = torch.tensor(2.0), torch.tensor(3.0)
    return network


def system(*noise, mu=1.0):
    torch.manual_seed(0)
    extractor = Bottleneck(BottleneckConfig(hidden=32, factor=8, content=16, bottleneck=24)).eval()
    synth = HarmonicNoise(HarmonicConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)).eval()
    pitch = PitchAutoencoder(PitchAutoencoderConfig()).eval()
    pool = TargetPool([LOW, HIGH])
    content = Frames(extractor, BottleneckFrames(10.0, 24) if "content" in noise else None)
    prosody = Boxed(pitch, PitchBox(5.0, 4)) if "pitch" in noise else Converted()
    made = System("voxlet", content, prosody, synth, pool)
    made.voice = ReleasedVoice(FakeExtractor(), Protector(vae(), SpeakerGaussian(mu, 2.0, 4), 192), pool)
    return made


def speech():
    t = np.arange(8000) / 16000
    return (0.05 * np.sign(np.sin(2 * np.pi * 120 * t)) * (1 + 0.5 * np.sin(9 * t))).astype(np.float32)


def keyed():
    return KeyedNoise(1, "u1", "release")


def test_the_clean_embedding_is_not_needed_behind_the_mechanism(monkeypatch):
    """NaN in its place, and in that of the latent, after the mechanism: the waveform is the same, bit by bit."""
    expected = system().anonymize(speech(), LOW, keyed()).samples
    spoilt = system()
    latents = []
    release, encode = SpeakerGaussian.release, SpeakerVae.encode

    def keep(self, x):
        latents.append(encode(self, x))
        return latents[-1]

    def spoil(self, z, noise=None):
        released = release(self, z, noise)
        spoilt.voice.extractor.vector.fill(np.nan)
        latents[-1].fill_(float("nan"))
        return released

    monkeypatch.setattr(SpeakerVae, "encode", keep)
    monkeypatch.setattr(SpeakerGaussian, "release", spoil)
    made = spoilt.anonymize(speech(), LOW, keyed())
    assert np.isnan(spoilt.voice.extractor.vector).all() and len(latents) == 1
    np.testing.assert_array_equal(made.samples, expected)
    with pytest.raises(PrivacyError, match="NaN"):  # and now it is one before the mechanism
        spoilt.anonymize(speech(), LOW, keyed())


def test_the_target_given_does_not_matter_and_the_noise_does():
    one, other = (system().anonymize(speech(), target, keyed()).samples for target in (LOW, HIGH))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, system().anonymize(speech(), LOW).samples)


def test_pitch_comes_from_the_public_pool_by_the_released_vector():
    voice = system().voice
    assert voice.voice_of(LOW.xvector).log_f0_mean == LOW.log_f0_mean
    assert voice.voice_of(HIGH.xvector).sex == "f"


def test_alone_it_assumes_that_content_and_prosody_tell_nothing():
    made = system().anonymize(speech(), LOW)
    assert made.guarantee.unit == "speaker" and made.guarantee.mu() == 1.0
    assert made.guarantee.conditional_on == ("content and prosody",)
    assert made.guarantee.eer_floor() == pytest.approx(0.3085, abs=1e-4)
    assert promised(system(), made.num_frames) == made.guarantee
    row = utterance_row("u1", made, keyed=False)
    assert row["conditional_on"] == ["content and prosody"]
    assert row["mu"] == 1.0 and row["mu_as_published"] == pytest.approx(0.5)
    assert row["eer_floor_as_published"] == pytest.approx(0.4013, abs=1e-4)
    said = set_statement("voxlet", {}, [(row, details(made))], 0, {})
    assert said["mu"] == 1.0 and said["eer_floor"] == row["eer_floor"]
    assert [part["mechanism"] for part in said["mechanisms"]] == ["speaker latent"]
    assert "given equal content and prosody" in said["sentence"]


def test_with_noise_in_pitch_and_content_it_is_one_guarantee_without_assumption():
    made = system("content", "pitch").anonymize(speech(), LOW)
    assert made.guarantee.unit == "utterance" and made.guarantee.conditional_on == ()
    assert {part.family for part in made.guarantee.parts} == {"laplace", "gaussian"}
    spent = {(part.family, part.value): part.times for part in made.guarantee.parts}
    assert spent == {("laplace", 5.0): 1, ("laplace", 10.0): made.num_frames, ("gaussian", 1.0): 1}
    assert promised(system("content", "pitch"), made.num_frames) == made.guarantee
    assert utterance_row("u1", made, keyed=False)["conditional_on"] == ["the number of frames"]


@pytest.mark.parametrize(("noise", "left"), [("content", "pitch"), ("pitch", "content")])
def test_with_noise_in_one_of_them_the_other_is_the_assumption(noise, left):
    made = system(noise).anonymize(speech(), LOW)
    assert made.guarantee.unit == "utterance" and made.guarantee.conditional_on == (left,)
    assert made.guarantee_speaker.conditional_on == (left,), "the voice's own claim says so, too"
    assert len(made.guarantee.parts) == 2 and promised(system(noise), made.num_frames) == made.guarantee


@pytest.mark.parametrize(
    ("rule", "mu", "published"), [("corrected", 1.0, 0.5), ("as-published", 2.0, 1.0), (None, 1.0, 0.5)]
)
def test_a_noise_level_by_either_rule(rule, mu, published):
    mechanism = speaker_mechanism(None, 1.0, rule, radius=3.0, dim=4)
    facts = both_rules(mechanism)
    assert facts["mu"] == pytest.approx(mu)
    assert facts["mu_as_published"] == pytest.approx(published)
    assert mechanism.sigma == pytest.approx(2 * 3.0 / mu)


@pytest.mark.parametrize(("rule", "floor"), [("as-published", 0.1587), ("corrected", 0.3085)])
def test_the_best_attacker_at_noise_level_one_errs_as_the_rule_says(rule, floor):
    """To a third of a point: 4 deviations of 200 000 trials."""
    assert optimal_eer(speaker_mechanism(None, 1.0, rule, radius=3.0, dim=2)) == pytest.approx(floor, abs=0.0035)


@pytest.mark.parametrize(
    "arguments",
    [(None, None, None), (1.0, 1.0, None), (None, 0.0, None), (None, float("nan"), None), (1.0, None, "own")],
)
def test_noise_that_cannot_be_meant_is_refused(arguments):
    with pytest.raises(UsageError):
        speaker_mechanism(*arguments, 1.0, 4)


def test_a_protector_checks_before_it_draws():
    class Watch(KeyedNoise):
        drawn = 0

        def add_gaussian(self, x, sigma, bound):
            Watch.drawn += 1
            return super().add_gaussian(x, sigma, bound)

    protector = Protector(vae(), SpeakerGaussian(1.0, 2.0, 4), 192)
    good = np.ones(192, dtype=np.float32)
    for bad in (good[:100], good * np.nan, good * np.inf, good * 0.0, np.stack([good, good]), good.astype(int), None):
        with pytest.raises(PrivacyError):
            protector.protect(bad, Watch(1, "u", "release"))
    assert Watch.drawn == 0
    assert np.linalg.norm(protector.protect(good, Watch(1, "u", "release")).vector) == pytest.approx(1.0, abs=1e-6)
    assert Watch.drawn == 1


def test_a_trained_voice_is_put_together_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "load_extractor", lambda name: FakeExtractor())
    pretrained.save_network(vae(), tmp_path / "speaker.safetensors", {})
    pool = TargetPool([LOW, HIGH])
    voice = pretrained._voice(tmp_path, pool, None, 1.0, "as-published")
    assert voice.mechanism.mu == 2.0 and voice.mechanism.radius == 2.0
    assert float(voice.protector.network.clamp) == 3.0
    with pytest.raises(UsageError, match="no such weights"):
        pretrained._voice(tmp_path / "none", pool, None, 1.0, None)
    for wrong in ({"mu": 1.0}, {"noise_level": 1.0}, {"sigma_rule": "corrected"}):
        with pytest.raises(UsageError, match="of the system voxlet, not of plain"):
            pretrained.load_system("plain", **wrong)
    with pytest.raises(UsageError, match="two noises for the same"):
        pretrained.load_system("voxlet", epsilon_bn=10.0, epsilon_token=10.0, mu=1.0)
