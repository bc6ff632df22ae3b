"""How long a challenge's release and evaluation take, and how much disk, before anything is begun."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from dpanon.data.data_dir import DataDir
from dpanon.submission import SubmissionError
from dpanon.submission.layouts import Layout

BYTES_PER_SECOND = 2 * 16000
ANONYMIZE, TRANSCRIBE, EMBED = 0.1, 0.3, 0.05  # seconds of one core per second of speech, see README.md
SPARE = 1.1  # logs, embeddings, tables


@dataclass(frozen=True)
class Estimate:
    """Seconds of speech, seconds of work with the jobs asked for, bytes that will be written, bytes that are free."""

    speech: float
    release: float
    evaluation: float
    needed: int
    free: int


def estimate(data: Path, chosen: Layout, suffix: str, jobs: int, rtf: float = ANONYMIZE, parts: int = 1) -> Estimate:
    """Of the sets that are there and not released yet.

    Args:
        jobs: processes at once, of one part.
        parts: of a release that is an array of jobs.
        rtf: seconds of one core that the system takes for a second of speech.
    """
    everything = left = tried = 0.0
    for item in chosen.sets:
        source = data / item.name
        if not source.is_dir():
            continue
        one = DataDir.read(source, allow_pipes=True)
        seconds = sum(one.num_samples(utt) for utt in one.utts) / 16000
        everything += seconds
        tried += seconds if item.role == "trials" else 0.0
        left += 0.0 if (data / f"{item.name}{suffix}" / "wav.scp").is_file() else seconds
    if not everything:
        raise SubmissionError(f"{data}: none of the sets of the challenge {chosen.challenge} is there; run stage 0")
    needed = int(left * BYTES_PER_SECOND * SPARE)
    evaluation = (2 * TRANSCRIBE * tried + 2 * EMBED * everything) / jobs
    return Estimate(everything, left * rtf / (jobs * parts), evaluation, needed, shutil.disk_usage(data).free)


def check_disk(found: Estimate, data: Path) -> None:
    if found.needed > found.free:
        raise SubmissionError(
            f"{data}: the release takes about {found.needed / 1e9:.1f} GB and {found.free / 1e9:.1f} GB are free"
        )
