"""``dpanon evaluate`` on made tones with the stub extractor: figures, training speech, the floor, misuse."""

import json
import re

import pytest

from dpanon.cli import evaluate as cli
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError

QUICK = ["--wer", "false", "--quality", "false"]


@pytest.fixture
def pair(tmp_path, make_set, extractor, monkeypatch):
    monkeypatch.setattr("dpanon.cli.evaluate.compare_f0", lambda original, released: {"f0_correlation": None})
    make_set(tmp_path / "test", 4, 5, seed=1)
    anonymized = make_set(tmp_path / "test_dp", 4, 5, seed=2)
    (anonymized.path / "privacy.json").write_text(json.dumps({"system": "dp"}))

    def promise(floor):
        rows = [{"utt": u, "epsilon_frame": 1.0, "epsilon_utterance": 9.0, "eer_floor": floor} for u in anonymized.utts]
        (anonymized.path / "privacy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    promise(1e-6)
    return tmp_path, promise


def test_all_conditions_with_training_speech(pair, make_set, capsys):
    path, _ = pair
    make_set(path / "train", 4, 3, seed=3)
    options = ["--orig", str(path / "test"), "--anon", str(path / "test_dp"), "--train", str(path / "train")]
    cli.main([*options, *QUICK, "--json", str(path / "out.json")])
    out = capsys.readouterr().out
    assert [re.search(rf"EER % {c}, \S+ ", out) is not None for c in ("oo", "oa", "aa")] == [True] * 3
    assert all(name in out for name in ("linkability aa", "min Cllr aa", "TPR % at FPR 1 % aa", "ZEBRA bits aa"))
    assert "undefined" in out and "EER floor: vacuous" in out
    assert json.loads((path / "out.json").read_text())["f0 correlation"]["anonymized"] == "undefined"


def test_a_challenges_trials_have_their_enrolment_speech_elsewhere(pair, make_set, capsys):
    path, _ = pair
    for name in ("enrol", "enrol_dp"):
        make_set(path / name, 3, 2, seed=8)
    utts = [line.split()[0] for line in (path / "test" / "utt2spk").read_text().splitlines()]
    utts = [utt for utt in utts if int(utt[-1]) > 1]  # the enrolment speech has the others' names
    rows = [f"s{k} {utt} {'target' if utt.startswith(f's{k}') else 'nontarget'}\n" for k in range(3) for utt in utts]
    for name in ("test", "test_dp"):
        (path / name / "trials").write_text("".join(sorted(rows)))
    options = ["--orig", str(path / "test"), "--anon", str(path / "test_dp"), *QUICK]
    with pytest.raises(UsageError, match="give it with --enrol"):
        cli.main(options)
    cli.main([*options, "--enrol", str(path / "enrol"), str(path / "enrol_dp")])
    assert "EER % aa" in capsys.readouterr().out


def test_a_broken_promise_fails(pair):
    path, promise = pair
    promise(0.49)  # no error in 8 target trials refutes this much, and not 0.45
    with pytest.raises(EvaluationError, match="the guarantee is broken"):
        cli.main(["--orig", str(path / "test"), "--anon", str(path / "test_dp"), *QUICK])


def test_clear_speech_and_other_utterances(pair, make_set):
    path, _ = pair
    with pytest.raises(UsageError, match="--baseline true"):
        cli.main(["--orig", str(path / "test"), "--anon", str(path / "test"), *QUICK])
    make_set(path / "more", 4, 6)
    with pytest.raises(EvaluationError, match="4 utterances of"):
        cli.main(["--orig", str(path / "test"), "--anon", str(path / "more"), "--baseline", "true", *QUICK])
