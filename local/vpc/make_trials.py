#!/usr/bin/env python3
"""Trial lists of the VoicePrivacy Challenge, REBUILT from public LibriSpeech where the organisers' are not at hand.

    local/vpc/make_trials.py [--challenge 2026] [--partial true] [options] CORPUS DATA

CORPUS is the folder LibriSpeech, DATA gets the sets as data directories. The organisers' own choice of utterances is
not public, so these are *other* lists with the documented numbers: 343 / 1018 f / 960 m utterances of dev-clean and
438 / 734 / 762 of test-clean; 704 + 14566 and 644 + 12796, 548 + 11196 and 449 + 9457 target + nontarget trials. Each
set has a rebuilt.json that says so. Figures on them are near those on the organisers' lists, not equal to them.

Rule, without chance: of the readers of each sex, evenly spread by how much they said, as many as documented enrol
(dev 15 f 14 m, test 16 f 13 m); a reader's first utterances enrol, later ones are trials; numbers are dealt out as
evenly as what is there allows. Every trial utterance meets every enrolled reader of its sex, which gives exactly the
documented numbers of trials. 2026 adds trials across the sexes: as many per utterance as nontargets of its own sex on
average, readers in turn.

--partial true: with an incomplete part all numbers shrink by the share of its utterances that is there, readers by
the share of theirs; at least two readers of each sex enrol, with one utterance to enrol and one to try. One part for
dev and test: every other reader goes to test.
"""

import json
from pathlib import Path

from prepare import mixed_trials, write_note

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import num_samples
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import DataDirError
from dpanon.submission.layouts import LAYOUTS, TRAIN, layout

CORPUS = {"dev": "dev-clean", "test": "test-clean"}
READERS = {"dev": {"f": 15, "m": 14}, "test": {"f": 16, "m": 13}}
ENROLLS = {"dev": 343, "test": 438}
TRIALS = {  # utterances, and those of enrolled readers
    "dev": {"f": (1018, 704), "m": (960, 644)},
    "test": {"f": (734, 548), "m": (762, 449)},
}
OF_SEX = 20  # readers of each sex in dev-clean and in test-clean
EXPECTED = json.loads((Path(__file__).parent.parent / "librispeech" / "expected.json").read_text(encoding="utf-8"))


def deal(total: int, room: dict[str, int], least: int = 0) -> dict[str, int]:
    """``total`` shared out as evenly as ``room`` allows; earlier names get the odd ones.

    >>> deal(7, {"a": 9, "b": 1, "c": 9})
    {'a': 3, 'b': 1, 'c': 3}
    """
    given = dict.fromkeys(room, least)
    if any(least > size for size in room.values()) or sum(room.values()) < total or total < least * len(room):
        raise DataDirError(
            f"{total} utterances wanted of {len(room)} readers who have {sum(room.values())}: is the part complete?"
        )
    while (left := total - sum(given.values())) > 0:
        open_names = [name for name in room if given[name] < room[name]]
        share = max(1, left // len(open_names))
        for name in open_names[: left if share == 1 else None]:
            given[name] = min(room[name], given[name] + share)
    return given


def spread(names: list[str], sizes: dict[str, int], num: int) -> list[str]:
    """``num`` of the names, evenly spread over their order by size."""
    ranked = sorted(names, key=lambda name: (-sizes[name], name))
    return [ranked[(2 * i + 1) * len(ranked) // (2 * num)] for i in range(num)]


def rebuild(split: str, readers: dict[str, list[str]], sexes: dict[str, str], share: float = 1.0) -> dict:
    """{"enrolls": utterances, "f": (utterances, trials), "m": ...} of the readers' utterances.

    Args:
        share: of the part that is there; 1 gives the documented numbers or an error.
    """
    out: dict = {"enrolls": []}
    total = sum(READERS[split].values())
    for sex, documented in READERS[split].items():
        names = sorted(name for name in readers if sexes[name] == sex)
        size = {name: len(readers[name]) for name in names}
        num = documented if share == 1 else min(len(names), max(2, round(documented * len(names) / OF_SEX)))
        if len(names) < max(2, num) or (share == 1 and len(names) != OF_SEX):
            raise DataDirError(f"{split}: {len(names)} readers are {sex}; expected {OF_SEX}, and 2 at the very least")
        others = spread(names, size, len(names) - num) if len(names) > num else []
        enrolled = [name for name in names if name not in others]
        first = {s: round(ENROLLS[split] * n / total) for s, n in READERS[split].items()}
        wanted = first[sex] if sex == "f" else ENROLLS[split] - first["f"]
        utterances, of_enrolled = TRIALS[split][sex]
        if share < 1:
            room = {name: size[name] - 1 for name in enrolled}  # one is left for a trial
            wanted = min(max(num, round(wanted * share)), sum(room.values()))
            left = sum(size[name] for name in enrolled) - wanted
            of_enrolled = min(max(num, round(of_enrolled * share)), left)
            rest = min(
                max(len(others), round((utterances - TRIALS[split][sex][1]) * share)), sum(map(size.get, others))
            )
            utterances = of_enrolled + rest
        enrol = deal(wanted, {name: size[name] - 1 for name in enrolled}, 1)
        tried = deal(of_enrolled, {name: size[name] - enrol[name] for name in enrolled}, 1)
        tried |= deal(utterances - of_enrolled, {name: size[name] for name in others}) if others else {}
        out["enrolls"] += [utt for name in enrolled for utt in sorted(readers[name])[: enrol[name]]]
        chosen = {name: sorted(readers[name])[enrol.get(name, 0) :][: tried[name]] for name in names}
        trials = [(spk, utt, spk == name) for name in names for utt in chosen[name] for spk in enrolled]
        out[sex] = (sorted(utt for utts in chosen.values() for utt in utts), trials)
    return out


def sets_of(found: dict, split: str, challenge: str) -> dict[str, dict]:
    """Set name -> {"utts", "trials" or "enrolls"}."""
    sets: dict[str, dict] = {f"libri_{split}_enrolls": {"utts": found["enrolls"], "enrolls": found["enrolls"]}}
    if challenge == "2026":
        trials = mixed_trials(found["f"][1], found["m"][1])
        sets[f"libri_{split}_trials_mixed"] = {"utts": found["f"][0] + found["m"][0], "trials": trials}
    else:
        for sex in ("f", "m"):
            sets[f"libri_{split}_trials_{sex}"] = {"utts": found[sex][0], "trials": found[sex][1]}
    return sets


def read_readers(corpus: Path, part: str) -> tuple[dict[str, Path], dict[str, str], dict[str, list[str]]]:
    """Audio and words of each utterance, and utterances of each reader."""
    wavs, texts = {}, {}
    for transcript in sorted((corpus / part).glob("*/*/*.trans.txt")):
        for line in transcript.read_text(encoding="utf-8").splitlines():
            utt, _, words = line.partition(" ")
            audio = transcript.with_name(f"{utt}.flac")
            if audio.is_file():
                wavs[utt], texts[utt] = audio.absolute(), words
    if not wavs:
        raise DataDirError(f"no */*/*.trans.txt with audio under {corpus / part}: is {corpus} the folder LibriSpeech?")
    readers: dict[str, list[str]] = {}
    for utt in wavs:
        readers.setdefault(utt.split("-")[0], []).append(utt)
    return wavs, texts, readers


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--challenge", choices=LAYOUTS, default="2026", help="default: 2026")
    parser.add_argument("--partial", type=boolean, default=False, metavar="true|false", help="default: false")
    parser.add_argument("--dev-part", default=CORPUS["dev"], help="default: dev-clean")
    parser.add_argument("--test-part", default=CORPUS["test"], help="default: test-clean")
    parser.add_argument("--train-part", default="train-clean-360", help="default: train-clean-360")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    args = parser.parse_args(argv)
    sexes = read_sexes(args.corpus)
    parts = {"dev": args.dev_part, "test": args.test_part}
    for split, part in parts.items():
        wavs, texts, readers = read_readers(args.corpus, part)
        share = check_share(part, len(wavs), args.partial)
        if parts["dev"] == parts["test"]:
            readers, share = every_other(readers, sexes, split), share / 2
        found = rebuild(split, readers, sexes, share)
        for name, one in sets_of(found, split, args.challenge).items():
            note = {"part": part, "share": round(share, 4), "rule": "local/vpc/make_trials.py"}
            write_set(args.data / name, one["utts"], wavs, texts, sexes, note, one.get("trials"), one.get("enrolls"))
    wavs, texts, _ = read_readers(args.corpus, args.train_part)
    share = check_share(args.train_part, len(wavs), args.partial)
    (train,) = layout(args.challenge).of(TRAIN)
    note = {"part": args.train_part, "share": round(share, 4)}
    write_set(args.data / train.name, sorted(wavs), wavs, texts, sexes, note)


def check_share(part: str, found: int, partial: bool) -> float:
    """How much of a part is there; an error for less than all unless ``partial``."""
    if part not in EXPECTED["parts"]:
        raise DataDirError(f"{part!r} is no part of LibriSpeech; expected one of {', '.join(EXPECTED['parts'])}")
    official = EXPECTED["parts"][part]["utterances"]
    if found != official and not partial:
        raise DataDirError(f"{part} has {found} of {official} utterances; take what is there with --partial true")
    return min(1.0, found / official)


def every_other(readers: dict[str, list[str]], sexes: dict[str, str], split: str) -> dict[str, list[str]]:
    kept = {}
    for sex in ("f", "m"):
        names = sorted(name for name in readers if sexes[name] == sex)
        kept |= {name: readers[name] for name in names[split == "test" :: 2]}
    return kept


def read_sexes(corpus: Path) -> dict[str, str]:
    """reader -> f or m, from lines such as ``14   | F | train-clean-360  | 25.03 | Kristin LeMoine``"""
    path = corpus / "SPEAKERS.TXT"
    if not path.is_file():
        raise DataDirError(f"{path}: no such file: is {corpus} the folder LibriSpeech, with its SPEAKERS.TXT?")
    rows = [line.split("|") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(";")]
    return {row[0].strip(): row[1].strip().lower() for row in rows if len(row) > 2}


def write_set(path: Path, utts, wavs, texts, sexes, note: dict, trials=None, enrolls=None) -> None:
    speakers = {utt: utt.split("-")[0] for utt in utts}
    tables = {
        "wav.scp": {utt: wavs[utt] for utt in utts},
        "utt2spk": speakers,
        "utt2num_samples": {utt: num_samples(wavs[utt]) for utt in utts},
        "text": {utt: texts[utt] for utt in utts},
        "spk2gender": {spk: sexes[spk] for spk in speakers.values()},
    }
    data = write_data_dir(path, tables, trials, enrolls)
    write_note(path, note | {"lists": "rebuilt, not the organisers'"})
    targets = sum(same for *_, same in trials) if trials else 0
    rest = f", {targets} target and {len(trials) - targets} nontarget trials" if trials else ""
    print(f"{path}: rebuilt, {len(data)} utterances, {len(data.speakers)} speakers{rest}")


if __name__ == "__main__":
    run(main)
