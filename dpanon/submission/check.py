"""Is a released set what the organisers take? Tables, ids, audio, sizes, and nothing in it that leads to its source.

Every problem is found and named; nothing is mended. The originals that a release is compared with are the data
directories of stage 0.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from dpanon.data.data_dir import DataDir, differences, is_pipe
from dpanon.errors import DataDirError
from dpanon.evaluate.claims import read_claim
from dpanon.submission.layouts import EMOTION, Layout, VpcSet

RATE, SUBTYPE = 16000, "PCM_16"
SILENT_PEAK = 1e-3
MIN_RATIO, MAX_RATIO = 0.5, 2.0  # of an utterance's duration to its original's
OWN = ("privacy.json", "privacy.jsonl", "utt2num_samples")  # of a release, beside the organisers' tables
FROM_SOURCE = ("utt2dur", "utt2emo", "spk2fold")  # made anew, or labels that are the source's
COMPARED = 2 * RATE  # samples looked at when a release is held against its source


@dataclass(frozen=True)
class Summary:
    """What was found in one set: problems, and figures for people."""

    item: VpcSet
    problems: tuple[str, ...]
    num_utts: int = 0
    num_bytes: int = 0
    ratio: float = float("nan")  # of the durations of all utterances


def check_sets(data: Path, chosen: Layout, suffix: str, partial: bool = False, jobs: int = 2) -> list[Summary]:
    """Every set of the challenge, in order.

    Args:
        data: holds ``<set>`` and ``<set><suffix>``.
        partial: sets that have no original are left out, documented numbers and sizes are not asked for.
        jobs: recordings read at once.
    """
    found = []
    for item in chosen.sets:
        source, release = data / item.name, data / f"{item.name}{suffix}"
        optional = not item.required or (partial and item.role == EMOTION)
        if not source.is_dir() and optional and not release.exists():
            continue
        found.append(check_set(source, release, item, partial, jobs))
    return found


def check_set(source: Path, release: Path, item: VpcSet, partial: bool = False, jobs: int = 2) -> Summary:
    """All that is wrong with one released set."""
    for path in (source, release):
        if not path.is_dir():
            return Summary(item, (f"{path}: no such data directory",))
    problems = []
    for name in item.tables:
        wanted = source if name in ("utt2emo", "spk2fold") else release
        needed = name not in FROM_SOURCE[:1] and (name in ("wav.scp", "spk2utt") or (source / name).is_file())
        needed = needed or name in ("trials", "enrolls", "utt2emo", "spk2fold")
        if needed and not (wanted / name).is_file():
            problems.append(f"{wanted / name}: missing")
    if problems:
        return Summary(item, tuple(problems))
    try:
        original, released = DataDir.read(source, allow_pipes=True), DataDir.read(release, allow_pipes=True)
    except DataDirError as error:
        return Summary(item, (str(error),))
    if differ := differences(original.utts, released.utts):
        return Summary(item, (f"{release}: against the utterances of {source}, {differ}",))
    if item.num_utts and len(released) != item.num_utts and not partial:
        problems.append(f"{release}: has {len(released)} utterances, the challenge {item.num_utts}")
    if read_claim(release, (), baseline=True).details.get("releasable") is False:
        problems.append(f"{release / 'privacy.json'}: its noise can be repeated (--keyed-noise): it must not leave")
    problems += _tables_differ(original, released)
    problems += _names_a_source(original, release, item)
    sizes, ratios = [], []
    with ThreadPoolExecutor(jobs) as pool:
        own, was_at = released.table("wav.scp"), original.table("wav.scp")

        def look(utt: str) -> tuple[list[str], int, int, int]:
            return _check_audio(original, released, utt, own[utt], was_at[utt])

        for what, size, length, was in pool.map(look, released.utts):
            problems += what
            sizes.append(size)
            ratios.append((length, was))
    total = sum(sizes) + sum(file.stat().st_size for file in release.iterdir() if file.is_file())
    if item.min_bytes and total < item.min_bytes and not partial:
        problems.append(
            f"{release}: {total} bytes, and the organisers' upload takes {item.min_bytes} or more: speech was shortened"
        )
    lengths, originals = np.asarray(ratios, dtype=np.float64).sum(0) if ratios else (np.nan, np.nan)
    return Summary(item, tuple(problems), len(released), total, float(lengths / originals))


def _tables_differ(original: DataDir, released: DataDir) -> Iterator[str]:
    """A changed label or trial list would change the figures."""
    for name in ("utt2spk", "text", "spk2gender"):
        if original.has(name) and original.table(name) != released.table(name):
            yield f"{released.path / name}: differs from {original.path / name}"
    if original.has("trials") and original.trials() != released.trials():
        yield f"{released.path / 'trials'}: differs from {original.path / 'trials'}"
    if original.enrolls != released.enrolls:
        yield f"{released.path / 'enrolls'}: differs from {original.path / 'enrolls'}"


def _names_a_source(original: DataDir, release: Path, item: VpcSet) -> Iterator[str]:
    """Files that do not belong there, and texts with a path of the original speech in them."""
    known = {*item.tables, *OWN, "utt2emo", "spk2fold"}
    folders = {os.path.realpath(original.path), os.path.abspath(original.path)}
    for value in original.table("wav.scp").values():
        if not is_pipe(value):
            folders.add(os.path.dirname(os.path.abspath(original.path / value)))
            folders.add(os.path.dirname(os.path.realpath(original.path / value)))
    needles = sorted(folder.encode("utf-8", "surrogateescape") for folder in folders)
    for file in sorted(release.rglob("*")):
        inside = file.relative_to(release)
        if not file.is_file() and not file.is_symlink():
            continue
        if inside.parts[0] == "wav" and file.suffix == ".wav":
            continue
        if len(inside.parts) > 1 or file.name not in known:
            yield f"{file}: is no part of a submission, and may name a source; move it away"
            continue
        text = file.read_bytes()
        if hit := next((needle for needle in needles if needle in text), None):
            yield f"{file}: names a source: {hit.decode('utf-8', 'replace')}"


def _check_audio(
    original: DataDir, released: DataDir, utt: str, value: str, source: str
) -> tuple[list[str], int, int, int]:
    """(problems, bytes, samples, samples of the original) of one recording."""
    scp, was = f"{released.path}/wav.scp: {utt}", original.num_samples(utt)
    if is_pipe(value):
        return [f"{scp}: is a command, not a file"], 0, was, was
    file = released.path / value
    if not file.is_file():
        return [f"{scp}: no such file: {file}"], 0, was, was
    source_file = None if is_pipe(source) else original.path / source
    if source_file is not None and source_file.is_file() and os.path.samefile(file, source_file):
        return [f"{scp}: is the original recording: {file}"], 0, was, was
    if os.path.relpath(os.path.realpath(file), os.path.realpath(released.path / "wav")).startswith(".."):
        return [f"{scp}: lies outside of {released.path / 'wav'}: {file}"], 0, was, was
    size = file.stat().st_size
    try:
        what, samples = audio_problems(file)
    except (soundfile.LibsndfileError, OSError, ValueError) as error:
        return [f"{file}: cannot be read: {error}"], size, was, was
    if len(samples) and not MIN_RATIO <= len(samples) / was <= MAX_RATIO:
        what.append(f"{file}: {len(samples) / was:.2f} times as long as its original")
    if source_file is not None and source_file.is_file() and not what and _alike(samples, source_file):
        what.append(f"{file}: sounds like the original recording, sample by sample")
    return what, size, len(samples), was


def audio_problems(file: Path) -> tuple[list[str], np.ndarray]:
    """What is wrong with one recording by itself, and its samples."""
    info = soundfile.info(file)
    what = []
    if (info.format, info.subtype, info.samplerate, info.channels) != ("WAV", SUBTYPE, RATE, 1):
        what.append(
            f"{file}: {info.format} {info.subtype}, {info.samplerate} Hz, {info.channels} channels; "
            f"expected WAV {SUBTYPE}, {RATE} Hz, 1 channel"
        )
    samples, _ = soundfile.read(file, dtype="float32", always_2d=True)
    if not len(samples):
        return [*what, f"{file}: no samples"], samples[:, 0]
    if not np.isfinite(samples).all():
        what.append(f"{file}: NaN or infinite samples")
    elif np.abs(samples).max() < SILENT_PEAK:
        what.append(f"{file}: silence")
    with file.open("rb") as stream:
        if info.subtype == SUBTYPE and stream.read(40)[36:] != b"data":
            what.append(f"{file}: has more in it than samples (tags?), which may name a source")
    return what, samples[:, 0]


def _alike(samples: np.ndarray, source: Path) -> bool:
    """Whether the beginning is the source's, up to rounding."""
    try:
        with soundfile.SoundFile(source) as sound:
            if sound.samplerate != RATE:
                return False
            own = sound.read(COMPARED, dtype="float32", always_2d=True)[:, 0]
    except (soundfile.LibsndfileError, OSError):
        return False
    num = min(len(own), len(samples), COMPARED)
    return num > 0 and bool(np.abs(own[:num] - samples[:num]).max() <= 2 / 32768)
