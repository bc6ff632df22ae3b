"""Speaker embeddings of a set, computed once: ``<cache>/<extractor>/{xvector.ark,xvector.scp,audio}``.

The cache belongs to audio, not to a path: the table ``audio`` holds a digest of every recording, and an utterance
whose audio has changed is embedded again. A set that was released a second time under its old name can therefore
not be scored with the embeddings of the first.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dpanon.data.arrays import ArrayWriter, load_scp
from dpanon.data.audio import SAMPLE_RATE, read_audio
from dpanon.data.data_dir import DataDir
from dpanon.evaluate import EvaluationError
from dpanon.features.xvector import Extractor

_MIN_SAMPLES = SAMPLE_RATE // 2  # what the extractors need for a sensible answer


def embed_set(
    data: DataDir, extractor: Extractor, cache: Path, utts: Sequence[str] | None = None, segment_seconds: float = 0.0
) -> dict[str, np.ndarray]:
    """Unit-norm embeddings of the utterances. utterance -> (S, D), S = 1 unless they are split

    Args:
        cache: directory for this set; made when absent.
        utts: some of the utterances; None: all.
        segment_seconds: > 0 splits an utterance into equal pieces of about this length, so that a speaker with one
            long utterance still shows how its voice varies.
    """
    utts = list(data.utts if utts is None else utts)
    name = extractor.name + (f"_{segment_seconds:g}s" if segment_seconds else "")
    scp = cache / name / "xvector.scp"
    scp.parent.mkdir(parents=True, exist_ok=True)
    digests = {utt: _digest(data.wav(utt)) for utt in utts}
    known = _read_cache(scp)
    out, fresh = {}, False
    for utt in utts:
        if known.get(utt, ("", None))[0] == digests[utt]:
            out[utt] = known[utt][1]
            continue
        fresh = True
        pieces = split(read_audio(data.wav(utt)), segment_seconds)
        out[utt] = _checked(np.stack([extractor.embed(piece) for piece in pieces]), utt, extractor)
    if fresh:
        _write_cache(scp, known | {utt: (digests[utt], out[utt]) for utt in utts})
    return out


def split(samples: np.ndarray, segment_seconds: float) -> list[np.ndarray]:
    """Equal pieces of about ``segment_seconds``; the whole when that is 0 or there is no room for two. (L,)

    What is shorter than half a second is repeated up to it.
    """
    if 0 < len(samples) < _MIN_SAMPLES:
        samples = np.resize(samples, _MIN_SAMPLES)
    length = segment_seconds * SAMPLE_RATE
    num = max(1, round(len(samples) / length)) if length else 1
    return np.array_split(samples, num)


def _checked(embeddings: np.ndarray, utt: str, extractor: Extractor) -> np.ndarray:
    norm = np.linalg.norm(embeddings, axis=-1, keepdims=True)
    if not np.isfinite(embeddings).all() or not (norm > 1e-6).all():
        raise EvaluationError(f"{utt}: {extractor.name} gives a NaN or zero embedding: listen to the recording")
    return (embeddings / norm).astype(np.float32)


def _digest(wav: Path) -> str:
    with wav.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _read_cache(scp: Path) -> dict[str, tuple[str, np.ndarray]]:
    audio = scp.with_name("audio")
    if not scp.is_file() or not audio.is_file():
        return {}
    arrays = load_scp(scp)
    rows = dict(line.split() for line in audio.read_text(encoding="utf-8").splitlines())
    return {utt: (rows[utt], np.atleast_2d(arrays[utt])) for utt in arrays if utt in rows}


def _write_cache(scp: Path, values: dict[str, tuple[str, np.ndarray]]) -> None:
    """The digests go last: embeddings without them are not used."""
    audio = scp.with_name("audio")
    audio.unlink(missing_ok=True)
    with ArrayWriter(scp) as writer:
        for utt in sorted(values):
            writer[utt] = values[utt][1]
    audio.write_text("".join(f"{utt} {values[utt][0]}\n" for utt in sorted(values)), encoding="utf-8")
