"""What a set promises is read from its own files, and the weakest utterance decides."""

import json

import pytest

from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import Claim, broken_assumption, floor_text, read_claim, voice_facts
from dpanon.evaluate.metrics import read_metrics, write_metrics


def write_claim(path, rows, **details):
    path.mkdir(exist_ok=True)
    (path / "privacy.json").write_text(json.dumps({"system": "dp"} | details))
    (path / "privacy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(utt, floor, whole=100.0):
    return {"utt": utt, "epsilon_frame": 1.0, "epsilon_utterance": whole, "eer_floor": floor}


def test_the_smallest_floor_of_the_asked_utterances_counts(tmp_path):
    path = write_claim(tmp_path, [row("a", 0.3, 10), row("b", 0.1, 20), row("c", 0.01, 40)])
    claim = read_claim(path, ["a", "b"])
    assert (claim.system, claim.eer_floor, claim.epsilon_frame, claim.epsilon_utterance) == ("dp", 0.1, 1.0, 15.0)


def test_one_row_without_a_floor_leaves_none(tmp_path):
    path = write_claim(tmp_path, [row("a", 0.3), row("b", None, None)])
    claim = read_claim(path, ["a", "b"])
    assert claim.eer_floor is None and claim.epsilon_utterance is None


def test_an_utterance_without_a_row_is_an_error(tmp_path):
    with pytest.raises(EvaluationError, match="1 of 2 utterances have no row"):
        read_claim(write_claim(tmp_path, [row("a", 0.3)]), ["a", "b"])


def test_clear_speech_has_to_be_asked_for(tmp_path):
    with pytest.raises(UsageError, match="--baseline true"):
        read_claim(tmp_path, ["a"])
    assert read_claim(tmp_path, ["a"], baseline=True).eer_floor is None


@pytest.mark.parametrize("text", ["{", "[]", '{"no": 1}'])
def test_broken_rows_are_named(tmp_path, text):
    path = write_claim(tmp_path, [row("a", 0.3)])
    (path / "privacy.jsonl").write_text(text + "\n")
    with pytest.raises(EvaluationError, match="privacy.jsonl:1"):
        read_claim(path, ["a"])


def test_floor_in_words():
    assert [floor_text(f) for f in (None, 1e-9, 0.2689)] == ["no privacy claim", "vacuous", "26.9"]


def test_metrics_are_found_again_and_nan_becomes_null(tmp_path):
    write_metrics(tmp_path / "a" / "b", "asr", "dp", "test", {"wer": float("nan")})
    (tmp_path / "a" / "metrics.json").write_text('{"kind": "other"}')
    ((file, values),) = read_metrics(tmp_path)
    assert file.parent.name == "b" and values == {"kind": "asr", "system": "dp", "set": "test", "wer": None}
    with pytest.raises(EvaluationError, match="unknown kind"):
        write_metrics(tmp_path, "wer", "dp", "test", {})


def test_a_broken_floor_names_the_assumption_that_it_was_given_under():
    given = Claim("voxlet", None, None, 0.4, {}, ({"conditional_on": ["content and prosody", "the number of frames"]},))
    said = broken_assumption(given)
    assert "the floor holds given equal content and prosody" in said and "--epsilon-bn" in said and "--mu-f0" in said
    pitch_has_noise = Claim("voxlet", None, None, 0.4, {}, ({"conditional_on": ["content", "the number of frames"]},))
    said = broken_assumption(pitch_has_noise)
    assert "given equal content," in said and "--epsilon-bn" in said and "--mu-f0" not in said
    without = Claim("dp", None, None, 0.4, {}, ({"conditional_on": ["the number of frames"]},))
    assert "the guarantee is broken" in broken_assumption(without)
    assert voice_facts(Claim("dp", None, None, 0.4, {}, ({"mu": 2.0, "utt": "u"},))) == {"mu": 2.0}
    assert voice_facts(Claim("original", None, None, None, {})) == {}
