"""The attack end to end on made tones with a stub extractor: trials, cache, conditions, floor."""

import json

import numpy as np
import pytest

from dpanon.attack.asv import FIGURES, AsvConfig, below_floor, knowledge, read_scores, train_asv
from dpanon.attack.embeddings import embed_set, split
from dpanon.attack.trials import make_trials
from dpanon.cli import check_floors as check_cli
from dpanon.cli import score_asv as score_cli
from dpanon.cli import train_asv as train_cli
from dpanon.config import load_config
from dpanon.data.audio import write_wav
from dpanon.errors import ConfigError, UsageError
from dpanon.evaluate import EvaluationError


def claim(data, floor, system="dp", **more):
    row = {"epsilon_frame": 1.0, "epsilon_utterance": 100.0, "eer_floor": floor, "num_frames": 100} | more
    rows = [{"utt": utt} | row for utt in data.utts]
    (data.path / "privacy.json").write_text(json.dumps({"system": system}))
    (data.path / "privacy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


# trials


def test_one_set_is_split_into_enrolment_and_trials(tmp_path, make_set):
    data = make_set(tmp_path / "test", 3, 5)
    trials = make_trials(data, data, num_enrol=2)
    assert trials.models["s1"] == ("s1-0", "s1-1") and len(trials.trials) == 3 * 9
    assert sum(same for _, _, same in trials.trials) == 9
    assert not set(trials.trial_utts) & {utt for utts in trials.models.values() for utt in utts}


def test_lists_of_the_sets_are_used(tmp_path, make_set):
    rows = [("s0", "s0-3", True), ("s1", "s0-3", False)]
    data = make_set(tmp_path / "test", 2, 4, trials=rows, enrolls=["s0-0", "s1-1"])
    trials = make_trials(data, data)
    assert trials.models == {"s0": ("s0-0",), "s1": ("s1-1",)} and list(trials.trials) == rows


def test_two_sets_make_all_pairs(tmp_path, make_set):
    enrol, trial = make_set(tmp_path / "enrol", 3, 2), make_set(tmp_path / "trial", 3, 2, first=2)
    trials = make_trials(enrol, trial)
    assert len(trials.trials) == 3 * 6 and len(trials.models["s0"]) == 2


def test_pairs_leave_out_the_utterance_itself(tmp_path, make_set):
    data = make_set(tmp_path / "test", 2, 3)
    trials = make_trials(data, data, "pairs")
    assert len(trials.trials) == 6 * 5 and sum(same for _, _, same in trials.trials) == 6 * 2
    assert trials.speakers["s1-2"] == "s1"


def test_bad_trials_are_refused(tmp_path, make_set):
    one = make_set(tmp_path / "one", 1, 4)
    with pytest.raises(EvaluationError, match="both kinds"):
        make_trials(one, one)
    rows = [("s0", "s0-1", True), ("s0", "s1-1", False)]
    both = make_set(tmp_path / "both", 2, 2, trials=rows, enrolls=["s0-0", "s0-1"])
    with pytest.raises(EvaluationError, match="equal words"):
        make_trials(both, both)
    stranger = make_set(tmp_path / "stranger", 2, 2, trials=[("zz", "s0-1", False), *rows])
    with pytest.raises(EvaluationError, match=r"not in .*enrol \(e.g. \['zz'\]\)"):
        make_trials(make_set(tmp_path / "enrol", 2, 2, first=5), stranger)
    with pytest.raises(EvaluationError, match="unknown protocol"):
        make_trials(one, one, "all")


# embeddings


def test_cache_is_of_the_audio_not_of_the_name(tmp_path, make_set, extractor):
    data = make_set(tmp_path / "test", 2, 2)
    first = embed_set(data, extractor(), tmp_path / "cache")
    assert extractor.calls == 4 and first["s0-0"].shape == (1, 16)
    again = embed_set(data, extractor(), tmp_path / "cache", ["s0-0"])
    assert extractor.calls == 4
    np.testing.assert_array_equal(again["s0-0"], first["s0-0"])
    write_wav(data.wav("s0-0"), np.sin(np.arange(16000) * 0.3).astype(np.float32))  # released again, same path
    changed = embed_set(data, extractor(), tmp_path / "cache")
    assert extractor.calls == 5 and not np.allclose(changed["s0-0"], first["s0-0"])


def test_an_interrupted_cache_is_not_used(tmp_path, make_set, extractor):
    data = make_set(tmp_path / "test", 2, 2)
    embed_set(data, extractor(), tmp_path / "cache")
    (tmp_path / "cache" / "campplus" / "audio").unlink()
    embed_set(data, extractor(), tmp_path / "cache")
    assert extractor.calls == 8


def test_split_into_about_equal_pieces():
    pieces = split(np.arange(14 * 16000), 3.5)
    assert [len(piece) for piece in pieces] == [56000] * 4
    assert len(split(np.arange(4 * 16000), 3.5)) == 1 and len(split(np.arange(99 * 16000), 0)) == 1
    assert len(split(np.ones(10), 3.5)[0]) == 8000


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_bad_embedding_is_an_error_that_names_the_utterance(tmp_path, make_set, extractor, value):
    class Broken(extractor):
        def embed(self, samples):
            return np.full(16, value, np.float32)

    with pytest.raises(EvaluationError, match="s0-0: campplus gives a NaN or zero embedding"):
        embed_set(make_set(tmp_path / "test", 2, 2), Broken(), tmp_path / "cache")


# training and scoring


def test_several_releases_of_the_same_speech_train_together(tmp_path, make_set, extractor):
    sets = [make_set(tmp_path / f"train{i}", 4, 2, seconds=2.0, seed=i) for i in range(3)]
    config = AsvConfig(extractors=("campplus",), segment_seconds=1.0)
    numbers = train_asv(sets, tmp_path / "asv", config, tmp_path / "cache", extractor)
    assert numbers == {"num_speakers": 4, "num_utterances": 24, "num_embeddings": 48}
    assert load_config(AsvConfig, tmp_path / "asv" / "config.yaml") == config


@pytest.fixture
def sets(tmp_path, make_set, extractor, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_set(tmp_path / "train", seed=1)
    make_set(tmp_path / "test", seed=2)
    claim(make_set(tmp_path / "train_dp", seed=3), 0.0)
    claim(make_set(tmp_path / "test_dp", seed=4), 1e-9)
    train_cli.main(["--baseline", "true", "train", "exp/asv_orig"])
    train_cli.main(["train_dp", "exp/asv_dp"])
    return tmp_path


def test_conditions_and_files(sets, capsys):
    score_cli.main(["--baseline", "true", "exp/asv_orig", "test", "test", "exp/oo"])
    score_cli.main(["exp/asv_orig", "test", "test_dp", "exp/oa"])
    score_cli.main(["exp/asv_dp", "test_dp", "test_dp", "exp/aa"])
    out = capsys.readouterr().out
    assert "oo, EER" in out and "floor: no privacy claim" in out and "aa, EER" in out and "floor: vacuous" in out
    for condition, system in (("oo", "original"), ("oa", "dp"), ("aa", "dp")):
        metrics = json.loads((sets / "exp" / condition / "metrics.json").read_text())
        assert (metrics["condition"], metrics["system"], metrics["strongest"]) == (condition, system, True)
        assert metrics["eer"] < 0.05 and metrics["linkability"] > 0.8
        for name in ("eer", *FIGURES):
            assert metrics[f"{name}_low"] is not None and metrics[f"{name}_high"] is not None or name == "zebra_worst"
        assert metrics["num_targets"] == 18 and metrics["num_nontargets"] == 90
        attackers = sorted(path.parent.name for path in (sets / "exp" / condition).glob("*/metrics.json"))
        assert attackers == sorted(f"{x}+{b}" for x in ("campplus", "ge2e") for b in ("cosine", "wccn", "lda-plda"))
        target, nontarget = read_scores(sets / "exp" / condition / metrics["attacker"] / "scores")
        assert len(target) == 18 and len(nontarget) == 90 and target.mean() > nontarget.mean()


@pytest.mark.parametrize(
    ("condition", "attacker", "released", "name"),
    [
        ("oo", "campplus+wccn", False, "none"),
        ("oa", "campplus+cosine", True, "ignorant"),
        ("aa", "campplus+cosine", True, "lazy-informed"),  # the extractor has heard original speech only
        ("aa", "campplus+wccn", False, "lazy-informed"),
        ("aa", "campplus+wccn", True, "semi-informed"),
        ("aa", "trained+cosine", True, "semi-informed"),
        ("aa", "trained+cosine", False, "lazy-informed"),
    ],
)
def test_attackers_have_the_challenges_names(condition, attacker, released, name):
    assert knowledge(condition, attacker, {"released": released}) == name


def test_an_eer_below_the_floor_fails(sets):
    claim(make_test := score_cli.DataDir.read(sets / "test_dp"), 0.45)
    assert make_test.utts
    with pytest.raises(EvaluationError, match="below the promised floor of 0.450") as caught:
        score_cli.main(["exp/asv_dp", "test_dp", "test_dp", "exp/aa"])
    assert caught.value.exit_code == 1
    assert (sets / "exp" / "aa" / "metrics.json").is_file()  # the figures stay, for whoever looks into it


def test_a_sweep_is_measured_as_a_whole_and_fails_at_its_end(sets, capsys):
    """And says that content and prosody, which the floor takes as given, carry the speaker."""
    with pytest.raises(UsageError, match="run stage 5 first"):
        check_cli.main(["exp/none"])
    claim(score_cli.DataDir.read(sets / "test_dp"), 0.004)
    score_cli.main(["--check-floor", "false", "exp/asv_dp", "test_dp", "test_dp", "exp/vacuous"])
    check_cli.main(["exp"])
    assert "is below its floor" in capsys.readouterr().out
    claim(score_cli.DataDir.read(sets / "test_dp"), 0.45, conditional_on=["content and prosody"])
    score_cli.main(["--check-floor", "false", "exp/asv_dp", "test_dp", "test_dp", "exp/aa"])
    assert "BELOW THE FLOOR" in capsys.readouterr().out
    with pytest.raises(EvaluationError, match="test_dp: the promised floor does not hold") as caught:
        check_cli.main(["exp"])
    assert caught.value.exit_code == 1
    out = capsys.readouterr().out
    assert out.count("test_dp: EER 0.0 %") == 1 and "floor 45.0 %: the floor holds given equal content and" in out


def test_misuse(sets):
    with pytest.raises(UsageError, match="--baseline true"):
        score_cli.main(["exp/asv_orig", "test", "test", "exp/oo"])
    with pytest.raises(UsageError, match="not defined"):
        score_cli.main(["--baseline", "true", "exp/asv_orig", "test_dp", "test", "exp/ao"])
    with pytest.raises(UsageError, match="make oa"):
        score_cli.main(["--condition", "aa", "exp/asv_dp", "test", "test_dp", "exp/aa"])
    with pytest.raises(UsageError, match="--baseline true"):
        train_cli.main(["train", "exp/asv_x"])
    with pytest.raises(EvaluationError, match="train it with steps/train_asv.sh"):
        (sets / "exp/asv_dp/ge2e/wccn.safetensors").unlink()
        score_cli.main(["exp/asv_dp", "test_dp", "test_dp", "exp/aa"])


def test_floor_check_needs_both_bounds_below():
    assert below_floor({"eer": 0.1, "eer_high": 0.2, "eer_upper_bound": 0.25}, 0.3)
    assert not below_floor({"eer": 0.1, "eer_high": 0.2, "eer_upper_bound": 0.35}, 0.3)
    assert not below_floor({"eer": 0.1, "eer_high": 0.35, "eer_upper_bound": 0.2}, 0.3)
    assert not below_floor({"eer": 0.0, "eer_high": 0.0, "eer_upper_bound": 0.0}, None)
    assert not below_floor({"eer": 0.4, "eer_high": float("nan"), "eer_upper_bound": 0.1}, 0.3)


@pytest.mark.parametrize(
    "override", ["extractors=[]", "extractors=[xvector]", "backends=[plda]", "segment_seconds=0.1"]
)
def test_config_mistakes(override):
    with pytest.raises(ConfigError):
        load_config(AsvConfig, None, [override])
