"""Utterances cut into pieces, and speakers shared out among sets: more trials, and people kept apart."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dpanon.data.audio import SAMPLE_RATE, read_audio, write_wav
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.errors import UsageError


def cut(data: DataDir, seconds: float, most: int, out: str | Path) -> DataDir:
    """Equal pieces of about ``seconds``, at most ``most`` of an utterance, each a file of its own -> ``out``.

    ``<utt>-p000`` has the speaker of its utterance. A short utterance stays whole. Words, trials and enrolls are not
    carried over: they are of whole utterances.
    """
    if not 0.5 <= seconds < float("inf") or most < 1:
        raise UsageError(f"pieces of {seconds} s, at most {most}: expected at least 0.5 s and at least 1")
    out = Path(out)
    if (out / "wav.scp").exists():
        raise UsageError(f"{out} exists: remove it to cut it again")
    (out / "wav").mkdir(parents=True, exist_ok=True)
    tables: dict[str, dict[str, str]] = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples")}
    for utt in data.utts:
        samples = read_audio(data.wav(utt))
        num = max(1, round(len(samples) / (seconds * SAMPLE_RATE)))
        for number, piece in enumerate(np.array_split(samples, num)[:most]):
            name = f"{utt}-p{number:03d}"
            write_wav(out / "wav" / f"{name}.wav", piece)
            tables["wav.scp"][name] = f"wav/{name}.wav"
            tables["utt2spk"][name] = data.speaker(utt)
            tables["utt2num_samples"][name] = str(len(piece))
    if data.has("spk2gender"):
        tables["spk2gender"] = data.table("spk2gender")
    return write_data_dir(out, tables, allow_existing=True)


def share_out(data: DataDir, shares: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """part -> its speakers, every share of each sex: nobody is in two parts, and nothing is drawn.

    Args:
        shares: part -> share; they are divided by their sum.
    """
    if len(shares) < 2 or not all(share > 0 for share in shares.values()):
        raise UsageError(f"expected at least two parts with shares > 0, got {dict(shares)}")
    total = sum(shares.values())
    parts: dict[str, list[str]] = {name: [] for name in shares}
    sexes = {speaker: data.sex(speaker) for speaker in data.speakers} if data.has("spk2gender") else {}
    for sex in ("f", "m", None):
        for speaker in (speaker for speaker in data.speakers if sexes.get(speaker) == sex):
            # to the part that is furthest behind its share; the first of equals
            have = sum(map(len, parts.values())) + 1
            behind = {name: shares[name] / total * have - len(parts[name]) for name in parts}
            parts[max(behind, key=lambda name: behind[name])].append(speaker)
    if empty := [name for name, speakers in parts.items() if not speakers]:
        raise UsageError(f"{data.path}: {len(data.speakers)} speakers are too few: {', '.join(empty)} gets none")
    return {name: tuple(sorted(speakers)) for name, speakers in parts.items()}
