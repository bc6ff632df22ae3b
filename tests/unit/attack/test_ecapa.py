"""ECAPA-TDNN as an attacker: a tiny one is trained, goes on after a stop, and attacks; what is missing is said."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dpanon.attack.asv import AsvConfig, score_asv
from dpanon.attack.ecapa import EcapaConfig, EcapaNet, TrainedEcapa, load_init, train_ecapa
from dpanon.attack.trials import make_trials
from dpanon.cli import train_ecapa as cli
from dpanon.config import load_config
from dpanon.errors import ConfigError, MissingDependencyError, UsageError
from dpanon.evaluate import EvaluationError
from dpanon.features.fbank import fbank
from dpanon.train.loop import LoopConfig, update


def tiny(steps=2, **more):
    sizes = {"channels": (8, 8, 8, 8, 24), "attention": 4, "dim": 6, "crop": 50, "batch": 4, "workers": 1}
    return EcapaConfig(LoopConfig(steps=steps, warmup=1, lr=1e-3), **(sizes | more))


@pytest.fixture
def speechbrain():
    try:
        import speechbrain.lobes.models.ECAPA_TDNN  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"optional: {error}")


def test_two_steps_then_an_attack(tmp_path, make_set, speechbrain):
    train = [make_set(tmp_path / f"train{k}", 3, 2, seconds=1.0, seed=k) for k in range(2)]
    config = tiny()
    figures = train_ecapa(config, train, tmp_path / "asv")
    assert 0 <= figures["accuracy"] <= 1 and np.isfinite(figures["loss"])
    record = json.loads((tmp_path / "asv" / "training.json").read_text())
    assert (record["num_speakers"], record["num_utterances"], record["frontend"]) == (3, 12, "fbank")
    assert load_config(EcapaConfig, tmp_path / "asv" / "ecapa.yaml") == config
    asv = load_config(AsvConfig, tmp_path / "asv" / "config.yaml")
    test = make_set(tmp_path / "test", 3, 4, seed=9)
    trials = make_trials(test, test, num_enrol=2)
    (attack,) = score_asv(test, test, trials, asv, tmp_path / "cache", tmp_path / "asv")
    assert attack.attacker == "ecapa-trained+cosine" and 0 <= attack.metrics["eer"] <= 1
    (cached,) = (tmp_path / "cache" / "test").iterdir()
    assert cached.name == TrainedEcapa(tmp_path / "asv").name  # other weights, another cache
    vector = TrainedEcapa(tmp_path / "asv").embed(np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32))
    assert vector.shape == (6,) and np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_features_that_are_kept_train_the_same_weights(tmp_path, make_set, speechbrain, monkeypatch):
    data, read = [make_set(tmp_path / "train", 3, 3)], []
    monkeypatch.setattr("dpanon.attack.ecapa.fbank", lambda samples: [read.append(1), fbank(samples)][1])
    for kept in (0, 100):
        read.clear()
        train_ecapa(tiny(12, kept=kept), data, tmp_path / str(kept))
        assert (len(read) == 12 * 4) == (kept == 0), "twelve batches of four"
    first, second = (TrainedEcapa(tmp_path / name).net.state_dict() for name in ("0", "100"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    with pytest.raises(ValueError, match="kept"):
        tiny(kept=-1)


def test_a_stopped_training_ends_at_the_same_weights(tmp_path, make_set, speechbrain, monkeypatch):
    data, calls = [make_set(tmp_path / "train", 3, 3)], []
    config = tiny(4)
    config = EcapaConfig(**{**vars(config), "loop": LoopConfig(steps=4, warmup=1, lr=1e-3, save_minutes=0.0)})
    train_ecapa(config, data, tmp_path / "whole")

    def stop_at_the_third(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr("dpanon.attack.ecapa.update", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        train_ecapa(config, data, tmp_path / "halves")
    assert torch.load(tmp_path / "halves" / "checkpoint.pt", weights_only=True)["step"] == 2
    train_ecapa(config, data, tmp_path / "halves")
    whole, halves = (TrainedEcapa(tmp_path / name).net.state_dict() for name in ("whole", "halves"))
    assert whole.keys() == halves.keys()
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


def test_speakers_count_and_clear_speech_has_to_be_asked_for(tmp_path, make_set):
    one = make_set(tmp_path / "one", 1, 4)
    with pytest.raises(EvaluationError, match="at least 2"):
        train_ecapa(tiny(), [one], tmp_path / "asv")
    with pytest.raises(UsageError, match="--baseline true"):
        cli.main(["--set", "loop.steps=2", str(one.path), str(tmp_path / "asv")])


def test_without_speechbrain_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "speechbrain", None)
    monkeypatch.setitem(sys.modules, "speechbrain.lobes.models.ECAPA_TDNN", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'dpanon\[speechbrain\]'"):
        EcapaNet(tiny())


def test_wavlm_without_a_hub_says_so(monkeypatch, speechbrain):
    monkeypatch.setitem(sys.modules, "speechbrain.integrations.huggingface.wavlm", None)
    with pytest.raises(MissingDependencyError, match="microsoft/wavlm-large from a model hub or its cache"):
        EcapaNet(tiny(frontend="wavlm"))


class FakeWavLM(torch.nn.Module):
    """SpeechBrain's interface to WavLM, over frames of 20 ms. (N, L) -> (N, T, 5)"""

    def __init__(self, source, save_path, freeze, output_norm):
        super().__init__()
        assert source == "microsoft/wavlm-large" and save_path and not freeze and output_norm
        self.model = torch.nn.Conv1d(1, 5, 320, 320)
        self.model.config = SimpleNamespace(hidden_size=5)

    def forward(self, x):
        return self.model(x[:, None]).transpose(1, 2)


@pytest.fixture
def hub(monkeypatch, speechbrain):
    monkeypatch.setitem(sys.modules, "speechbrain.integrations.huggingface.wavlm", SimpleNamespace(WavLM=FakeWavLM))


def test_wavlm_is_fine_tuned_with_its_ecapa(tmp_path, make_set, hub):
    """As 2026: an attacker trained on original speech goes on with released speech, frontend and all."""
    clear, released = (
        make_set(tmp_path / "clear", 3, 2, seconds=1.0),
        make_set(tmp_path / "released", 3, 2, seconds=1.0),
    )
    (released.path / "privacy.json").write_text("{}")
    config = tiny(frontend="wavlm")
    train_ecapa(config, [clear], tmp_path / "original")
    train_ecapa(config, [released], tmp_path / "tuned", init=tmp_path / "original")
    records = [json.loads((tmp_path / name / "training.json").read_text()) for name in ("original", "tuned")]
    assert [(r["released"], r["fine_tuned"], r["frontend"]) for r in records] == [
        (False, False, "wavlm"),
        (True, True, "wavlm"),
    ]
    before, after = (TrainedEcapa(tmp_path / name) for name in ("original", "tuned"))
    assert not torch.equal(before.net.wavlm.model.weight, after.net.wavlm.model.weight)
    assert before.name != after.name and after.name.startswith("ecapa-wavlm-")
    assert (before.attacker, after.attacker) == ("ecapa-wavlm-trained", "ecapa-wavlm-tuned")
    vector = after.embed(np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32))
    assert vector.shape == (6,) and np.isfinite(vector).all()


def test_weights_to_begin_with(tmp_path, speechbrain):
    net, other = EcapaNet(tiny()), EcapaNet(tiny())
    torch.save(other.ecapa.state_dict(), tmp_path / "embedding_model.ckpt")
    load_init(net, tmp_path / "embedding_model.ckpt")
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    (tmp_path / "noise.ckpt").write_bytes(b"noise")
    torch.save(EcapaNet(tiny(dim=7)).ecapa.state_dict(), tmp_path / "wide.ckpt")
    for name, said in (("none", "no such file"), ("noise.ckpt", "not weights"), ("wide.ckpt", "not weights")):
        with pytest.raises(EvaluationError, match=said):
            load_init(net, tmp_path / name)


@pytest.mark.parametrize("override", ["frontend=mfcc", "channels=[8, 8]"])
def test_config_mistakes(override):
    with pytest.raises(ConfigError):
        load_config(EcapaConfig, None, ["loop.steps=1", override])


def test_an_attack_needs_its_weights(tmp_path, make_set):
    test = make_set(tmp_path / "test", 2, 4)
    config = AsvConfig(("trained",), ("cosine",))
    for asv in (None, tmp_path):
        with pytest.raises(EvaluationError, match="steps/train_ecapa.sh"):
            score_asv(test, test, make_trials(test, test), config, tmp_path / "cache", asv)
