"""dpanon protect-embeddings on what the extractors give, 192 and 256 entries, by models of both kinds."""

import json

import numpy as np
import pytest

from dpanon.cli import extract_xvector, train_gender, train_speaker
from dpanon.cli.protect_embeddings import main
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir
from dpanon.data.embeddings import read_set
from dpanon.features.xvector import load_extractor

FEW = ["loop.steps=4", "loop.warmup=1", "batch=4"]


@pytest.fixture(scope="module")
def voices(tmp_path_factory):
    """Eight hums of four people: two high voices, two low ones."""
    folder = tmp_path_factory.mktemp("voices")
    tables = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples")}
    t = np.arange(12000) / 16000
    for number, (speaker, f0) in enumerate((("f1", 210.0), ("f2", 240.0), ("m1", 100.0), ("m2", 125.0)) * 2):
        utt = f"{speaker}-{number}"
        wave = sum(np.sin(2 * np.pi * k * f0 * (1 + 0.02 * np.sin(9 * t + number)) * t) / k for k in range(1, 9))
        write_wav(folder / f"{utt}.wav", (0.05 * wave).astype(np.float32))
        tables["wav.scp"][utt], tables["utt2spk"][utt] = str(folder / f"{utt}.wav"), speaker
        tables["utt2num_samples"][utt] = "12000"
    return folder, tables | {"spk2gender": {"f1": "f", "f2": "f", "m1": "m", "m2": "m"}}


@pytest.fixture(scope="module", params=["campplus", "ge2e"])
def embedded(request, voices):
    folder, tables = voices
    data = write_data_dir(folder / request.param, tables)
    extract_xvector.main(["--extractor", request.param, str(data.path)])
    return data.path, load_extractor(request.param).dim


@pytest.mark.parametrize(("kind", "noise"), [("gender", ["--epsilon", "1"]), ("speaker", ["--mu", "1"])])
def test_both_kinds_of_models_protect_both_kinds_of_embeddings(embedded, tmp_path, capsys, kind, noise):
    data, dim = embedded
    program = {"gender": train_gender, "speaker": train_speaker}[kind]
    wanted = [*FEW, f"model.dim={dim}", *(["epsilon=15"] if kind == "gender" else [])]
    program.main([*(word for value in wanted for word in ("--set", value)), str(data), str(tmp_path / "model")])
    main(["--model", str(tmp_path / "model"), *noise, str(data), str(tmp_path / "out")])
    clean, shown = read_set(data)[1], read_set(tmp_path / "out")[1]
    assert clean.shape == shown.shape == (8, dim)
    np.testing.assert_allclose(np.linalg.norm(shown, axis=1), 1.0, atol=1e-5)
    said = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert said["guarantee"]["kind"] != "none" and said["unit"] == "utterance" and said["releasable"] is True
    assert said["eer_floor"] > 0.25 and f"EER floor {100 * said['eer_floor']:.1f} %" in capsys.readouterr().out
    assert not (tmp_path / "out" / "wav.scp").exists()  # labels and vectors, no recordings and no paths
