"""Audio in: any common file -> float32 mono at 16 kHz. Audio out: PCM16 at 16 kHz with nothing but samples.

The stated policy, the same for every corpus and command:

* WAV, FLAC, OGG (Vorbis, Opus), MP3 and the other containers of ``FORMATS``, 8 to 192 kHz, any bit depth;
* channels are averaged; ``channel=0`` takes one, ``channel="error"`` refuses more than one;
* resampled by soxr (linear phase), in blocks, to ``round(samples * 16000 / rate)`` samples;
* the length is what decodes, never what a header says; a float file is taken as full scale 1.0;
* refused with one line: no samples, less than 0.1 s, NaN or infinite samples, damaged or unknown files.

Silence, DC, clipping and noise are readable: what to do with them is for later stages to say.
"""

import logging
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import soundfile
import soxr

from dpanon.errors import AudioError

SAMPLE_RATE = 16000
SHIFT = 160  # samples from one frame to the next: 10 ms
MIN_SECONDS = 0.1  # less holds no syllable, and no pitch or speaker estimate
MIN_RATE, MAX_RATE = 8000, 192000
MAX_PEAK = 100.0  # a float file beyond this holds integers, not samples of full scale 1.0
FORMATS = frozenset("WAV WAVEX RF64 W64 FLAC OGG MP3 AIFF AU NIST CAF".split())
MAX_PADDING = 4096  # bytes after the last chunk of a WAV that some writers leave
BLOCK = 1 << 18  # frames decoded at once: 6 channels of float32 are 6 MiB

Channel = str | int
log = logging.getLogger(__name__)


def num_frames(num_samples: int) -> int:
    """Frames of 10 ms in ``num_samples``: Kaldi's snip_edges=false. Every feature of an utterance has as many."""
    return (num_samples + SHIFT // 2) // SHIFT


def read_audio(path: str | Path, channel: Channel = "mix") -> np.ndarray:
    """Samples of one file: float32 ``[L]``, mono, 16 kHz. AudioError names the file and the reason."""
    return _resampled(path, str(path), channel)


def num_samples(path: str | Path, channel: Channel = "mix") -> int:
    """Length of ``read_audio(path)``, found by decoding: refuses what ``read_audio`` refuses."""
    length, rate = 0, SAMPLE_RATE
    for block_rate, block in _blocks(path, str(path), channel):
        length, rate = length + len(block), block_rate
    return _checked_length(length, rate, str(path))


def read_pipe(command: str, channel: Channel = "mix") -> np.ndarray:
    """Samples that a shell command writes to its standard output, as the ``cmd |`` of a wav.scp.

    This runs a program: call it only where a user has allowed pipes. What the command says on stderr is
    shown, and a failure of any part of the pipe is an error, even if samples came.
    """
    command = command.strip().removesuffix("|").strip()
    shell = ["bash", "-o", "pipefail", "-c", command]
    with tempfile.NamedTemporaryFile(suffix=".audio") as out, tempfile.TemporaryFile() as err:
        done = subprocess.run(shell, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False)
        err.seek(0)
        said = err.read().decode("utf-8", "replace").strip()
        if said:
            print(f"{command}: {said}", file=sys.stderr)
        if done.returncode != 0:
            last = said.splitlines()[-1] if said else "nothing on stderr"
            raise AudioError(f"pipe failed with exit code {done.returncode}: {command} | ({last})")
        return _resampled(out.name, f"{command} |", channel)


def write_wav(path: str | Path, samples: np.ndarray) -> None:
    """Write PCM16, 16 kHz, mono: 44 bytes of header, then samples, and nothing else (no tags, no source name).

    Samples beyond full scale are clipped, never wrapped. The file gets its name when it is complete.
    """
    path = Path(path)
    samples = np.asarray(samples)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise AudioError(f"{path}: expected float samples of one channel, got {samples.dtype} {list(samples.shape)}")
    if not np.isfinite(samples).all():
        raise AudioError(f"{path}: NaN or infinite samples are not written")
    pcm = np.clip(np.rint(samples.astype(np.float64) * 32768.0), -32768, 32767).astype("<i2").tobytes()
    if len(pcm) > 0xFFFFFFFF - 36:
        raise AudioError(f"{path}: {len(pcm)} bytes do not fit into a WAV file")
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(pcm), b"WAVE", b"fmt ", 16,
                         1, 1, SAMPLE_RATE, 2 * SAMPLE_RATE, 2, 16, b"data", len(pcm))  # fmt: skip
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        tmp.write_bytes(header + pcm)
        os.replace(tmp, path)
    except OSError as error:
        tmp.unlink(missing_ok=True)
        raise AudioError(f"{path}: cannot be written: {error.strerror}") from error


def _resampled(path: str | Path, name: str, channel: Channel) -> np.ndarray:
    parts: list[np.ndarray] = []
    length, rate, stream = 0, SAMPLE_RATE, None
    for block_rate, block in _blocks(path, name, channel):
        length, rate = length + len(block), block_rate
        if rate != SAMPLE_RATE:
            stream = stream or soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float32", quality="HQ")
            block = stream.resample_chunk(block)
        parts.append(block)
    want = _checked_length(length, rate, name)
    if stream is not None:
        parts.append(stream.resample_chunk(np.zeros(0, np.float32), last=True))
    samples = np.concatenate(parts)
    if len(samples) < want:  # soxr's own rounding differs by a sample
        samples = np.pad(samples, (0, want - len(samples)))
    return np.ascontiguousarray(samples[:want])


def _checked_length(length: int, rate: int, name: str) -> int:
    """Samples at 16 kHz of ``length`` decoded samples at ``rate``."""
    if length == 0:
        raise AudioError(f"{name}: no samples in the file")
    if length < MIN_SECONDS * rate:
        raise AudioError(f"{name}: {length / rate:.4f} s of audio; at least {MIN_SECONDS} s is needed")
    return (length * SAMPLE_RATE + rate // 2) // rate


def _blocks(path: str | Path, name: str, channel: Channel) -> Iterator[tuple[int, np.ndarray]]:
    """(rate, mono float32 block) as it decodes; every block is finite."""
    try:
        with open(path, "rb") as file:
            _check_riff(file, name)
    except OSError as error:
        raise AudioError(f"{name}: cannot be read: {error.strerror}") from error
    try:
        sound = soundfile.SoundFile(os.fsencode(path))  # a name need not be UTF-8
    except (soundfile.LibsndfileError, TypeError, ValueError) as error:
        raise AudioError(f"{name}: not a readable audio file: {_reason(error)}") from error
    done = 0
    with sound:
        if sound.format not in FORMATS:
            raise AudioError(f"{name}: unsupported audio format {sound.format}; convert it, e.g. to FLAC")
        if not MIN_RATE <= sound.samplerate <= MAX_RATE:
            raise AudioError(f"{name}: sample rate {sound.samplerate} Hz is not within {MIN_RATE} to {MAX_RATE} Hz")
        if isinstance(channel, int) and not 0 <= channel < sound.channels:
            raise AudioError(f"{name}: has {sound.channels} channels, so no channel {channel} (counted from 0)")
        if channel == "error" and sound.channels > 1:
            raise AudioError(f"{name}: has {sound.channels} channels; choose one, or 'mix' to average them")
        while True:
            try:
                block = sound.read(BLOCK, dtype="float32", always_2d=True)  # (L, C)
            except soundfile.LibsndfileError as error:
                raise AudioError(f"{name}: damaged, it does not decode to the end: {_reason(error)}") from error
            if len(block) == 0:
                return
            peak = float(np.abs(block).max())  # NaN if any is NaN
            if not np.isfinite(peak):
                raise AudioError(f"{name}: NaN or infinite samples after {done / sound.samplerate:.2f} s")
            if peak > MAX_PEAK:
                raise AudioError(f"{name}: float samples up to {peak:.0f}; full scale is 1.0, so scale the file first")
            done += len(block)
            if isinstance(channel, int):
                yield sound.samplerate, np.ascontiguousarray(block[:, channel])
            else:
                yield sound.samplerate, block.mean(axis=1, dtype=np.float32)  # (L, C) -> (L,)


def _reason(error: Exception) -> str:
    text = getattr(error, "error_string", "") or str(error)
    if "not a regular file" in text:  # libsndfile's words for an .mp3 without a single MPEG frame
        return "no audio in it"
    return text.strip().removeprefix("Error : ").rstrip(".") or type(error).__name__


def _check_riff(file: IO[bytes], name: str) -> None:
    """Refuse a WAV whose header would make a reader drop samples without a word.

    A length beyond the end of the file (cut short, or written through a pipe) is harmless: what is there
    decodes. A length of 0, or one that ends amid the samples, is not.
    """
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        raise AudioError(f"{name}: the file is empty")
    head = file.read(12)
    at = 12
    while head[:4] == b"RIFF" and head[8:12] == b"WAVE" and at + 8 <= size:
        file.seek(at)
        kind, length = struct.unpack("<4sI", file.read(8))
        if not all(32 <= byte < 127 for byte in kind):
            if size - at <= MAX_PADDING:
                return
            raise AudioError(f"{name}: wrong header: {size - at} bytes after the announced samples are no chunk")
        if kind == b"data":
            rest = size - at - 8
            if length == 0 and rest > 0:
                raise AudioError(f"{name}: wrong header: it announces no samples, but {rest} bytes follow")
            if length > rest and length < 0x7FFF0000:  # larger ones are the mark of a pipe
                log.warning("%s: the header announces %d bytes of samples, %d are there", name, length, rest)
        at += 8 + length + length % 2
