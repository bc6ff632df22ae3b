#!/usr/bin/env python3
"""A miniature VoicePrivacy Challenge in the organisers' form, made of any LibriSpeech, to try a recipe end to end.

    local/vpc/make_tree.py [--challenge 2026] [options] CORPUS TREE

TREE/data/<set>/ hold the organisers' tables, TREE/corpora the audio (links). The sets are MADE, and TREE/MADE.txt says
so: trials by the rule of local/vpc/make_trials.py on the --seconds shortest speech; "IEMOCAP" is read speech with
emotions that no one felt, under IEMOCAP's names, whose utterances do not begin with their speaker; "VCTK" (2022) is
the same readers as p<reader>, whose first two utterances make the sets _common. Enrolment audio is named by
relative paths with a blank, training audio by commands, as organisers' data may be.
"""

import shlex
from pathlib import Path

import soundfile
from make_trials import every_other, read_readers, read_sexes, rebuild, sets_of

from dpanon.cli import ArgumentParser, run
from dpanon.data.audio import num_samples
from dpanon.errors import DataDirError, UsageError
from dpanon.submission.layouts import EMOTION, LAYOUTS, TRAIN, layout

EMOTIONS = ("ang", "hap", "neu", "sad")
FOLDS = 2
AUDIO = "corpora/Libri Speech"


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--challenge", choices=LAYOUTS, default="2026", help="default: 2026")
    parser.add_argument("--part", default="test-clean", help="of the tests (default: test-clean)")
    parser.add_argument("--train-part", default="train-clean-100", help="default: train-clean-100")
    parser.add_argument(
        "--per-speaker", type=int, default=4, help="utterances of a reader, shortest first (default: 4)"
    )
    parser.add_argument("--train", type=int, default=12, help="utterances to train with (default: 12)")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("tree", type=Path)
    args = parser.parse_args(argv)
    if args.tree.exists():
        raise UsageError(f"{args.tree} exists; remove it to make it again")
    made = Tree(args.tree, args.corpus, args.part)
    for split in ("dev", "test"):
        readers = shortest(made.wavs, every_other(made.readers, made.sexes, split), args.per_speaker)
        found = rebuild(split, readers, made.sexes, sum(map(len, readers.values())) / 2000)
        for name, one in sets_of(found, split, args.challenge).items():
            made.write(name, one["utts"], trials=one.get("trials"), enrolls=one.get("enrolls"))
        if args.challenge == "2022":
            made.write_vctk(split, found)
    chosen = layout(args.challenge)
    pool = sorted(made.wavs, key=lambda utt: (soundfile.info(made.wavs[utt]).frames, utt))
    for item in chosen.of(EMOTION):
        made.write_emotions(item.name, pool[: 4 * FOLDS] if item.split == "dev" else pool[4 * FOLDS : 8 * FOLDS])
    training = Tree(args.tree, args.corpus, args.train_part)
    (train,) = chosen.of(TRAIN)
    by_reader = [utts[0] for utts in shortest(training.wavs, training.readers, 1).values()]
    rest = sorted(set(training.wavs) - set(by_reader))
    training.write(train.name, [*by_reader, *rest][: args.train], pipes=True)
    text = "Made for tests by local/vpc/make_tree.py: neither the organisers' data nor comparable with them.\n"
    (args.tree / "MADE.txt").write_text(text, encoding="utf-8")


def shortest(wavs: dict[str, Path], readers: dict[str, list[str]], num: int) -> dict[str, list[str]]:
    ranked = {
        spk: sorted(utts, key=lambda utt: (soundfile.info(wavs[utt]).frames, utt)) for spk, utts in readers.items()
    }
    return {spk: utts[:num] for spk, utts in ranked.items()}


class Tree:
    """Writer of sets in the organisers' form, unsorted as theirs may be."""

    def __init__(self, root: Path, corpus: Path, part: str):
        self.root = root
        self.wavs, self.texts, self.readers = read_readers(corpus, part)
        self.sexes = read_sexes(corpus)

    def write(self, name, utts, trials=None, enrolls=None, pipes=False, prefix="") -> None:
        """``prefix``: makes a reader someone of another corpus; it joins id and utterance by ``_``."""
        new = {utt: f"{prefix}{utt.split('-')[0]}_{utt}" if prefix else utt for utt in utts}
        rows = {new[utt]: (f"{prefix}{utt.split('-')[0]}", self.texts[utt]) for utt in utts}
        folder = self._tables(name, rows, {new[utt]: utt for utt in utts}, pipes)
        if trials is not None:
            kind = {True: "target", False: "nontarget"}
            self._lines(folder / "trials", (f"{prefix}{spk} {new[utt]} {kind[same]}" for spk, utt, same in trials))
        if enrolls is not None:
            self._lines(folder / "enrolls", (new[utt] for utt in enrolls))

    def write_vctk(self, split, found) -> None:
        self.write(f"vctk_{split}_enrolls", found["enrolls"], enrolls=found["enrolls"], prefix="p")
        for sex in ("f", "m"):
            utts, trials = found[sex]
            by_reader = [[utt for utt in utts if utt.startswith(f"{spk}-")] for spk in {u.split("-")[0] for u in utts}]
            for name, own in ((sex, slice(-2, None)), (f"{sex}_common", slice(0, 2))):
                chosen = sorted(utt for one in by_reader for utt in one[own])
                kept = [row for row in trials if row[1] in set(chosen)]
                self.write(f"vctk_{split}_trials_{name}", chosen, trials=kept, prefix="p")

    def write_emotions(self, name, sources) -> None:
        if len(sources) < 4 * FOLDS:
            raise DataDirError(f"{name}: {len(sources)} utterances; the made one needs {4 * FOLDS}")
        rows, audio, emotions = {}, {}, {}
        for k, source in enumerate(sources):
            session, sex = f"Ses0{k // 4 + 1}", "FM"[k // 2 % 2]
            utt = f"{session}F_{name.lower()}_{sex}{k:03d}"  # the dialogue's name, then who speaks
            rows[utt], audio[utt] = (f"{session}{sex}", self.texts[source]), source
            emotions[utt] = EMOTIONS[k % 4]
        folder = self._tables(name, rows, audio, False)
        self._lines(folder / "utt2emo", (f"{utt} {emotion}" for utt, emotion in emotions.items()))
        speakers = sorted({spk for spk, _ in rows.values()})
        self._lines(folder / "spk2fold", (f"{spk} {spk[:5]}" for spk in speakers))
        self._lines(folder / "spk2gender", (f"{spk} {spk[-1].lower()}" for spk in speakers))

    def _tables(self, name, rows, audio, pipes) -> Path:
        folder = self.root / "data" / name
        folder.mkdir(parents=True)
        paths = {}
        for utt in rows:
            link = self.root / AUDIO / f"{audio[utt]}.flac"
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(self.wavs[audio[utt]])
            paths[utt] = f"cat {shlex.quote(f'{AUDIO}/{link.name}')} |" if pipes else f"{AUDIO}/{link.name}"
        speakers: dict[str, list[str]] = {}
        for utt, (spk, _) in rows.items():
            speakers.setdefault(spk, []).append(utt)
        self._lines(folder / "wav.scp", (f"{utt} {path}" for utt, path in reversed(paths.items())))
        self._lines(folder / "utt2spk", (f"{utt} {spk}" for utt, (spk, _) in rows.items()))
        self._lines(folder / "text", (f"{utt} {text}" for utt, (_, text) in rows.items()))
        self._lines(folder / "spk2utt", (f"{spk} {' '.join(utts)}" for spk, utts in speakers.items()))
        self._lines(folder / "utt2dur", (f"{utt} {num_samples(self.wavs[audio[utt]]) / 16000:.3f}" for utt in rows))
        self._lines(folder / "spk2gender", (f"{spk} {self.sexes.get(spk.removeprefix('p'), 'f')}" for spk in speakers))
        return folder

    @staticmethod
    def _lines(path: Path, lines) -> None:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    run(main)
