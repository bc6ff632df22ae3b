"""steps/anonymize.sh with small random networks: same bytes for any --nj, and never a second release by itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from dpanon.anonymize.pretrained import save_network
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise
from dpanon.synth.targets import Target, TargetPool

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow


def write_models(path):
    path.mkdir()
    torch.manual_seed(0)
    extractor = Bottleneck(BottleneckConfig(hidden=32, factor=8, content=16)).eval()
    synth = HarmonicNoise(HarmonicConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)).eval()
    for name, network in (("bn", extractor), ("synth", synth)):
        save_network(network, path / f"{name}_eps10.safetensors", {})
    save_network(PitchAutoencoder(PitchAutoencoderConfig()), path / "f0_eps10.safetensors", {})
    voices = [Target(f"f0{i}a", "f", np.full(192, 192**-0.5, np.float32), 5.0 + i / 9, 0.2) for i in range(4)]
    TargetPool(voices).save(path / "targets.safetensors")


@pytest.fixture
def place(tmp_path):
    write_models(tmp_path / "models")
    utts = [f"spk-{i}" for i in range(4)]
    for i, utt in enumerate(utts):
        wave = np.sin(np.arange(4800 + 800 * i) * 0.05 * (1 + i / 9)) * 0.2
        soundfile.write(tmp_path / f"{utt}.wav", wave, 16000)
    tables = {
        "wav.scp": {utt: tmp_path / f"{utt}.wav" for utt in utts},
        "utt2spk": dict.fromkeys(utts, "spk"),
        "utt2num_samples": {utt: 4800 + 800 * i for i, utt in enumerate(utts)},
    }
    write_data_dir(tmp_path / "data" / "test", tables)
    for name in ("steps", "utils"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def step(place, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    command = ["steps/anonymize.sh", "--models", "models", "--keyed-noise", "1", *arguments]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_step(place):
    data = place / "data"
    first = step(place, "--nj", "1", "data/test", "data/one")
    assert first.returncode == 0, first.stderr
    assert step(place, "--nj", "3", "data/test", "data/three").returncode == 0
    assert step(place, "--nj", "1", "--num-parts", "2", "data/test", "data/parts").returncode == 0
    assert len(list((place / "exp" / "anonymize" / "parts").glob("part.?.log"))) == 2
    made = content(data / "one")
    assert made == content(data / "three") == content(data / "parts") and len(DataDir.read(data / "one")) == 4
    for name in ("wav.scp", "utt2spk", "privacy.json", "privacy.jsonl", "wav/spk-3.wav"):
        assert name in made

    again = step(place, "--nj", "2", "data/test", "data/one")
    assert again.returncode == 0 and "done before" in again.stdout
    other = step(place, "--epsilon-f0", "1", "data/test", "data/one")
    assert other.returncode == 3 and "options was" in other.stderr
    assert content(data / "one") == made

    stamp = place / "exp" / "anonymize" / "one" / "stamp.json"
    stamp.unlink()  # as if it had been killed before its last line
    assert step(place, "data/test", "data/one").returncode == 0 and stamp.exists()
    assert content(data / "one") == made

    shutil.rmtree(data / "one")
    gone = step(place, "data/test", "data/one")
    assert gone.returncode == 3 and "is gone" in gone.stderr


def test_refused_utterances_stop_the_recipe_unless_allowed(place):
    (place / "spk-2.wav").write_bytes(b"")
    stopped = step(place, "--nj", "1", "data/test", "data/one")
    assert stopped.returncode == 1 and "refused: " in stopped.stderr
    made = content(place / "data" / "one")
    allowed = step(place, "--allow-refused", "true", "data/test", "data/one")
    assert allowed.returncode == 0, allowed.stderr
    assert content(place / "data" / "one") == made and len(DataDir.read(place / "data" / "one")) == 3
