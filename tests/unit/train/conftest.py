import numpy as np
import pytest
import soundfile

from dpanon.data.arrays import ArrayWriter
from dpanon.data.data_dir import DataDir, write_data_dir


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> DataDir:
    """Four made recordings of 2 s, with the tables that trainings read."""
    root = tmp_path_factory.mktemp("train")
    rng = np.random.default_rng(0)
    tables: dict = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples")}
    for i in range(4):
        utt = f"s{i}-u"
        t = np.arange(32000) / 16000
        wave = 0.1 * sum(np.sin(2 * np.pi * (100 + 20 * i) * k * t) / k for k in range(1, 9))
        soundfile.write(root / f"{utt}.wav", wave + 0.01 * rng.standard_normal(32000), 16000)
        tables["wav.scp"][utt] = str(root / f"{utt}.wav")
        tables["utt2spk"][utt] = f"s{i}"
        tables["utt2num_samples"][utt] = "32000"
    made = write_data_dir(root / "data", tables)
    shapes = {"content": (100, 384), "f0": (200,), "xvector": (192,)}
    for name, shape in shapes.items():
        with ArrayWriter(made.path / f"{name}.scp") as writer:
            for utt in made.utts:
                values = rng.standard_normal(shape)
                writer[utt] = np.float32(np.exp(values * 0.1) * 120) if name == "f0" else np.float32(values)
    return DataDir.read(made.path)
