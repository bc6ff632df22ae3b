"""Words of another recogniser than Whisper, such as one trained on released speech, beside Whisper's."""

import json

import numpy as np
import pytest

from dpanon.cli import score_asr
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import UsageError
from dpanon.report import collect, tables


@pytest.fixture
def made(tmp_path):
    write_wav(tmp_path / "a.wav", np.zeros(16000, np.float32))
    tables = {"wav.scp": {"a": tmp_path / "a.wav"}, "utt2spk": {"a": "a"}, "utt2num_samples": {"a": 16000}}
    write_data_dir(tmp_path / "test", tables | {"text": {"a": "one two three four"}})
    (tmp_path / "words").write_text("a one two tree four\n")
    return ["score", "--baseline", "true", "--system", "dp"], [str(tmp_path / "test"), str(tmp_path / "words")]


def test_both_recognisers_have_their_figures(made, tmp_path):
    options, inputs = made
    score_asr.main([*options, *inputs, str(tmp_path / "exp/whisper")])
    (tmp_path / "words").write_text("a one two three four\n")
    score_asr.main([*options, "--recogniser", "trained on dp", *inputs, str(tmp_path / "exp/trained")])
    metrics = json.loads((tmp_path / "exp/trained/metrics.json").read_text())
    assert (metrics["kind"], metrics["wer"], metrics["u_asr"]) == ("asr_other", 0.0, 1.0)
    (row,) = collect.collect(tmp_path / "exp")["dp"]["rows"]
    assert row["asr"]["wer"] == 0.25 and row["asr_other"]["wer"] == 0.0
    assert "| test | trained on dp | 0.0 " in tables.extra_tables({"rows": [row]})[0]


def test_transcripts_of_nobody_are_refused(made, tmp_path):
    options, inputs = made
    with pytest.raises(UsageError, match="--recogniser NAME"):
        score_asr.main([*options, "--recogniser", "", *inputs, str(tmp_path / "exp")])
