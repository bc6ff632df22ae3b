"""Voice conversion by others, against a fake with the interface of OpenVoice's tone colour converter."""

from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from dpanon.anonymize import converter as home
from dpanon.anonymize.converter import ConvertedSpeech, OpenVoice
from dpanon.anonymize.embeddings import Protector, speaker_mechanism
from dpanon.anonymize.pretrained import save_network
from dpanon.anonymize.workers import Options, load, promised
from dpanon.cli.anonymize import main, options_of, parse_args
from dpanon.errors import MissingDependencyError, UsageError
from dpanon.features.xvector import load_extractor
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.privacy import KeyedNoise, PrivacyError, SpeakerGaussian

RATE = 22050
VOICES = np.stack([3.0 * np.eye(256)[0], 5.0 * np.eye(256)[1]])  # of mean norm 4


class FakeTool:
    """extract_se(files) -> (1, 256, 1); convert(file, src_se, tgt_se, output_path, tau, message) -> (L,)."""

    def __init__(self):
        self.hps = SimpleNamespace(data=SimpleNamespace(sampling_rate=RATE))
        self.told, self.clean = [], None

    def extract_se(self, ref_wav_list, se_save_path=None):
        samples, rate = soundfile.read(ref_wav_list[0])
        assert rate == 16000 and len(samples)
        self.clean = torch.full((1, 256, 1), 0.25) + torch.arange(256).view(1, 256, 1) / 100
        return self.clean

    def convert(self, audio_src_path, src_se, tgt_se, output_path=None, tau=0.3, message="default"):
        self.told.append((src_se.clone(), tgt_se.clone()))
        samples, rate = soundfile.read(audio_src_path)
        assert output_path is None
        return np.full(round(len(samples) * RATE / rate), float(tgt_se.mean()) + 1e-3 * float(torch.rand(1)))


def vae():
    torch.manual_seed(2)
    network = SpeakerVae(SpeakerVaeConfig(dim=256, latent=4, widths=(16,))).eval()
    network.radius, network.clamp = torch.tensor(2.0), torch.tensor(3.0)
    return network


def system():
    tool = FakeTool()
    return tool, ConvertedSpeech(OpenVoice(tool, VOICES), Protector(vae(), SpeakerGaussian(1.0, 2.0, 4), 256))


def speech(num=16080):
    return (0.1 * np.sin(np.arange(num) * 0.05)).astype(np.float32)


def test_the_converter_is_told_a_public_voice_and_the_released_one():
    tool, made = system()
    public = made.converter.public_voice
    np.testing.assert_allclose(public[:2], np.array([3.0, 5.0]) / np.hypot(3.0, 5.0), rtol=1e-6)
    out = made.anonymize(speech(), made.pool.choose(), KeyedNoise(1, "u", "release"))
    ((source, target),) = tool.told
    np.testing.assert_allclose(source.flatten(), 4.0 * public, atol=1e-5)
    assert source.shape == target.shape == (1, 256, 1)
    assert float(torch.linalg.vector_norm(target)) == pytest.approx(4.0, rel=1e-5)
    assert out.samples.shape == (160 * out.num_frames,) and out.num_frames == 101
    assert np.isfinite(out.samples).all() and np.abs(out.samples).max() <= 1.0


def test_the_clean_embedding_reaches_the_converter_on_no_path(monkeypatch):
    """It is NaN after the mechanism: what is made is the same, bit by bit; before it, nothing is drawn."""
    _, plain = system()
    expected = plain.anonymize(speech(), None, KeyedNoise(1, "u", "release")).samples
    tool, spoilt = system()
    release = SpeakerGaussian.release

    def spoil(self, z, noise=None):
        released = release(self, z, noise)
        tool.clean.fill_(float("nan"))
        return released

    monkeypatch.setattr(SpeakerGaussian, "release", spoil)
    made = spoilt.anonymize(speech(), None, KeyedNoise(1, "u", "release"))
    assert torch.isnan(tool.clean).all()
    np.testing.assert_array_equal(made.samples, expected)
    monkeypatch.setattr(FakeTool, "extract_se", lambda self, files: torch.full((1, 256, 1), float("nan")))
    with pytest.raises(PrivacyError, match="NaN"):
        spoilt.anonymize(speech(), None)
    assert len(tool.told) == 1


def test_the_claim_is_given_content_and_prosody_and_is_what_was_promised():
    _, made = system()
    out = made.anonymize(speech(), None)
    assert out.guarantee.unit == "speaker" and out.guarantee.conditional_on == ("content and prosody",)
    assert out.guarantee == out.guarantee_speaker == promised(made, out.num_frames)
    assert out.facts["mu"] == 1.0 and out.facts["mu_as_published"] == pytest.approx(0.5)


def test_it_is_put_together_from_the_options(tmp_path, monkeypatch):
    monkeypatch.setattr(home, "load_converter", lambda name: OpenVoice(FakeTool(), VOICES))
    save_network(vae(), tmp_path / "speaker.safetensors", {})
    made = load(Options("voxlet", noise_level=1.0, voice_model=str(tmp_path), converter="openvoice"))
    assert made.mechanism.mu == 1.0 and made.mechanism.radius == 2.0
    assert Options("voxlet", converter="openvoice").public()["converter"] == "openvoice"
    with pytest.raises(UsageError, match="trained on its own embeddings"):
        load(Options("voxlet", noise_level=1.0, converter="openvoice"))
    small = SpeakerVae(SpeakerVaeConfig(dim=192, latent=4, widths=(16,)))
    small.radius = torch.tensor(1.0)
    save_network(small, tmp_path / "speaker.safetensors", {})
    with pytest.raises(UsageError, match="gives 256 entries, the voice model takes 192"):
        load(Options("voxlet", noise_level=1.0, voice_model=str(tmp_path), converter="openvoice"))


def test_misuse_and_what_is_not_installed(tmp_path, monkeypatch):
    start = ["--system", "voxlet", "--mu", "1", "--converter", "openvoice"]
    with pytest.raises(UsageError, match="needs --voice-model"):
        main([*start, "in", "out"])
    with pytest.raises(UsageError, match="without noise"):
        main([*start, "--voice-model", "m", "--epsilon-f0", "1", "--epsilon-bn", "1", "in", "out"])
    with pytest.raises(UsageError, match="are of the system voxlet, not of dp"):
        main(["--converter", "openvoice", "in", "out"])
    assert options_of(parse_args([*start, "--voice-model", "m", "in", "out"])).converter == "openvoice"
    with pytest.raises(UsageError, match="unknown --converter"):
        home.load_converter("other")
    monkeypatch.setenv("DPANON_OPENVOICE", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="tools/install_openvoice.sh"):
        load_extractor("openvoice")
    for voices in (np.zeros((2, 256)), np.full((1, 256), np.nan), np.zeros((0, 256))):
        with pytest.raises(UsageError, match="public voices"):
            OpenVoice(FakeTool(), voices)


def test_noise_that_promises_nothing_is_refused():
    with pytest.raises(ValueError, match="Gaussian speaker mechanism"):
        ConvertedSpeech(OpenVoice(FakeTool(), VOICES), Protector(vae(), None, 256))
    assert isinstance(speaker_mechanism(1.0, None, None, 2.0, 4), SpeakerGaussian)
