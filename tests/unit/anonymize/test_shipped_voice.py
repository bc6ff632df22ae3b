"""The shipped auto-encoder of x-vectors: system voxlet and protect-embeddings without a model of one's own."""

import json

import numpy as np
import soundfile
import torch
from safetensors import safe_open

from dpanon.anonymize.pretrained import SHIPPED, load_network
from dpanon.cli.anonymize import main
from dpanon.cli.protect_embeddings import find_model
from dpanon.data.audio import write_wav


def test_a_recording_gets_its_released_voice(tmp_path, capsys):
    t = np.arange(16000) / 16000
    wave = 0.1 * np.sign(np.sin(2 * np.pi * 130 * t)) * (1 + 0.5 * np.sin(12 * t))
    write_wav(tmp_path / "in.wav", wave.astype(np.float32))
    arguments = ["--system", "voxlet", "--mu", "1", str(tmp_path / "in.wav"), str(tmp_path / "out.wav")]
    assert main(arguments) == 0
    samples, rate = soundfile.read(tmp_path / "out.wav")
    assert rate == 16000 and len(samples) == 16000 and np.isfinite(samples).all() and np.abs(samples).max() > 0.01
    said = json.loads((tmp_path / "out.privacy.json").read_text())
    assert said["mu"] == 1.0 and said["conditional_on"] == ["content and prosody"] and said["releasable"] is True
    assert "voice_model" not in said["options"] and said["options"]["mu"] == 1.0
    assert "mu of the voice 1 (EER floor 30.9 %)" in capsys.readouterr().out


def test_the_file_is_small_and_says_what_it_is():
    file = SHIPPED / "speaker.safetensors"
    assert file.stat().st_size <= 1_500_000
    kind, network = find_model(SHIPPED)
    assert kind == "speaker" and network.config.dim == 192 and 0 < float(network.radius) < 100 and network.clamp > 0
    with safe_open(file, "pt") as stream:
        assert {"training", "figures"} <= set(stream.metadata())
    x = np.random.default_rng(1).normal(size=(2, 192)).astype(np.float32)
    again = load_network("speaker", file)
    with torch.inference_mode():
        one, two = (model.decode(model.encode(torch.from_numpy(x))) for model in (network, again))
    assert torch.equal(one, two) and torch.isfinite(one).all() and not torch.allclose(one[0], one[1])
