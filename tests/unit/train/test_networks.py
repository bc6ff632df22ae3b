"""Every training runs on a made data directory, and changes what it should and nothing else."""

import dataclasses

import numpy as np
import pytest
import soundfile
import torch

from dpanon.cli.export_models import load_bottleneck, save_bottleneck
from dpanon.config import save_config
from dpanon.data.arrays import ArrayWriter
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.synth.harmonic import HarmonicConfig
from dpanon.train.bottleneck import TrainBottleneckConfig, augment, blur, train_bottleneck
from dpanon.train.loop import LoopConfig
from dpanon.train.pitch import TrainPitchConfig, train_pitch
from dpanon.train.synth import TrainSynthConfig, train_synth

SMALL = BottleneckConfig(hidden=16, factor=4, content=8, encoder_dilations=(1,), decoder_dilations=(1,))
LOOP = LoopConfig(steps=2, warmup=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> DataDir:
    root = tmp_path_factory.mktemp("train")
    rng = np.random.default_rng(0)
    tables: dict = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples")}
    for i in range(4):
        utt = f"s{i}-u"
        t = np.arange(32000) / 16000
        wave = 0.1 * sum(np.sin(2 * np.pi * (100 + 20 * i) * k * t) / k for k in range(1, 9))
        soundfile.write(root / f"{utt}.wav", wave + 0.01 * rng.standard_normal(32000), 16000)
        tables["wav.scp"][utt] = str(root / f"{utt}.wav")
        tables["utt2spk"][utt] = f"s{i}"
        tables["utt2num_samples"][utt] = "32000"
    made = write_data_dir(root / "data", tables)
    shapes = {"content": (100, 384), "f0": (200,), "xvector": (192,)}
    for name, shape in shapes.items():
        with ArrayWriter(made.path / f"{name}.scp") as writer:
            for utt in made.utts:
                values = rng.standard_normal(shape)
                writer[utt] = np.float32(np.exp(values * 0.1) * 120) if name == "f0" else np.float32(values)
    return DataDir.read(made.path)


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
