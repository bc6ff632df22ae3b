"""The dry run: sizes are those of the networks, and every configuration of the recipe can be built."""

import shutil
from pathlib import Path

import pytest
import torch

from dpanon.cli import plan_anon
from dpanon.config import load_config
from dpanon.errors import ConfigError, MissingDependencyError
from dpanon.models.bottleneck import Bottleneck
from dpanon.synth import hifigan
from dpanon.synth.choose import make_synthesizer
from dpanon.train.bottleneck import TrainBottleneckConfig
from dpanon.train.footprint import FootprintConfig, disk, flops, networks
from dpanon.train.synth import TrainSynthConfig

CONF = Path(__file__).parents[3] / "egs/librispeech/anon/conf"


@pytest.mark.parametrize("scale", [".", "full"])
def test_the_recipe_can_be_built_at_either_scale(scale, capsys):
    plan_anon.main([str(CONF / scale)])
    printed = capsys.readouterr().out
    for name in (
        "extractor",
        "synthesizer",
        "intonation",
        "extractor of paper A",
        "f0 auto-encoder",
        "speaker classifier",
        "GiB  in all",
    ):
        assert name in printed


def test_parameters_are_those_of_the_network_that_is_trained():
    plan = load_config(FootprintConfig, CONF / "footprint.yaml")
    found = {network.name: network for network in networks(CONF, plan)}
    real = Bottleneck(load_config(TrainBottleneckConfig, CONF / "bn_start.yaml").model)
    assert found["bottleneck extractor"].parameters == sum(value.numel() for value in real.parameters())
    assert all(network.gpu_hours >= 0 for network in found.values())


def test_the_synthesizer_that_is_chosen_is_trained_behind_every_extractor():
    plan = load_config(FootprintConfig, CONF / "full/footprint.yaml")
    config = load_config(TrainSynthConfig, CONF / "full/synth_nsf.yaml")
    real = sum(value.numel() for value in make_synthesizer(config.network).parameters())
    (nsf,) = (network for network in networks(CONF / "full", plan, "nsf") if network.name == "synthesizer nsf")
    assert nsf.parameters == real and nsf.number == 2 and nsf.gpu_hours > 0


def test_hifigan_is_counted_if_speechbrain_is_there(monkeypatch, capsys):
    def missing():
        raise MissingDependencyError("the synthesizer hifigan needs SpeechBrain")

    monkeypatch.setattr(hifigan, "_speechbrain", missing)
    plan_anon.main([str(CONF)])
    printed = capsys.readouterr().out
    assert "synthesizer hifigan                not counted: SpeechBrain is not installed" in printed
    assert any(line.split()[:2] == ["synthesizer", "nsf"] and line.split()[3] == "0" for line in printed.splitlines())
    with pytest.raises(MissingDependencyError):
        plan_anon.main(["--synthesizer", "hifigan", str(CONF)])


def test_hifigan_has_the_discriminators_of_its_paper():
    try:
        import speechbrain.lobes.models.HifiGAN  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"optional: {error}")
    plan = load_config(FootprintConfig, CONF / "full/footprint.yaml")
    found = {network.name: network for network in networks(CONF / "full", plan, "hifigan")}
    assert found["synthesizer hifigan"].gpu_hours > found["synthesizer, with its extractor"].gpu_hours
    assert found["discriminators of hifigan in training"].parameters == pytest.approx(70.7e6, rel=0.01)


def test_the_extractor_of_the_paper_is_a_wide_tdnnf():
    model = load_config(TrainBottleneckConfig, CONF / "full/bn_start.yaml").model
    assert (len(model.encoder_dilations), model.hidden, model.factor, model.bottleneck) == (17, 1536, 160, 256)


def test_twice_the_speech_takes_twice_the_disk():
    small = FootprintConfig(extractor_hours=10, pool_hours=5, attack_hours=3, test_hours=1, attack_speakers=4)
    large = FootprintConfig(extractor_hours=20, pool_hours=10, attack_hours=6, test_hours=2, attack_speakers=4)
    assert sum(disk(large, []).values()) == pytest.approx(2 * sum(disk(small, []).values()))


def test_operations_are_counted():
    layer = torch.nn.Linear(30, 20, device="meta")
    assert flops(lambda: layer(torch.empty(7, 30, device="meta"))) == 2 * 7 * 30 * 20


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("synth.yaml", "joint: true", "joint: true\nmodel: {content: 9}", "gives 256"),
        ("synth_codes.yaml", "joint: true", "joint: true\nmodel: {channels: 9}", "other sizes"),
        ("synth_nsf.yaml", "nsf: {", "nsf: {acoustic: {content: 9}, ", "synth_nsf.yaml takes content of 9"),
        ("intonation.yaml", "crop: 600", "model: {content: 9}", "intonation.yaml takes content of 9"),
        ("footprint.yaml", "systems: 2", "systems: -2", "must be finite and > 0"),
        ("f0.yaml", "crop: 400", "corp: 400", "did you mean 'crop'"),
    ],
)
def test_what_does_not_fit_is_found_before_anything_is_trained(tmp_path, name, old, new, message):
    conf = tmp_path / "conf"
    shutil.copytree(CONF, conf)
    text = (conf / name).read_text()
    assert old in text
    (conf / name).write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        plan_anon.main([str(conf)])
