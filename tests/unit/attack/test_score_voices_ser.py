"""The steps' commands for voice distinctiveness and emotions on made tones, and their way into the report."""

import json

import pytest

from dpanon.cli import score_ser, score_voices
from dpanon.cli import train_asv as train_cli
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.report.collect import collect


def claim(data):
    rows = ({"utt": utt, "epsilon_frame": None, "epsilon_utterance": None, "eer_floor": None} for utt in data.utts)
    (data.path / "privacy.json").write_text(json.dumps({"system": "plain"}))
    (data.path / "privacy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


@pytest.fixture
def sets(tmp_path, make_set, extractor, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpanon.cli.score_voices.load_extractor", extractor)
    make_set(tmp_path / "train", seed=1)
    make_set(tmp_path / "test", 4, 4, seed=2)
    claim(make_set(tmp_path / "test_plain", 4, 4, seed=3))
    train_cli.main(["--baseline", "true", "train", "exp/asv_original"])
    return tmp_path


def test_voices_that_stay_are_found(sets, capsys):
    """The made release keeps every voice: nothing is de-identified, and voices stay distinct."""
    score_voices.main(["exp/asv_original", "test", "test_plain", "exp/voices/test_plain"])
    metrics = json.loads((sets / "exp/voices/test_plain/metrics.json").read_text())
    assert metrics["deid"] == pytest.approx(0, abs=0.05) and metrics["g_vd"] == pytest.approx(0, abs=1)
    assert metrics["deid_low"] <= metrics["deid_high"] and metrics["num_speakers"] == 4
    assert (sets / "exp/voices/test_plain/matrices.npz").is_file() and "DeID" in capsys.readouterr().out
    assert collect(sets / "exp")["plain"]["rows"][0]["voices"]["g_vd"] == metrics["g_vd"]


def test_clear_speech_and_strange_utterances_are_refused(sets, make_set):
    with pytest.raises(UsageError, match="--baseline true"):
        score_voices.main(["exp/asv_original", "test", "test", "exp/voices/test"])
    claim(make_set(sets / "more", 4, 5))
    for command in ([score_voices, "exp/asv_original"], [score_ser]):
        if command[0] is score_ser:
            labels(sets / "test")
        with pytest.raises(EvaluationError, match="are not in test"):
            command[0].main([*command[1:], "test", "more", "exp/more"])


def labels(path):
    """Every second utterance is angry; two folds of two speakers."""
    utts = [line.split()[0] for line in (path / "utt2spk").read_text().splitlines()]
    (path / "utt2emo").write_text("".join(f"{utt} {('ang', 'sad')[int(utt[-1]) % 2]}\n" for utt in utts))
    (path / "spk2fold").write_text("".join(f"s{k} fold{k % 2}\n" for k in range(4)))


def test_emotions_are_judged_with_the_labels_of_the_original(sets, capsys):
    labels(sets / "test")
    score_ser.main(["--baseline", "true", "test", "test", "exp/ser/test"])
    score_ser.main(["test", "test_plain", "exp/ser/test_plain"])
    for name, system in (("test", "original"), ("test_plain", "plain")):
        metrics = json.loads((sets / f"exp/ser/{name}/metrics.json").read_text())
        assert (metrics["system"], metrics["set"], metrics["num_folds"]) == (system, name, 2)
        assert 0 <= metrics["uar"] <= 1 and len(metrics["uar_folds"]) == 2 and "recall_ang" in metrics
        assert len((sets / f"exp/ser/{name}/predictions").read_text().splitlines()) == 16
    assert "UAR" in capsys.readouterr().out
    assert collect(sets / "exp")["plain"]["rows"][0]["ser"]["num_utterances"] == 16
