"""Scores of released embeddings: EER, sex, and what is refused as beyond the promise."""

import json
import math

import numpy as np
import pytest

from dpanon.cli.plot_embeddings import collect
from dpanon.cli.plot_embeddings import main as plot
from dpanon.cli.score_embeddings import main
from dpanon.data.data_dir import write_data_dir
from dpanon.data.embeddings import write_set
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.report.collect import collect as results
from dpanon.report.tables import gender_table, results_markdown, sweep_table

FAST = ["--set", "replicates=50", "--set", "gender.replicates=20", "--set", "gender.epochs=40", "--set", "num_enrol=2"]


def make(folder, name, prefix, noise, claim=None):
    """40 speakers of 4 embeddings; the sex is on the first axis, the person on the others."""
    rng = np.random.default_rng(4 + len(prefix))
    utts = {f"{prefix}{i:02d}-{k}": f"{prefix}{i:02d}" for i in range(40) for k in range(4)}
    sexes = {spk: "fm"[int(spk[-2:]) % 2] for spk in set(utts.values())}
    data = write_data_dir(folder / f"labels_{name}", {"utt2spk": utts, "spk2gender": sexes}, audio=False)
    voices = {spk: rng.normal(size=8) for spk in sorted(sexes)}
    rows = []
    for utt in data.utts:
        vector = voices[utts[utt]] + noise * rng.normal(size=8)
        vector[0] = (3.0 if sexes[utts[utt]] == "f" else -3.0) + noise * rng.normal()
        rows.append(vector)

    def finish(out):
        if claim is not None:
            statement = {"system": "voice", "guarantee": {}, **claim}
            (out / "privacy.json").write_text(json.dumps(statement))
            (out / "privacy.jsonl").write_text("".join(json.dumps({"utt": u, **claim}) + "\n" for u in data.utts))

    write_set(data, np.stack(rows).astype(np.float32), folder / name, finish)
    return str(folder / name)


def test_a_clean_set_has_both_figures_and_no_claim(tmp_path, capsys):
    train, test = make(tmp_path, "train", "a", 0.1), make(tmp_path, "test", "bb", 0.1)
    main([*FAST, "--baseline", "true", train, train, test, test, str(tmp_path / "exp" / "original")])
    out = capsys.readouterr().out
    assert "oo, EER 0.0" in out and "no privacy claim" in out
    assert "AUC 0.9" in out or "AUC 1.0" in out
    found = results(tmp_path / "exp")["original"]["rows"][0]
    assert found["asv"]["oo"]["eer"] == 0.0
    assert {row["knowledge"] for row in found["gender"]["attackers"]} == {"ignorant", "informed"}
    with pytest.raises(UsageError, match="--baseline"):
        main([*FAST, train, train, test, test, str(tmp_path / "other")])


def test_what_is_beyond_the_promise_fails(tmp_path, capsys):
    claim = {"eer_floor": 0.3, "auc_ceiling": 0.7, "epsilon_utterance": 1.0, "epsilon_frame": None}
    train, released = make(tmp_path, "train", "a", 0.1), make(tmp_path, "train_r", "a", 0.1, claim)
    test, shown = make(tmp_path, "test", "bb", 0.1), make(tmp_path, "test_r", "bb", 0.1, claim)
    with pytest.raises(EvaluationError, match=r"EER of 0.0 %, the floor is 30.0 %.*AUC of .*, the ceiling is 0.700"):
        main([*FAST, train, released, test, shown, str(tmp_path / "exp")])
    assert (tmp_path / "exp" / "metrics.json").is_file()  # what was measured is kept


def test_a_speaker_who_trains_an_attacker_is_not_attacked(tmp_path):
    train = make(tmp_path, "train", "a", 0.1)
    with pytest.raises(EvaluationError, match="40 speakers are in"):
        main([*FAST, "--baseline", "true", train, train, train, train, str(tmp_path / "exp")])


def test_both_values_of_mu_and_the_best_attacker_are_in_every_table(tmp_path, capsys):
    claim = {"eer_floor": 0.1587, "eer_floor_mu": 0.1587, "auc_ceiling": 0.9214, "epsilon_utterance": None}
    claim |= {"mu": 2.0, "mu_as_published": 1.0, "eer_floor_as_published": 0.3085, "sigma": 3.0, "sigma_over_u": 1.0}
    train, released = make(tmp_path, "train", "a", 0.1), make(tmp_path, "train_r", "a", 9.0, claim)
    test, shown = make(tmp_path, "test", "bb", 0.1), make(tmp_path, "test_r", "bb", 9.0, claim)
    options = ["--gender", "false", "--facts", "noise_level=1"]
    main([*FAST, *options, train, released, test, shown, str(tmp_path / "exp" / "score")])
    printed = capsys.readouterr().out
    assert "mu 2, floor 15.9 %; as published mu 1, 30.9 %" in printed.replace("30.8 %", "30.9 %")
    text = results_markdown(list(results(tmp_path / "exp").values()), "voices", ["speaker.svg"])
    assert "| test | 1 | 2 | 15.9 | 1 | 30.9 | 15." in text.replace("| 30.8 |", "| 30.9 |")
    assert "| voice | 1 | 2 | 15.9 | 1 | 30.9 | 15." in text.replace("| 30.8 |", "| 30.9 |")
    assert "voice (no privacy claim)" not in text and "BROKEN" not in text
    assert "![speaker.svg](results/speaker.svg)" in text
    _, speakers = collect(tmp_path / "exp")
    assert speakers[0]["sigma_over_u"] == 1.0 and speakers[0]["simulated"] == pytest.approx(0.1587, abs=0.004)
    plot([str(tmp_path / "exp"), str(tmp_path / "results")])
    assert (tmp_path / "results" / "speaker.svg").read_text().lstrip().startswith("<?xml")
    assert not (tmp_path / "results" / "gender.svg").exists()


def test_a_broken_floor_is_said_in_the_table():
    asv = {"mu": 0.1, "eer": 0.2, "eer_low": 0.1, "eer_high": 0.3, "eer_floor_mu": 0.48, "sigma_over_u": 20.0}
    voices = {"g_vd": -7.0}
    made = [
        {"system": name, "rows": [{"set": "test", "asv": {"aa": asv | more}, "voices": voices, "eer_floor": 0.48}]}
        for name, more in (
            ("speech10", {"broken": "content"}),
            ("voice10", {}),
            ("voice2", {"sigma_over_u": 4.0}),
            ("voice0", {"mu": None, "sigma_over_u": None, "eer_floor_mu": None, "noise_level": 0.0}),
        )
    ]
    table, words = sweep_table(made)
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    assert [row[0] for row in rows] == ["speech10", "voice0", "voice2", "voice10"]
    assert rows[0][8] == "20.0 [10.0, 30.0] BROKEN" and rows[3][8] == "20.0 [10.0, 30.0]"
    assert rows[0][2:4] == ["0.1", "48.0"] and rows[1][2:4] == ["-", "-"] and rows[0][10] == "-7.0"
    assert words.startswith("BROKEN:") and "disentanglement" in words
    assert len(sweep_table(made[1:])) == 1 and sweep_table([]) == []


def test_curves_of_the_sex_hold_every_system(tmp_path, capsys):
    train, test = make(tmp_path, "train", "a", 0.1), make(tmp_path, "test", "bb", 0.1)
    for epsilon, claim in (
        ("inf", {"eer_floor": None}),
        ("35", {"eer_floor": 1e-9, "auc_ceiling": 1.0, "epsilon_utterance": 35.0}),
    ):
        released = make(tmp_path, f"train_{epsilon}", "a", 0.1, claim)
        shown = make(tmp_path, f"test_{epsilon}", "bb", 0.1, claim)
        options = ["--system", f"tr15_eps{epsilon}", "--facts", f"epsilon_train=15 epsilon_release={epsilon}"]
        main([*FAST, *options, train, released, test, shown, str(tmp_path / "exp" / epsilon)])
    rows, _ = collect(tmp_path / "exp")
    assert sorted(row["epsilon_release"] for row in rows) == [35.0, math.inf]
    assert all(min(row["auc"].values()) > 0.95 and row["eer"] == 0.0 for row in rows)
    (table,) = gender_table(list(results(tmp_path / "exp").values()))
    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    assert [line[:5] for line in lines] == [
        ["tr15_eps35", "15", "35", "1.000", "vacuous"],
        ["tr15_epsinf", "15", "inf", "-", "-"],
    ]
    assert all(float(cell) > 0.95 for line in lines for cell in line[5:9])
    plot([str(tmp_path / "exp"), str(tmp_path / "results")])
    text = (tmp_path / "results" / "gender.svg").read_text()
    plot([str(tmp_path / "exp"), str(tmp_path / "results")])
    assert (tmp_path / "results" / "gender.svg").read_text() == text
    with pytest.raises(UsageError, match="run stage 5 first"):
        plot([str(tmp_path / "none"), str(tmp_path / "results")])
