"""A made test set whose audio is a speaker's number, and an extractor that reads it: no weights are needed."""

import zlib

import numpy as np
import pytest

from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir


class StubExtractor:
    """Reads a speaker's direction from the recording's loudest spectral line; counts its calls."""

    dim = 16
    calls = 0

    def __init__(self, name="campplus"):
        self.name = name

    def embed(self, samples):
        StubExtractor.calls += 1
        spectrum = np.abs(np.fft.rfft(samples, 1600))
        speaker = int(np.argmax(spectrum[10:]) + 10) // 10
        rng = np.random.default_rng(speaker)
        noise = np.random.default_rng(zlib.crc32(samples[:99].tobytes()))
        vector = rng.normal(size=self.dim) + 0.3 * noise.normal(size=self.dim)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def tone_set(path, num_speakers=6, per_speaker=6, seconds=1.0, first=0, seed=0, **tables):
    """Speaker k hums at (k + 1) * 100 Hz, in noise that differs by utterance."""
    rng = np.random.default_rng(seed)
    wavs = path.parent / f"{path.name}-wav"
    wavs.mkdir(parents=True)
    rows: dict = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples")}
    for k in range(num_speakers):
        for i in range(first, first + per_speaker):
            utt = f"s{k}-{i}"
            time = np.arange(int(seconds * 16000)) / 16000
            samples = 0.3 * np.sin(2 * np.pi * 100 * (k + 1) * time) + rng.normal(0, 0.01, len(time))
            write_wav(wavs / f"{utt}.wav", samples.astype(np.float32))
            rows["wav.scp"][utt] = wavs / f"{utt}.wav"
            rows["utt2spk"][utt] = f"s{k}"
            rows["utt2num_samples"][utt] = len(time)
    return write_data_dir(path, rows, **tables)


@pytest.fixture
def extractor(monkeypatch):
    StubExtractor.calls = 0
    monkeypatch.setattr("dpanon.attack.asv.load_extractor", StubExtractor)
    return StubExtractor


@pytest.fixture
def make_set():
    return tone_set
