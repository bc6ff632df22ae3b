"""A small data directory of real files, in a folder whose name has a blank and an umlaut."""

import numpy as np
import pytest

from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "a b ü"
    path.mkdir()
    return path


@pytest.fixture
def tables(folder):
    """3 women, 3 men, 4 utterances each, of 1600, 1601, ... samples."""
    result = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text", "spk2gender")}
    (folder / "wav files").mkdir()
    rng = np.random.default_rng(0)
    for spk in ("f1", "f2", "f3", "m1", "m10", "m2"):
        result["spk2gender"][spk] = spk[0]
        for k in range(4):
            utt, length = f"{spk}-{k}", 1600 + len(result["utt2spk"])
            write_wav(folder / "wav files" / f"{utt}.wav", rng.normal(0, 0.1, length))
            result["wav.scp"][utt] = folder / "wav files" / f"{utt}.wav"
            result["utt2spk"][utt] = spk
            result["utt2num_samples"][utt] = length
            result["text"][utt] = f"sentence {k} of {spk}"
    return result


@pytest.fixture
def data(folder, tables):
    return write_data_dir(folder / "data", tables)
