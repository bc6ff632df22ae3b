#!/usr/bin/env python3
"""Make a small speech corpus with flite and espeak-ng: CORPUS/<speaker>/<speaker>-<number>.wav, CORPUS/utterances.tsv.

    local/mini/make_corpus.py [--nj N] [--speakers N] CORPUS

speakers.tsv has a line for every speaker. A speaker keeps one synthesizer voice, one median of f0, one length of the
vocal tract and one tempo through all utterances. The length changes by resampling: it moves formants, f0 and tempo by
one factor, and the synthesizer is asked for an f0 and a tempo that come out right afterwards, so nothing is cut or
stretched. Sentences (sentences.txt, ours) go round, so every one is said by several speakers. Nothing is drawn: the
same synthesizers give the same files. An interrupted call is taken up by the next one.
"""

import csv
import hashlib
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import SAMPLE_RATE, read_audio, write_wav
from dpanon.errors import DataDirError, DpanonError, MissingDependencyError

HERE = Path(__file__).resolve().parent
PROGRAMS = ("flite", "espeak-ng", "sox")
PEAK = 0.6  # of every file
ESPEAK_WORDS = 150  # a minute, at tempo 1


class Speaker(NamedTuple):
    """One line of speakers.tsv."""

    id: str
    sex: str
    role: str  # train or test
    synthesizer: str  # flite or espeak-ng
    voice: str
    f0: float  # median in Hz for flite, espeak-ng's own scale of 0 to 99 for espeak-ng
    formants: float  # factor on all formants: above 1 for a shorter vocal tract
    tempo: float  # factor on the voice's own
    utterances: int


def read_speakers(path: Path = HERE / "speakers.tsv") -> list[Speaker]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        Speaker(**{name: Speaker.__annotations__[name](value) for name, value in row.items()})  # type: ignore[arg-type]
        for row in rows
    ]


def utterances(speakers: list[Speaker]) -> list[tuple[Speaker, str, str]]:
    """(speaker, utterance id, text)"""
    sentences = (HERE / "sentences.txt").read_text(encoding="utf-8").splitlines()
    result = []
    for speaker in speakers:
        for number in range(speaker.utterances):
            text = sentences[len(result) % len(sentences)]
            result.append((speaker, f"{speaker.id}-{number:03d}", text))
    return result


def say(speaker: Speaker, text: str, wav: Path) -> None:
    """Synthesize at the f0 and tempo which become the wanted ones when the formants move."""
    stretch = speaker.formants / speaker.tempo
    if speaker.synthesizer == "flite":
        f0 = f"int_f0_target_mean={speaker.f0 / speaker.formants:.2f}"
        command = ["flite", "-voice", speaker.voice, "--setf", f0, "--setf", f"duration_stretch={stretch:.4f}"]
        command += ["-t", text, "-o", str(wav)]
    else:
        words = f"{ESPEAK_WORDS / stretch:.0f}"
        command = ["espeak-ng", "-v", speaker.voice, "-p", f"{speaker.f0:.0f}", "-s", words, "-w", str(wav), text]
    _call(command)


def make(speaker: Speaker, text: str, out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        said, moved = Path(folder) / "said.wav", Path(folder) / "moved.wav"
        say(speaker, text, said)
        _call(
            [
                "sox",
                "-D",
                str(said),
                "-b",
                "24",
                str(moved),
                "speed",
                f"{speaker.formants:.4f}",
                "rate",
                str(SAMPLE_RATE),
            ]
        )
        samples = read_audio(moved)
    write_wav(out, samples * (PEAK / max(float(np.abs(samples).max()), 1e-6)))


def _call(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise DpanonError(f"{command[0]} failed with exit code {done.returncode}: {said[-1] if said else command}")


def recipe(speakers: list[Speaker]) -> str:
    """A hash of what the corpus is made of."""
    program = Path(__file__).read_bytes() + (HERE / "sentences.txt").read_bytes()
    return hashlib.sha256(program + repr(speakers).encode()).hexdigest()


def make_corpus(corpus: Path, speakers: list[Speaker], jobs: int) -> int:
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise MissingDependencyError(f"{', '.join(missing)} not found; apt-get install {' '.join(missing)}")
    stamp, text = corpus / "recipe.sha256", recipe(speakers) + "\n"
    if stamp.exists() and stamp.read_text(encoding="utf-8") != text:
        raise DataDirError(f"{corpus} was made by another version of the recipe; remove it to make it again")
    corpus.mkdir(parents=True, exist_ok=True)
    stamp.write_text(text, encoding="utf-8")
    rows = utterances(speakers)
    todo = [(corpus / speaker.id / f"{utt}.wav", speaker, words) for speaker, utt, words in rows]
    todo = [(path, speaker, words) for path, speaker, words in todo if not path.exists()]
    for speaker in speakers:
        (corpus / speaker.id).mkdir(exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:  # the work is done by other programs
        list(pool.map(lambda row: make(row[1], row[2], row[0]), todo))
    lines = [f"{utt}\t{speaker.id}\t{speaker.sex}\t{speaker.role}\t{words}\n" for speaker, utt, words in rows]
    (corpus / "utterances.tsv").write_text("utt\tspeaker\tsex\trole\ttext\n" + "".join(lines), encoding="utf-8")
    return len(todo)


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--nj", type=int, default=2, metavar="N", help="files made at once (default: 2)")
    parser.add_argument("--speakers", type=int, metavar="N", help="only the first N of each role and sex")
    parser.add_argument("corpus", type=Path, help="the folder to be made")
    args = parser.parse_args(argv)
    chosen, count = [], {}
    for speaker in read_speakers():
        key = (speaker.role, speaker.sex)
        count[key] = count.get(key, 0) + 1
        if args.speakers is None or count[key] <= args.speakers:
            chosen.append(speaker)
    made = make_corpus(args.corpus, chosen, max(1, args.nj))
    print(f"{args.corpus}: {sum(s.utterances for s in chosen)} utterances of {len(chosen)} speakers, {made} made now")


if __name__ == "__main__":
    run(main)
