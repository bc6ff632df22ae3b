"""Every training runs on a made data directory, and changes what it should and nothing else."""

import dataclasses
import shutil

import numpy as np
import pytest
import torch

from dpanon.anonymize.pretrained import load_network
from dpanon.cli import export_models
from dpanon.cli.export_models import load_bottleneck, save_bottleneck
from dpanon.config import load_config, save_config
from dpanon.data.arrays import ArrayWriter, load_scp
from dpanon.data.data_dir import DataDir
from dpanon.errors import ConfigError
from dpanon.models.acoustic import AcousticConfig, LogMel
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.intonation import IntonationConfig
from dpanon.synth.choose import name_of
from dpanon.synth.harmonic import HarmonicConfig
from dpanon.synth.hifigan import HifiganConfig
from dpanon.synth.nsf import Nsf, NsfConfig
from dpanon.train.bottleneck import TrainBottleneckConfig, augment, blur, train_bottleneck
from dpanon.train.intonation import TrainIntonationConfig, train_intonation
from dpanon.train.loop import LoopConfig
from dpanon.train.pitch import TrainPitchConfig, train_pitch
from dpanon.train.synth import TrainSynthConfig, train_synth

SMALL = BottleneckConfig(hidden=16, factor=4, content=8, encoder_dilations=(1,), decoder_dilations=(1,))
LOOP = LoopConfig(steps=2, warmup=1)


def bottleneck_config(**changes) -> TrainBottleneckConfig:
    config = TrainBottleneckConfig(loop=LOOP, epsilon=10.0, model=SMALL, crop=100, batch=2, phone_weight=0.0)
    return dataclasses.replace(config, **changes)


@pytest.mark.parametrize("features", ["fbank", "whisper"])
def test_bottleneck_trains_on_either_front_end(data, tmp_path, features):
    config = bottleneck_config(model=dataclasses.replace(SMALL, features=features))
    figures = train_bottleneck(config, data, tmp_path)
    assert np.isfinite(figures["loss"]) and (tmp_path / "checkpoint.pt").exists()


def test_phone_weight_without_phones_trains_on_blanks_only(data, tmp_path):
    assert np.isfinite(train_bottleneck(bottleneck_config(phone_weight=1.0), data, tmp_path)["loss"])


def test_match_brings_the_content_of_two_extractors_together(data, tmp_path):
    torch.manual_seed(0)
    other = Bottleneck(SMALL).eval().requires_grad_(False)
    before = {name: value.clone() for name, value in other.state_dict().items()}
    loop = LoopConfig(steps=60, warmup=5, lr=3e-3)
    config = bottleneck_config(loop=loop, epsilon=1e4, match_weight=100.0)
    train_bottleneck(config, data, tmp_path, match=other)
    import json

    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    first = train_bottleneck(bottleneck_config(epsilon=1e4), data, tmp_path / "short", match=other)["match"]
    assert rows[-1]["match"] < 0.8 * first
    for name, value in other.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("features", ["fbank", "whisper"])
def test_synthesizer_trains_alone_or_with_its_extractor(data, tmp_path, joint, features):
    extractor = Bottleneck(dataclasses.replace(SMALL, features=features))
    before = {name: value.clone() for name, value in extractor.state_dict().items()}
    model = HarmonicConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
    config = TrainSynthConfig(loop=LOOP, model=model, crop=40, batch=2, joint=joint, adversarial_from=1)
    figures, same = train_synth(config, extractor, 10.0, data, tmp_path, None)
    assert same is extractor
    assert np.isfinite(figures["mel"]) and np.isfinite(figures["adversarial"])
    moved = any(not torch.equal(value, before[name]) for name, value in extractor.state_dict().items())
    assert moved == joint


ACOUSTIC = AcousticConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
VOCODERS = {
    "nsf": NsfConfig(ACOUSTIC, condition=8, condition_blocks=1, channels=4, blocks=1, layers=3),
    "hifigan": HifiganConfig(ACOUSTIC, channels=16, block_kernels=(3,)),
}


def vocoder_config(name, **changes) -> TrainSynthConfig:
    if name == "hifigan":
        try:
            import speechbrain.lobes.models.HifiGAN  # noqa: F401
        except (ImportError, OSError) as error:
            pytest.skip(f"optional: {error}")
    config = TrainSynthConfig(loop=LOOP, synthesizer=name, crop=40, batch=2, **{name: VOCODERS[name]})
    return dataclasses.replace(config, **changes)


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("name", VOCODERS)
def test_a_vocoder_learns_behind_its_acoustic_model_and_is_exported(data, tmp_path, name):
    extractor = Bottleneck(SMALL)
    before = weights(extractor)
    config = vocoder_config(name, adversarial_from=1, own_mel_from=1)
    figures, same = train_synth(config, extractor, 10.0, data, tmp_path, None)
    assert same is extractor and all(torch.equal(value, before[key]) for key, value in same.state_dict().items())
    assert all(np.isfinite(figures[key]) for key in ("mel", "acoustic", "adversarial"))
    save_config(config, tmp_path / "config.yaml")
    assert load_config(TrainSynthConfig, tmp_path / "config.yaml") == config
    (tmp_path / "figures.json").write_text("{}")
    export_models.main(["--synth", f"plain={tmp_path}", "--out", str(tmp_path / "models")])
    loaded = load_network("synth", tmp_path / "models" / "synth_plain.safetensors")
    assert name_of(loaded) == name and loaded.config == VOCODERS[name]
    trained = export_models.load_synth(tmp_path).eval()
    for a, b in zip(loaded.parameters(), trained.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)  # float16 on disk


@pytest.mark.parametrize("own", [False, True])
def test_the_wave_network_hears_the_mel_of_the_recording_or_of_the_acoustic_model(data, tmp_path, own, monkeypatch):
    heard, wave = [], Nsf.wave
    monkeypatch.setattr(Nsf, "wave", lambda net, mel, *rest: heard.append(mel) or wave(net, mel, *rest))
    monkeypatch.setattr(LogMel, "forward", lambda _, x: x.new_full((len(x), x.shape[1] // 160, 80), 5.0))
    config = vocoder_config("nsf", own_mel_from=0 if own else -1)
    train_synth(config, Bottleneck(SMALL), None, data, tmp_path, None)
    assert not heard[0].requires_grad and bool((heard[0] == 5.0).all()) != own


def test_a_stopped_vocoder_training_ends_at_the_same_weights(data, tmp_path, monkeypatch):
    import dpanon.train.synth as module

    config = vocoder_config("nsf", loop=LoopConfig(steps=3, warmup=1, save_minutes=0.0), adversarial_from=1)
    calls, update = [], module.update

    def stopping(*arguments):
        calls.append(1)
        if len(calls) == 8:  # of the third step the last: acoustic model and discriminators have moved
            raise KeyboardInterrupt
        return update(*arguments)

    extractor = Bottleneck(SMALL)
    train_synth(config, extractor, 10.0, data, tmp_path / "whole", None)
    monkeypatch.setattr(module, "update", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_synth(config, extractor, 10.0, data, tmp_path / "parts", None)
    train_synth(config, extractor, 10.0, data, tmp_path / "parts", None)
    whole, parts = (torch.load(tmp_path / name / "checkpoint.pt")["state"] for name in ("whole", "parts"))
    for part in ("model", "judges"):
        for key, value in whole[part].items():
            torch.testing.assert_close(parts[part][key], value, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joint": True}, "goes with harmonic only"),
        ({"codebooks": 1}, "its bn/"),
        ({"model": HarmonicConfig(channels=9)}, "model is of the synthesizer harmonic, not of nsf"),
        ({"synthesizer": "harmonic"}, "nsf is of the synthesizer nsf, not of harmonic"),
        ({"discriminators": "hifigan"}, "give adversarial_from"),
        ({"discriminators": "hifigan", "adversarial_from": 0, "crop": 19}, "at least 20"),
    ],
)
def test_what_a_synthesizer_cannot_do_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        vocoder_config("nsf", **changes)


def test_content_of_another_size_is_refused(data, tmp_path):
    with pytest.raises(ConfigError, match="gives content of 9, the synthesizer takes 8"):
        train_synth(
            vocoder_config("nsf"), Bottleneck(dataclasses.replace(SMALL, content=9)), None, data, tmp_path, None
        )


def test_another_synthesizer_is_no_beginning(data, tmp_path):
    train_synth(vocoder_config("nsf"), Bottleneck(SMALL), None, data, tmp_path / "nsf", None)
    model = HarmonicConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
    config = TrainSynthConfig(loop=LOOP, model=model, crop=40, batch=2)
    with pytest.raises(ConfigError, match="another synthesizer"):
        train_synth(config, Bottleneck(SMALL), None, data, tmp_path / "out", tmp_path / "nsf")


def test_an_extractor_is_given_codes_and_trained_with_them(data, tmp_path):
    extractor = Bottleneck(dataclasses.replace(SMALL, features="whisper"))
    model = HarmonicConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
    config = TrainSynthConfig(loop=LOOP, model=model, crop=40, batch=2, joint=True, codebooks=1, code_size=4)
    figures, made = train_synth(config, extractor, 10.0, data, tmp_path / "synth", None)
    assert np.isfinite(figures["codes"]) and made.width == 4 and extractor.codes is None
    assert made.codes.token_chain.std() > 0, "tokens were counted"
    save_config(bottleneck_config(), tmp_path / "bn" / "config.yaml")
    (tmp_path / "bn" / "figures.json").write_text("{}")
    save_bottleneck(made, tmp_path / "bn", tmp_path / "again")
    again = load_bottleneck(tmp_path / "again")
    assert again.config == made.config and torch.equal(again.codes.vectors, made.codes.vectors)


def test_a_jointly_trained_extractor_is_a_training_directory_again(data, tmp_path):
    config = bottleneck_config()
    save_config(config, tmp_path / "bn" / "config.yaml")
    train_bottleneck(config, data, tmp_path / "bn")
    (tmp_path / "bn" / "figures.json").write_text("{}")
    network = load_bottleneck(tmp_path / "bn")
    save_bottleneck(network, tmp_path / "bn", tmp_path / "again")
    for a, b in zip(network.parameters(), load_bottleneck(tmp_path / "again").parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_pitch_trains_and_measures_its_gains(data, tmp_path):
    config = TrainPitchConfig(loop=LOOP, epsilon=100.0, crop=100, batch=2)
    figures = train_pitch(config, data, tmp_path)
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    assert np.isfinite(figures["correlation"])
    assert len(saved["gains"]) == len(saved["gain_scales"]) and (saved["gains"] >= 0).all()
    assert saved["gain_scales"].tolist() == sorted(saved["gain_scales"].tolist())


@pytest.fixture
def sung(data, tmp_path) -> DataDir:
    """The data with an f0 that is the first of the extractor's features."""
    path = tmp_path / "sung"
    shutil.copytree(data.path, path)
    content = load_scp(path / "content.scp")
    (path / "f0.scp").unlink()
    with ArrayWriter(path / "f0.scp") as writer:
        for utt in data.utts:
            slow = np.convolve(content[utt][:, 0], np.ones(5) / 5, "same")
            writer[utt] = np.float32(120 * np.exp(0.3 * np.repeat(slow, 2)))
    return DataDir.read(path)


def test_intonation_is_learned_from_content_of_others(sung, tmp_path):
    torch.manual_seed(0)
    extractor = Bottleneck(dataclasses.replace(SMALL, features="whisper"))
    before = {name: value.clone() for name, value in extractor.state_dict().items()}

    def passes(features, mean, noise, scale):  # an extractor that hides nothing
        return features[..., :8] - mean[..., :8], torch.zeros(())

    extractor.transmit = passes
    sizes = IntonationConfig(content=8, hidden=16, dilations=(1,), dropout=0.0)
    config = TrainIntonationConfig(LoopConfig(steps=80, warmup=5, lr=1e-2), sizes, crop=100, batch=2)
    figures = train_intonation(config, extractor, None, sung, tmp_path / "made")
    assert figures["correlation"] > 0.75 and figures["held_out"] == 1
    saved = torch.load(tmp_path / "made" / "model.pt", weights_only=True)
    assert (saved["errors"] > 0).all() and saved["errors"].sum() < 0.5, "of a contour of unit energy"
    save_config(config, tmp_path / "made" / "config.yaml")
    (tmp_path / "made" / "figures.json").write_text("{}")
    export_models.main(["--intonation", f"plain={tmp_path / 'made'}", "--out", str(tmp_path / "models")])
    again = load_network("intonation", tmp_path / "models" / "intonation_plain.safetensors")
    torch.testing.assert_close(again.errors, saved["errors"])
    for name, value in extractor.state_dict().items():
        assert torch.equal(value, before[name])


def test_intonation_goes_through_every_noise(data, tmp_path):
    """Each step draws a factor; without noise, content is as it is."""
    extractor, seen = Bottleneck(dataclasses.replace(SMALL, features="whisper")), set()
    transmit = extractor.transmit
    extractor.transmit = lambda x, mean, noise, scale: seen.add(round(scale, 3)) or transmit(x, mean, noise, scale)
    config = TrainIntonationConfig(LOOP, IntonationConfig(content=8, hidden=8, dilations=(1,)), crop=100, batch=2)
    config = dataclasses.replace(config, loop=dataclasses.replace(LOOP, steps=30))
    assert np.isfinite(train_intonation(config, extractor, 10.0, data, tmp_path / "noisy")["error"])
    assert seen == {0.2, 0.667, 2.0}
    seen.clear()
    train_intonation(config, extractor, None, data, tmp_path / "clear")
    assert seen == {0.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": IntonationConfig(content=9)}, "gives content of 8, model.content is 9"),
        ({"crop": 150, "batch": 9}, "a batch takes 9"),
    ],
)
def test_intonation_that_cannot_be_trained_is_an_error(data, tmp_path, changes, message):
    config = TrainIntonationConfig(LOOP, IntonationConfig(content=8, hidden=8, dilations=(1,)), crop=100, batch=2)
    with pytest.raises(ConfigError, match=message):
        train_intonation(
            dataclasses.replace(config, **changes),
            Bottleneck(dataclasses.replace(SMALL, features="whisper")),
            None,
            data,
            tmp_path,
        )


def test_augmentation_moves_frames_and_mean_alike():
    x = torch.randn(3, 50, 80)
    mean = x.mean(1, keepdim=True)
    torch.manual_seed(1)
    y, moved = augment(x, mean, warp=0.2, tilt=0.0)
    torch.testing.assert_close(y.mean(1, keepdim=True), moved, atol=1e-5, rtol=1e-4)
    same, _ = augment(x, mean, warp=0.0, tilt=0.0)
    torch.testing.assert_close(same, x, atol=1e-2, rtol=1e-2)


def test_blur_drops_whole_channels_of_an_utterance():
    y = blur(torch.ones(2, 30, 400), 0.0)
    assert set(y.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(y.min(1).values, y.max(1).values)
