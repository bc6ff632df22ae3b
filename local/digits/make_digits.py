#!/usr/bin/env python3
"""Make spoken digits with flite and espeak-ng: CORPUS/<speaker>/<speaker>-<digit>-<take>.wav, CORPUS/utterances.tsv.

    local/digits/make_digits.py [--nj N] [--takes N] [--test-takes N] CORPUS

The speakers are those of local/mini/speakers.tsv; the takes of one speaker differ a little in f0, tempo and formants.
Nothing is drawn: the same synthesizers give the same files. An interrupted call is taken up by the next one.
"""

import hashlib
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import soxr

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import MIN_SECONDS, SAMPLE_RATE, read_audio, write_wav
from dpanon.errors import DataDirError, DpanonError, MissingDependencyError

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "mini"))
from make_corpus import PEAK, Speaker, read_speakers, say  # noqa: E402

PROGRAMS = ("flite", "espeak-ng")
WORDS = (HERE / "words.txt").read_text(encoding="utf-8").split()
SPREAD = {"f0": 0.12, "formants": 0.05, "tempo": 0.30}  # between the extreme takes of a speaker
GOLDEN = 0.6180339887498949  # its multiples modulo 1 fill [0, 1] evenly, however many there are


def take_of(speaker: Speaker, digit: int, take: int) -> Speaker:
    """The speaker as he sounds in this take."""
    number = len(WORDS) * take + digit
    moved = {
        name: getattr(speaker, name) * (1 + spread * ((number * GOLDEN + i * 0.37) % 1 - 0.5))
        for i, (name, spread) in enumerate(SPREAD.items())
    }
    return speaker._replace(**moved)


def make(speaker: Speaker, word: str, out: Path) -> None:
    """Formants move by resampling, as in local/mini/make_corpus.py; silence at the ends goes."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said.wav"
        say(speaker, word, said)
        samples = read_audio(said)
    samples = soxr.resample(samples, SAMPLE_RATE * speaker.formants, SAMPLE_RATE)
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    margin = SAMPLE_RATE // 50
    samples = samples[max(0, loud[0] - margin) : loud[-1] + margin]
    if len(samples) < MIN_SECONDS * SAMPLE_RATE:
        raise DpanonError(f"{speaker.id} said {word!r} in {len(samples)} samples; is its voice installed?")
    write_wav(out, samples * (PEAK / float(np.abs(samples).max())))


def make_digits(corpus: Path, speakers: list[Speaker], takes: dict[str, int], jobs: int) -> tuple[int, int]:
    """(utterances, how many of them were made now). ``takes`` by role."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise MissingDependencyError(f"{', '.join(missing)} not found; apt-get install {' '.join(missing)}")
    program = Path(__file__).read_bytes() + (HERE.parent / "mini" / "make_corpus.py").read_bytes()
    text = hashlib.sha256(program + repr((speakers, takes, WORDS)).encode()).hexdigest() + "\n"
    stamp = corpus / "recipe.sha256"
    if stamp.exists() and stamp.read_text(encoding="utf-8") != text:
        raise DataDirError(f"{corpus} was made by another version of the recipe; remove it to make it again")
    corpus.mkdir(parents=True, exist_ok=True)
    stamp.write_text(text, encoding="utf-8")
    rows = [
        (speaker, digit, f"{speaker.id}-{digit}-{take:02d}", take)
        for speaker in speakers
        for digit in range(len(WORDS))
        for take in range(takes[speaker.role])
    ]
    for speaker in speakers:
        (corpus / speaker.id).mkdir(exist_ok=True)
    todo = [row for row in rows if not (corpus / row[0].id / f"{row[2]}.wav").exists()]
    with ThreadPoolExecutor(jobs) as pool:  # the work is done by other programs
        list(
            pool.map(
                lambda row: make(take_of(row[0], row[1], row[3]), WORDS[row[1]], corpus / row[0].id / f"{row[2]}.wav"),
                todo,
            )
        )
    lines = [f"{utt}\t{speaker.id}\t{speaker.sex}\t{speaker.role}\t{WORDS[digit]}\n" for speaker, digit, utt, _ in rows]
    (corpus / "utterances.tsv").write_text("utt\tspeaker\tsex\trole\ttext\n" + "".join(lines), encoding="utf-8")
    return len(rows), len(todo)


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--nj", type=int, default=2, metavar="N", help="files made at once (default: 2)")
    parser.add_argument("--takes", type=int, default=2, metavar="N", help="of a speaker of role train (default: 2)")
    parser.add_argument("--test-takes", type=int, default=8, metavar="N", help="of one of role test; 0: leave them out")
    parser.add_argument("corpus", type=Path, help="the folder to be made")
    args = parser.parse_args(argv)
    takes = {"train": max(1, args.takes), "test": max(0, args.test_takes)}
    total, made = make_digits(args.corpus, read_speakers(), takes, max(1, args.nj))
    print(f"{args.corpus}: {total} utterances, {made} of them made now")


if __name__ == "__main__":
    run(main)
