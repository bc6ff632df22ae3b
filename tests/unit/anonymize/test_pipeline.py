"""One utterance through a system of small random networks."""

import numpy as np
import pytest
import torch

from dpanon.anonymize import content
from dpanon.anonymize.content import Frames
from dpanon.anonymize.pipeline import System
from dpanon.anonymize.pretrained import load_network, load_system, save_network, shipped_epsilons
from dpanon.anonymize.prosody import Boxed, Converted
from dpanon.errors import UsageError
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.privacy import BottleneckFrames, KeyedNoise, PitchBox, PrivacyError
from dpanon.privacy.mechanisms import Released
from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise
from dpanon.synth.targets import Target, TargetPool

TARGET = Target("f00a", "f", np.full(192, 192**-0.5, np.float32), np.log(200.0), 0.2)


@pytest.fixture
def system():
    torch.manual_seed(0)
    extractor = Bottleneck(BottleneckConfig(hidden=32, factor=8, content=16, bottleneck=24)).eval()
    synth = HarmonicNoise(HarmonicConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)).eval()
    pitch = PitchAutoencoder(PitchAutoencoderConfig()).eval()
    return System(
        "dp",
        Frames(extractor, BottleneckFrames(10.0, 24)),
        Boxed(pitch, PitchBox(5.0, 4)),
        synth,
        TargetPool([TARGET]),
    )


def plain(system):
    return System("plain", Frames(system.extractor), Converted(), system.synthesizer, system.pool)


def voice(seconds=1.0, hz=120.0):
    t = np.arange(int(16000 * seconds)) / 16000
    wave = sum(np.sin(2 * np.pi * hz * k * t) / k for k in range(1, 15)) * (1 + 0.5 * np.sin(9 * t))
    return (0.05 * wave).astype(np.float32)


def keyed(utt="u1"):
    return KeyedNoise(1, utt, "release")


@pytest.mark.parametrize("num", [400, 1600, 16000, 16079, 16081])
def test_length_tells_the_number_of_frames_and_no_more(system, num):
    made = system.anonymize(voice()[:num] if num <= 16000 else voice(2.0)[:num], TARGET)
    assert made.num_frames == (num + 80) // 160
    assert made.samples.shape == (160 * made.num_frames,) and np.abs(made.samples).max() <= 1.0


def test_guarantee_adds_f0_and_every_frame(system):
    made = system.anonymize(voice(), TARGET)
    assert made.guarantee.unit == "utterance" and made.guarantee.kind == "pure"
    assert made.guarantee.epsilon() == pytest.approx(5.0 + 100 * 10.0)
    assert made.guarantee_frame.epsilon() == 10.0 and made.guarantee_f0.epsilon() == 5.0
    assert made.guarantee.releasable


def test_plain_promises_nothing(system):
    made = plain(system).anonymize(voice(), TARGET)
    assert made.guarantee.kind == "none" and made.guarantee_frame is None and made.guarantee.eer_floor() == 0


def test_noise_of_two_releases_differs_and_keyed_noise_repeats(system):
    a, b = (system.anonymize(voice(), TARGET).samples for _ in range(2))
    assert not np.array_equal(a, b)
    c, d = (system.anonymize(voice(), TARGET, keyed()) for _ in range(2))
    np.testing.assert_array_equal(c.samples, d.samples)
    assert not c.guarantee.releasable
    assert not np.array_equal(c.samples, system.anonymize(voice(), TARGET, keyed("u2")).samples)


def test_torch_seed_does_not_reach_the_release(system):
    made = []
    for _ in range(2):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 (the global generator is the point)
        made.append(system.anonymize(voice(), TARGET).samples)
    assert not np.array_equal(*made)


def test_nothing_of_the_source_goes_round_the_mechanisms(system, monkeypatch):
    """With the two released values held fixed, another recording of the same length makes the same waveform."""
    rng = np.random.default_rng(0)
    bn, h = rng.standard_normal((100, 24)).astype(np.float32), rng.random((4, 100)).astype(np.float32)
    frame, whole = system.content.mechanism.guarantee(100), system.prosody.box.guarantee()
    monkeypatch.setattr(system.content.mechanism, "release", lambda x, noise: Released(bn, frame))
    monkeypatch.setattr(system.prosody.box, "release", lambda x, noise: Released(h, whole))
    noise = rng.standard_normal(16000).astype(np.float32) * 0.2 + 0.3
    a, b, c = (system.anonymize(x, TARGET, keyed()).samples for x in (voice(), noise, np.zeros(16000, np.float32)))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a, c)


def test_what_is_released_is_what_the_mechanism_was_given_to_clip(system, monkeypatch):
    """Both private values pass through their mechanism: with an infinite latent there is an error, not a release."""
    monkeypatch.setattr(system.extractor, "encode", lambda x, mean: torch.full((1, x.shape[1], 23), 1.0))
    with pytest.raises((PrivacyError, ValueError)):
        system.anonymize(voice(), TARGET)


@pytest.mark.parametrize(
    "samples", [np.zeros(16000), np.full(16000, 0.4), np.random.default_rng(0).standard_normal(9000)]
)
def test_silence_dc_and_noise_are_released_like_anything_else(system, samples):
    made = system.anonymize(samples.astype(np.float32), TARGET)
    assert np.isfinite(made.samples).all() and made.guarantee.releasable


def test_parts_of_a_long_recording_fit_together(system, monkeypatch):
    x = voice(3.0)
    torch.nn.init.constant_(system.synthesizer.filters.bias[system.synthesizer.bins :], -14.0)  # no hiss to compare
    whole = plain(system).anonymize(x, TARGET, keyed()).samples
    monkeypatch.setattr(content, "CHUNK", 100)
    parts = plain(system).anonymize(x, TARGET, keyed()).samples
    assert np.abs(whole - parts).max() < 0.05 * np.abs(whole).max()


def test_saved_network_is_the_same_in_use(system, tmp_path):
    for kind, network in (("bn", system.extractor), ("synth", system.synthesizer), ("f0", system.prosody.network)):
        save_network(network, tmp_path / f"{kind}.safetensors", {})
        again = load_network(kind, tmp_path / f"{kind}.safetensors")
        assert again.config == network.config and not again.training
        for (name, a), b in zip(network.state_dict().items(), again.state_dict().values(), strict=True):
            torch.testing.assert_close(a, b, atol=2e-3, rtol=2e-3, msg=name)


def models(system, tmp_path):
    for name in ("plain", "eps10"):
        save_network(system.extractor, tmp_path / f"bn_{name}.safetensors", {})
        save_network(system.synthesizer, tmp_path / f"synth_{name}.safetensors", {})
    save_network(system.prosody.network, tmp_path / "f0_eps10.safetensors", {})
    system.pool.save(tmp_path / "targets.safetensors")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dp", 7.0, 1.0), "no weights for --epsilon-bn 7; choose one of 10"),
        (("dp", None, 1.0), "needs --epsilon-bn"),
        (("dp", 10.0, None), "needs --epsilon-f0"),
        (("plain", 10.0, None), "plain has no such noise: leave out --epsilon-bn"),
        (("dp_bn", 10.0, 1.0), "dp_bn has no such noise: leave out --epsilon-f0"),
        (("mcadams", None, None), "unknown system 'mcadams'"),
    ],
)
def test_systems_that_cannot_be_are_refused(system, tmp_path, arguments, message):
    with pytest.raises(UsageError, match=message):
        load_system(*arguments, models=models(system, tmp_path))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), True, "1"])
def test_no_epsilon_without_a_meaning(system, tmp_path, bad):
    folder = models(system, tmp_path)
    with pytest.raises(PrivacyError):
        load_system("dp", bad, 1.0, models=folder)
    with pytest.raises(PrivacyError):
        load_system("dp", 10.0, bad, models=folder)


def test_an_extractor_shares_the_synthesizer_of_the_next_larger_epsilon(system, tmp_path):
    folder = models(system, tmp_path)
    (folder / "synth_eps10.safetensors").unlink()
    for epsilon, bias in ((100, 1.0), (50, 2.0)):
        torch.nn.init.constant_(system.synthesizer.filters.bias, bias)
        save_network(system.synthesizer, folder / f"synth_eps{epsilon}.safetensors", {})
    assert load_system("dp", 10.0, 1.0, folder).synthesizer.filters.bias[0] == 2.0
    (folder / "synth_eps50.safetensors").unlink()
    (folder / "synth_eps100.safetensors").unlink()
    assert load_system("dp", 10.0, 1.0, folder).synthesizer.filters.bias[0] == -4.0  # plain


def test_epsilons_are_read_from_the_names(system, tmp_path):
    folder = models(system, tmp_path)
    save_network(system.extractor, folder / "bn_eps100.safetensors", {})
    assert shipped_epsilons("bn", folder) == [100.0, 10.0]
