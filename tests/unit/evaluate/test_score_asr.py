"""Words of another recogniser than Whisper, such as one trained on released speech, beside Whisper's."""

import json

import numpy as np
import pytest
import torch

from dpanon.cli import score_asr
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError, UsageError
from dpanon.evaluate import EvaluationError
from dpanon.models.transducer import Transducer, TransducerConfig, save_transducer
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
    assert row["asr"]["wer"] == 0.25 and [one["wer"] for one in row["asr_other"]] == [0.0]
    assert "| test | trained on dp | 0.0 " in tables.extra_tables({"rows": [row]})[0]


def test_transcripts_of_nobody_are_refused(made, tmp_path):
    options, inputs = made
    with pytest.raises(UsageError, match="--recogniser NAME"):
        score_asr.main([*options, "--recogniser", "", *inputs, str(tmp_path / "exp")])


def test_a_recogniser_trained_here_gives_words(made, tmp_path):
    torch.manual_seed(0)
    model = Transducer(TransducerConfig(4, "lstm", width=8, kernel=3, features="content", decoder="ctc"))
    with torch.no_grad():
        model.frames_out.bias[2] += 50.0  # it says one B, whatever it hears
    save_transducer(model, ("_", "B", "C"), tmp_path / "own" / "model.pt")
    options = ["transcribe", "--model", str(tmp_path / "own"), "--features", str(tmp_path / "test")]
    arguments = [*options, str(tmp_path / "test"), str(tmp_path / "hyp/text")]
    with pytest.raises(DataDirError, match="content"):
        score_asr.main(arguments)
    with ArrayWriter(tmp_path / "test" / "content.scp") as writer:
        writer["a"] = np.random.default_rng(0).standard_normal((50, 384)).astype(np.float32)
    score_asr.main(arguments)
    assert (tmp_path / "hyp/text").read_text() == "a B\n"


def test_recognisers_are_side_by_side_and_none_is_there_twice(made, tmp_path):
    options, inputs = made
    for name, out in (("of dp", "one"), ("of original speech", "two"), ("of dp", "three")):
        score_asr.main([*options, "--recogniser", name, *inputs, str(tmp_path / "exp" / out)])
        if out == "two":
            (row,) = collect.collect(tmp_path / "exp")["dp"]["rows"]
            assert [one["recogniser"] for one in row["asr_other"]] == ["of dp", "of original speech"]
            assert tables.extra_tables({"rows": [row]})[0].count("| test |") == 2
    with pytest.raises(EvaluationError, match="'of dp' on test"):
        collect.collect(tmp_path / "exp")
