"""A Lhotse CutSet made from a data directory. The data directory stays the truth; the cuts are for sampling batches."""

import os
from pathlib import Path

import soundfile
from lhotse import CutSet, MonoCut, Recording, SupervisionSegment
from lhotse.audio import AudioSource

from dpanon.data.audio import SAMPLE_RATE
from dpanon.data.data_dir import DataDir
from dpanon.errors import AudioError


def to_cuts(data: DataDir) -> CutSet:
    """One cut an utterance, with exactly ``utt2num_samples`` samples, its speaker, sex and text.

    Lhotse reads the files itself, so they must be mono at 16 kHz, as released and made sets are: it would
    take one channel where ``read_audio`` averages, and resample otherwise.
    """
    texts = data.table("text") if data.has("text") else {}
    return CutSet.from_cuts(_cut(data, utt, texts.get(utt)) for utt in data.utts)


def write_cuts(data: DataDir, path: str | Path) -> int:
    """Write ``to_cuts`` as .jsonl.gz; the file gets its name when it is complete."""
    path = Path(path)
    tmp = path.with_name(f".tmp{os.getpid()}.{path.name}")  # lhotse goes by the end of the name
    try:
        to_cuts(data).to_file(tmp)
        os.replace(tmp, path)
    finally:
        tmp.unlink(missing_ok=True)
    return len(data)


def _cut(data: DataDir, utt: str, text: str | None) -> MonoCut:
    path, samples = data.wav(utt), data.num_samples(utt)
    info = soundfile.info(path)
    if info.samplerate != SAMPLE_RATE or info.channels != 1:
        found = f"{info.channels} channels at {info.samplerate} Hz"
        raise AudioError(f"{path}: cuts are of mono files at {SAMPLE_RATE} Hz, found {found}")
    duration = samples / SAMPLE_RATE
    source = AudioSource(type="file", channels=[0], source=str(path))
    recording = Recording(utt, sources=[source], sampling_rate=SAMPLE_RATE, num_samples=samples, duration=duration)
    speaker = data.speaker(utt)
    supervision = SupervisionSegment(
        utt, utt, start=0.0, duration=duration, channel=0, text=text, speaker=speaker, gender=data.sex(speaker)
    )
    return MonoCut(utt, start=0.0, duration=duration, channel=0, recording=recording, supervisions=[supervision])
