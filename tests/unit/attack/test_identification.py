"""The attacker of P_ASI: tells speakers who can be told, nobody else, and says when it is a bad one."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

from dpanon.attack import released
from dpanon.attack.identification import IdentificationConfig, SpeakerNet, identify, split
from dpanon.attack.sanity import control_flags, flags, sanity, verification_flags
from dpanon.cli import plot_asi, report, run, score_asi
from dpanon.cli.export_models import load_bottleneck
from dpanon.config import load_config, save_config
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import read_audio
from dpanon.errors import ConfigError, UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.metrics import write_metrics
from dpanon.features.fbank import fbank
from dpanon.features.level import normalise_level
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.privacy import BottleneckFrames, KeyedNoise
from dpanon.train.bottleneck import TrainBottleneckConfig
from dpanon.train.loop import LoopConfig

CONFIG = IdentificationConfig(
    LoopConfig(steps=60, lr=0.02, warmup=2),
    channels=8, pooled=8, embedding=8, batch=16, patience=6, dropout=0.0, replicates=50,
)  # fmt: skip
NAMES = [f"s{i}" for i in range(6)]


def voices(size, seed=0, num=200):
    """One utterance per speaker, whose frames lie around a mean of its own."""
    rng = np.random.default_rng(seed)
    means = size * np.random.default_rng(9).normal(size=(len(NAMES), 5))
    return {f"{name}-u": (means[i] + rng.normal(size=(num, 5))).astype(np.float32) for i, name in enumerate(NAMES)}


def attack(release, out, **changes):
    speakers = {utt: utt.split("-")[0] for utt in release[0]}
    return identify(CONFIG if not changes else IdentificationConfig(**vars(CONFIG) | changes), release, speakers, out)


def test_speakers_who_differ_are_told_and_others_are_not(tmp_path):
    told = attack([voices(1.0)], tmp_path / "told")
    alike = attack([voices(0.0)], tmp_path / "alike")
    assert told["error"] <= 0.2 and told["num_speakers"] == told["num_test"] == 6
    assert alike["error"] >= 0.5 and alike["chance"] == pytest.approx(5 / 6)
    assert told["error_low"] <= told["error"] <= told["error_high"]


def test_training_ends_when_the_validation_part_gets_no_better(tmp_path):
    found = attack([voices(0.0)], tmp_path, loop=LoopConfig(steps=10_000, lr=0.02, warmup=2), patience=2)
    assert found["epochs"] == found["best_epoch"] + 2
    again = attack([voices(0.0)], tmp_path, loop=LoopConfig(steps=10_000, lr=0.02, warmup=2), patience=2)
    assert again["error"] == found["error"] and again["best_epoch"] == found["best_epoch"]  # taken from the checkpoint


def test_every_release_is_attacked_and_noise_costs_accuracy(tmp_path):
    frames = {utt: np.abs(x) for utt, x in voices(2.0).items()}

    def noised(number, epsilon):
        mechanism = BottleneckFrames(epsilon, 5)
        return {utt: mechanism.release(x, KeyedNoise(1, utt, f"{number}")).value for utt, x in frames.items()}

    little = attack([noised(k, 1000.0) for k in range(2)], tmp_path / "little")
    much = attack([noised(k, 0.05) for k in range(2)], tmp_path / "much")
    assert little["num_releases"] == 2
    assert little["error"] < 0.4 < much["error"]


def test_parts_are_in_the_order_of_time_and_apart():
    speakers = {"a-2": "a", "a-1": "a", "b-1": "b"}
    parts = split(speakers, {"a-1": 100, "a-2": 51, "b-1": 99}, 10)
    mine = {part: [piece for piece in pieces if piece.label == 0] for part, pieces in parts.items()}
    assert [len(mine[part]) for part in ("train", "valid", "test")] == [16, 2, 2]
    assert [(p.utt, p.start, p.stop) for p in mine["test"]] == [("a-2", 40, 45), ("a-2", 45, 51)]
    assert sum(piece.stop - piece.start for pieces in parts.values() for piece in pieces) == 250
    assert [len(parts[part]) for part in parts] == [24, 3, 3]


def test_the_network_reads_a_piece_alone():
    torch.manual_seed(0)
    net = SpeakerNet(CONFIG, 5, 3).eval()
    x = torch.randn(4, 30, 5)
    torch.testing.assert_close(net(x)[1:2], net(x[1:2]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ({"a-1": np.ones((9, 2)), "b-1": np.full((9, 2), np.nan)}, "b-1: expected finite"),
        ({"a-1": np.ones((9, 2)), "b-1": np.ones((9, 3))}, "b-1: expected finite"),
        ({"a-1": np.ones((9, 2)), "a-2": np.ones((9, 2))}, "1 speaker"),
        ({"a-1": np.ones((9, 2)), "b-1": np.ones((9, 2))}, "too short"),
    ],
)
def test_bad_features_are_refused(tmp_path, release, message):
    with pytest.raises(EvaluationError, match=message):
        attack([release], tmp_path)


def test_too_few_pieces_or_steps_are_refused(tmp_path):
    with pytest.raises(EvaluationError, match="2 pieces"):
        attack([voices(0.0)], tmp_path, pieces=2)
    with pytest.raises(ConfigError, match="less than one epoch"):
        attack([voices(0.0)], tmp_path / "b", loop=LoopConfig(steps=1))
    with pytest.raises(ValueError, match="patience"):
        IdentificationConfig(LoopConfig(1), patience=0)


def row(epsilon, error, width=0.02, **more):
    values = {"epsilon": epsilon, "error": error, "error_low": error - width, "error_high": error + width}
    return values | {"flags": [], "train_error": 0.1, "chance": 0.99, "best_epoch": 5} | more


def test_a_badly_trained_network_of_verification_is_flagged():
    assert verification_flags({"num_speakers": 251, "num_utterances": 502}) == [], "back-ends in closed form"
    assert verification_flags({"num_speakers": 251, "accuracy": 0.9}) == []
    assert "whose 30.0 %" in verification_flags({"num_speakers": 251, "accuracy": 0.3})[0]
    assert "by chance" in verification_flags({"num_speakers": 251, "accuracy": 0.006})[0]
    original = {"ecapa-trained+cosine": 0.31, "ge2e+cosine": 0.0}
    for name in ("ecapa-trained+cosine", "ecapa-tuned+cosine"):
        assert "31.0 % errors on original speech" in control_flags(name, original)[0]
    assert control_flags("ge2e+cosine", original) == control_flags("campplus+wccn", original) == []


def test_a_badly_trained_attacker_is_flagged():
    good = [row(np.inf, 0.2), row(100.0, 0.5), row(1.0, 0.95)]
    assert sanity(good) == []
    assert "without any noise" in sanity([row(np.inf, 0.95)])[0]
    assert "on the control: the feature tells little" in sanity([row(np.inf, 0.95)], [row(np.inf, 0.2)])[0]
    assert "badly trained" in sanity([row(np.inf, 0.95)], [row(np.inf, 0.92)])[0]
    assert "not known" in sanity(good[1:])[0]
    assert "epsilon 100 with more errors than 1" in sanity([row(np.inf, 0.2), row(100.0, 0.9), row(1.0, 0.6)])[0]
    assert sanity([row(np.inf, 0.2), row(100.0, 0.61), row(1.0, 0.6)]) == []  # within both intervals
    assert flags(row(1.0, 0.9), 1000, False) == []
    assert "no better than by chance" in flags(row(1.0, 0.99, train_error=0.988), 1000, False)[0]
    assert "never fell" in flags(row(1.0, 0.9, best_epoch=0), 1000, False)[0]
    assert "loop.steps" in flags(row(1.0, 0.9), 1000, True)[0]


class FakeSystem:
    """Content is the mean loudness of the recording, prosody its f0, times the noise's first draw."""

    class content:
        @staticmethod
        def release(samples, noise):
            level = noise.add_laplace(np.full((1, 3), np.abs(samples).mean()), 1e-3, 1.0).astype(np.float32)
            frames = torch.from_numpy(level).repeat(len(samples) // 160, 1)
            return (lambda left, right: frames[None, left:right]), None

    class prosody:
        @staticmethod
        def release(f0, noise):
            return type("Pitch", (), {"values": np.log(f0 + 1)})

    class extractor:
        class config:
            features = "fbank"


@pytest.fixture
def data(tmp_path, make_set):
    made = make_set(tmp_path / "data", num_speakers=3, per_speaker=1, seconds=1.0)
    with ArrayWriter(made.path / "f0.scp") as writer:
        for utt in made.utts:
            writer[utt] = np.full(100, 100.0 + 50 * made.utts.index(utt), np.float32)
    return made


def test_what_is_attacked_went_through_the_system(data):
    def noise(utt):
        return KeyedNoise(3, utt, "asi")

    first, again = (released.release_features("bn", FakeSystem(), data, noise) for _ in range(2))
    assert {x.shape for x in first.values()} == {(100, 3)} and len({float(x[0, 0]) for x in first.values()}) == 3
    assert all(np.array_equal(first[utt], again[utt]) for utt in data.utts)
    f0 = released.release_features("f0", FakeSystem(), data, noise)
    assert f0[data.utts[1]][0, 0] == pytest.approx(np.log(151), abs=0.01)  # of f0.scp
    assert released.release_features("fbank", None, data, noise)[data.utts[0]].shape == (100, 80)


@pytest.mark.parametrize(
    ("feature", "epsilon", "message"),
    [("bn", 0.0, "epsilon must be > 0"), ("bn", float("nan"), "must be > 0"), ("fbank", 1.0, "fbank with noise"),
     ("bn_tdnnf", 1.0, "give --extractor")],
)  # fmt: skip
def test_senseless_attacks_are_refused(feature, epsilon, message):
    with pytest.raises(UsageError, match=message):
        released.system_of(feature, epsilon)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A training directory of an extractor of epsilon 10, with the weights that it began with."""
    directory = tmp_path_factory.mktemp("exp") / "bn_tdnnf_eps10"
    model = BottleneckConfig(mean="public", bottleneck=8, hidden=8, factor=4, content=8, encoder_dilations=(1,))
    save_config(TrainBottleneckConfig(LoopConfig(1), epsilon=10.0, model=model), directory / "config.yaml")
    torch.manual_seed(0)
    state = {f"model.{name}": value for name, value in Bottleneck(model).state_dict().items()}
    torch.save({"state": {"both": state}}, directory / "checkpoint.pt")
    return directory


def test_a_trained_extractor_is_released_by_the_mechanism_of_its_epsilon(trained, data):
    def noise(utt):
        return KeyedNoise(3, utt, "asi")

    found = released.release_features("bn_tdnnf", score_asi.load_extracted(trained, 10.0), data, noise)
    network, utt = load_bottleneck(trained).eval(), data.utts[1]
    frames = network.encode(torch.from_numpy(fbank(normalise_level(read_audio(data.wav(utt)))))[None])[0].detach()
    wanted = BottleneckFrames(10.0, 8).release(frames.numpy(), noise(utt)).value
    np.testing.assert_allclose(found[utt], wanted, atol=1e-3)  # float16
    assert np.abs(found[utt] - frames.numpy()).mean() > 0.1  # scale 0.2
    save_config(
        dataclasses.replace(load_config(TrainBottleneckConfig, trained / "config.yaml"), epsilon=np.inf),
        trained.parent / "clear/config.yaml",
    )
    shutil.copy(trained / "checkpoint.pt", trained.parent / "clear")
    clear = score_asi.load_extracted(trained.parent / "clear", np.inf)
    plain = released.release_features("bn_tdnnf", clear, data, noise)[utt]
    np.testing.assert_allclose(plain, frames.numpy(), atol=1e-3)


def test_a_trained_extractor_is_attacked_from_the_command_line(trained, data, tmp_path):
    config = tmp_path / "asi.yaml"
    config.write_text("loop: {steps: 8, warmup: 1}\nchannels: 4\npooled: 4\nembedding: 4\nreplicates: 20\nbatch: 8\n")
    options = ["--config", str(config), "--feature", "bn_tdnnf", "--extractor", str(trained), "--keyed-noise", "1"]
    found = []
    for name in ("a", "b"):
        score_asi.main([*options, "--epsilon", "10", str(data.path), str(tmp_path / name)])
        found.append(json.loads((tmp_path / name / "metrics.json").read_text()))
    assert found[0]["feature"] == "bn_tdnnf" and found[0]["epsilon"] == 10.0
    assert found[0]["error"] == found[1]["error"]
    plot_asi.main([str(tmp_path / "a"), str(tmp_path / "results")])
    assert "bottleneck of a TDNN-F on log-mel" in (tmp_path / "results/identification.svg").read_text()


@pytest.mark.parametrize("command", [{}, {"epsilon": "1"}, {"feature": "bn"}, {"broken": True}])
def test_a_directory_that_is_not_of_this_extractor_is_one_line(trained, data, tmp_path, command, capsys):
    directory = tmp_path if not command else trained
    if "broken" in command:
        directory = shutil.copytree(trained, tmp_path / "broken")
        (directory / "checkpoint.pt").write_bytes(b"not weights")
    options = ["--feature", command.get("feature", "bn_tdnnf"), "--epsilon", command.get("epsilon", "10")]
    options += ["--set", "loop.steps=1", "--extractor", str(directory), str(data.path), str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        run(score_asi.main, options)
    said = capsys.readouterr().err.strip().splitlines()[-1]
    wanted = {"epsilon": "trained with epsilon 10", "feature": "--extractor is for", "broken": "no extractor of"}
    assert ended.value.code == 2 and said.startswith("error: ") and not (tmp_path / "out").exists()
    assert wanted.get(next(iter(command), ""), "no extractor of steps/train_bn.sh") in said


def test_from_attack_to_report(tmp_path, data, capsys, monkeypatch):
    monkeypatch.setattr(score_asi, "system_of", lambda feature, epsilon, models: FakeSystem())
    config = tmp_path / "asi.yaml"
    config.write_text("loop: {steps: 8, warmup: 1}\nchannels: 4\npooled: 4\nembedding: 4\nreplicates: 20\nbatch: 8\n")
    for epsilon in ("inf", "10"):
        options = ["--config", str(config), "--feature", "f0", "--epsilon", epsilon, "--keyed-noise", "1"]
        score_asi.main([*options, str(data.path), str(tmp_path / "exp/asi" / f"f0_eps{epsilon}")])
    metrics = json.loads((tmp_path / "exp/asi/f0_eps10/metrics.json").read_text())
    assert metrics["kind"] == "asi" and metrics["epsilon"] == 10.0 and 0 <= metrics["error"] <= 1
    plot_asi.main([str(tmp_path / "exp/asi"), str(tmp_path / "r/results")])
    assert "<svg" in (tmp_path / "r/results/identification.svg").read_text()
    assert "warning: " in capsys.readouterr().out  # eight steps make no attacker
    write_metrics(tmp_path / "exp/asr", "asr", "plain", "test", {"wer": 0.2})
    report.main([str(tmp_path / "exp"), str(tmp_path / "r/results"), "--players", "0"])
    page = (tmp_path / "r/RESULTS.md").read_text()
    assert "| f0 | no noise | utterance |" in page and "| f0 | 10 | utterance |" in page
    assert "![identification.svg](results/identification.svg)" in page
    assert not (tmp_path / "r/results/f0_eps10.json").exists()  # no system of its own
