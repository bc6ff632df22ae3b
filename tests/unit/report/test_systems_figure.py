"""The figure of all systems: what is in results/*.json is in it, and what is missing does no harm."""

import json
import math

import pytest

from dpanon.cli.plot_systems import main
from dpanon.errors import UsageError
from dpanon.models.tokens import RATE
from dpanon.report.systems import collect, nats_per_second


def write(folder, system, **row):
    (folder / f"{system}.json").write_text(json.dumps({"system": system, "rows": [{"set": "test", **row}]}))


def results(folder):
    eer = {"eer": 0.4, "eer_low": 0.3, "eer_high": 0.5}
    asr = {"wer": 0.2, "wer_low": 0.1, "wer_high": 0.3}
    write(folder, "original", asr=asr)
    write(folder, "dp_f0eps10_bneps100", asv={"oa": eer, "aa": eer}, asr=asr, f0={"f0_correlation": 0.1})
    write(folder, "dp_f0eps10_bneps10", asv={"oa": eer}, asr=asr | {"wer": 0.3}, f0={"f0_correlation": 0.1})
    write(folder, "token_f0mu2_tokeneps8", asr=asr, f0={"f0_correlation": 0.3})
    (folder / "history.json").write_text("[]")
    return folder


def test_names_say_the_noise(tmp_path):
    rows = {row["name"]: row for row in collect(results(tmp_path))}
    assert set(rows) == {"original", "dp_f0eps10_bneps100", "dp_f0eps10_bneps10", "token_f0mu2_tokeneps8"}
    dp, token = rows["dp_f0eps10_bneps10"], rows["token_f0mu2_tokeneps8"]
    assert (dp["kind"], dp["noise_f0eps"], dp["noise_bneps"]) == ("dp", 10.0, 10.0)
    assert (token["kind"], token["noise_f0mu"], token["noise_tokeneps"]) == ("token", 2.0, 8.0)
    assert nats_per_second(dp) == 1000.0 and nats_per_second(token) == pytest.approx(8.0 * RATE)
    assert nats_per_second(rows["original"]) == math.inf


def test_another_draw_is_the_same_system(tmp_path):
    write(tmp_path, "dp_f0eps10_bneps10", asr={"wer": 0.2})
    write(tmp_path, "dp_f0eps10_bneps10_draw2", asr={"wer": 0.3})
    first, second = collect(tmp_path)
    assert first["kind"] == second["kind"] == "dp" and first["noise_bneps"] == second["noise_bneps"] == 10.0


def test_the_figure(tmp_path, capsys):
    main([str(results(tmp_path))])
    text = (tmp_path / "systems.svg").read_text()
    assert text.startswith("<?xml") and "4 systems" in capsys.readouterr().out
    main([str(tmp_path)])
    assert (tmp_path / "systems.svg").read_text() == text, "the same figures, the same file"
    for said in ("dp, oa", "dp, aa", "10, 100", "10, 10"):
        times = 2 if said == "10, 100" else 1  # a point of oa and one of aa
        assert text.count(f"<!-- {said} -->") == times, "a kind is named once, a point says its noise"


def test_no_results_are_an_error(tmp_path):
    with pytest.raises(UsageError, match="no figures of systems"):
        main([str(tmp_path)])
