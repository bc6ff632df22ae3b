#!/usr/bin/env python3
"""Data directories of a VoicePrivacy Challenge as the organisers give them -> data directories of this project.

    local/vpc/prepare.py [--challenge 2026] [--allow-pipes true] [--partial true] CHALLENGE_DATA DATA

CHALLENGE_DATA is the organisers' folder data/ with libri_dev_enrolls, libri_dev_trials_mixed, ... Lines may be in any
order, paths may hold blanks; a relative path begins at --base (default: the folder above CHALLENGE_DATA, where their
scripts run). A wav.scp line ending in | is a command; with --allow-pipes true it runs there and its output becomes a
file under DATA/audio. IEMOCAP's utterances do not begin with their speaker: they are renamed to <speaker>-<utterance>,
and utt2name keeps the organisers' name, which `dpanon submission` puts back. Where 2026's trials_mixed is missing and
trials_f and trials_m are there, it is made of them, and rebuilt.json says so. Sets that are complete are left alone.
"""

import json
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import num_samples, read_pipe, write_wav
from dpanon.data.data_dir import DataDir, is_pipe, read_lines, write_data_dir
from dpanon.errors import DataDirError
from dpanon.submission.layouts import ENROLLS, LAYOUTS, TRIALS, VpcSet, check_suffix, layout

KEPT = ("text", "spk2gender", "utt2emo", "spk2fold")
Trial = tuple[str, str, bool]


def loose_table(path: Path) -> dict[str, str]:
    """id -> rest of its line, in any order; a line that is there twice counts once."""
    table: dict[str, str] = {}
    for row, line in enumerate(read_lines(path), 1):
        key, _, value = line.strip().replace("\t", " ").partition(" ")
        if key and table.setdefault(key, value.strip()) != value.strip():
            raise DataDirError(f"{path}:{row}: {key!r} has two values: {table[key]!r} and {value.strip()!r}")
    return table


def read_set(source: Path, item: VpcSet, base: Path, audio: Path, allow_pipes: bool) -> dict:
    """{"tables", "trials", "enrolls"} of one set, ready for write_data_dir."""
    for name in ("wav.scp", "utt2spk", *(table for table in item.tables if table in ("trials", "enrolls"))):
        if not (source / name).is_file():
            raise DataDirError(f"{source}: has no {name}; is it {item.name} as the organisers give it?")
    utt2spk = loose_table(source / "utt2spk")
    new = {u: u if u == s or u.startswith((f"{s}-", f"{s}_")) else f"{s}-{u}" for u, s in utt2spk.items()}
    wavs = loose_table(source / "wav.scp")
    if lost := sorted(wavs.keys() ^ utt2spk.keys()):
        raise DataDirError(f"{source}: {len(lost)} utterances are in one of wav.scp and utt2spk only (e.g. {lost[:5]})")
    with ThreadPoolExecutor(2) as pool:
        jobs = {utt: pool.submit(find_audio, wavs[utt], utt, source, base, audio, allow_pipes) for utt in wavs}
        files = {utt: job.result() for utt, job in jobs.items()}
        lengths = dict(zip(files, pool.map(num_samples, files.values()), strict=True))
    tables: dict[str, dict] = {
        "wav.scp": {new[utt]: file for utt, file in files.items()},
        "utt2spk": {new[utt]: spk for utt, spk in utt2spk.items()},
        "utt2num_samples": {new[utt]: num for utt, num in lengths.items()},
    }
    for name in KEPT:
        if (source / name).is_file():
            table = loose_table(source / name)
            tables[name] = table if name.startswith("spk2") else {new.get(utt, utt): v for utt, v in table.items()}
    if "spk2gender" in tables:
        tables["spk2gender"] = {spk: sex[:1].lower() for spk, sex in tables["spk2gender"].items()}
    if any(utt != name for utt, name in new.items()):
        tables["utt2name"] = {name: utt for utt, name in new.items()}
    trials = enrolls = None
    if item.role == TRIALS:
        trials = read_trials(source / "trials", utt2spk, new)
    if item.role == ENROLLS:
        enrolls = [new.get(line.split()[0], line) for line in read_lines(source / "enrolls") if line.strip()]
    return {"tables": tables, "trials": trials, "enrolls": enrolls}


def find_audio(value: str, utt: str, source: Path, base: Path, audio: Path, allow_pipes: bool) -> Path:
    """The file of one line of wav.scp."""
    if not is_pipe(value):
        for folder in (base, source, source.parent, Path.cwd()):
            if (folder / value).is_file():
                return (folder / value).absolute()
        raise DataDirError(
            f"{source}/wav.scp: {utt!r}: no such file: {value} (relative paths begin at {base}; see --base)"
        )
    if not allow_pipes:
        raise DataDirError(
            f"{source}/wav.scp: {utt!r} is a command, which would run as you: {value[:80]!r}; if you trust it, add "
            "--allow-pipes true"
        )
    file = audio / f"{utt}.wav"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        command = value.rstrip().removesuffix("|").strip()
        write_wav(file, read_pipe(f"cd {shlex.quote(str(base))} && {{ {command} ; }}"))
    return file.absolute()


def read_trials(path: Path, utt2spk: dict[str, str], new: dict[str, str]) -> list[Trial]:
    """``<speaker> <utterance> target|nontarget`` lines; a label that contradicts utt2spk is an error."""
    trials = set()
    for row, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if len(fields) != 3 or fields[2] not in ("target", "nontarget") or fields[1] not in utt2spk:
            raise DataDirError(f"{path}:{row}: expected '<speaker> <utterance> target|nontarget', found {line!r}")
        same = fields[2] == "target"
        if same != (utt2spk[fields[1]] == fields[0]):
            raise DataDirError(f"{path}:{row}: {line!r}, but {fields[1]} is of speaker {utt2spk[fields[1]]}")
        trials.add((fields[0], new[fields[1]], same))
    return sorted(trials)


def mixed_trials(female: list[Trial], male: list[Trial]) -> list[Trial]:
    """Trials of both sexes and, as 2026 has them, across: as many per utterance as nontargets on average.

    The organisers draw the readers; here they come in turn, so that the list is the same everywhere.
    """
    trials = [*female, *male]
    for own, other in ((female, male), (male, female)):
        utts, speakers = sorted({utt for _, utt, _ in own}), sorted({spk for spk, _, _ in other})
        num = min(len(speakers), round(sum(not same for *_, same in own) / len(utts)))
        at = 0
        for utt in utts:
            trials += [(speakers[(at + i) % len(speakers)], utt, False) for i in range(num)]
            at += num
    return sorted(trials)


def combine_mixed(source: Path, item: VpcSet, read) -> dict:
    """trials_mixed of trials_f and trials_m."""
    halves = [read(source / item.name.replace("mixed", sex)) for sex in ("f", "m")]
    names = set(halves[0]["tables"]) & set(halves[1]["tables"])
    tables = {name: halves[0]["tables"][name] | halves[1]["tables"][name] for name in names}
    return {"tables": tables, "trials": mixed_trials(*(half["trials"] for half in halves)), "enrolls": None}


def write_note(path: Path, note: dict) -> None:
    (path / "rebuilt.json").write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")


def prepare(source: Path, out: Path, item: VpcSet, base: Path, allow_pipes: bool, suffix: str = "") -> DataDir:
    def read(folder: Path) -> dict:
        return read_set(folder, item, base, out.parent / "audio" / out.name, allow_pipes)

    folder = source / f"{item.name}{suffix}"
    half = source / item.name.replace("mixed", "f")
    rebuilt = item.kind == "mixed" and not suffix and not folder.is_dir() and half.is_dir()
    found = combine_mixed(source, item, read) if rebuilt else read(folder)
    data = write_data_dir(out, found["tables"], found["trials"], found["enrolls"])
    if rebuilt:
        write_note(out, {"lists": "rebuilt from trials_f and trials_m, not the organisers'"})
    return data


def check(data: DataDir, item: VpcSet, enrolls: DataDir | None, partial: bool) -> str:
    """'' or how much of the set is there; DataDirError for what cannot be used."""
    if enrolls is not None and (strange := sorted({spk for spk, *_ in data.trials()} - set(enrolls.speakers))):
        raise DataDirError(
            f"{data.path}/trials: {len(strange)} speakers are not in {enrolls.path} (e.g. {strange[:5]})"
        )
    if item.num_utts and len(data) != item.num_utts:
        if not partial:
            raise DataDirError(
                f"{data.path}: has {len(data)} of {item.num_utts} utterances; take what is there with --partial true"
            )
        return f" (partial: {len(data)} of {item.num_utts})"
    return ""


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--challenge", choices=LAYOUTS, default="2026", help="default: 2026")
    parser.add_argument("--allow-pipes", type=boolean, default=False, metavar="true|false", help="default: false")
    parser.add_argument("--partial", type=boolean, default=False, metavar="true|false", help="default: false")
    parser.add_argument("--base", type=Path, help="where relative paths begin (default: above CHALLENGE_DATA)")
    parser.add_argument("--suffix", default="", help="of sets that others anonymized: <set><suffix> is read and made")
    parser.add_argument("source", type=Path, metavar="CHALLENGE_DATA")
    parser.add_argument("data", type=Path, metavar="DATA")
    args = parser.parse_args(argv)
    base = (args.base or args.source.absolute().parent).absolute()
    chosen, made = layout(args.challenge), {}
    if args.suffix:
        check_suffix(args.suffix)
    if not args.source.is_dir():
        raise DataDirError(f"{args.source}: no such folder; it is the organisers' data/, with libri_dev_enrolls in it")
    for item in chosen.sets:
        name = f"{item.name}{args.suffix}"
        mixed = item.kind == "mixed" and (args.source / item.name.replace("mixed", "f")).is_dir()
        if not (args.source / name).is_dir() and not (mixed and not args.suffix):
            if item.required and not (args.partial and item.role == "emotion"):
                raise DataDirError(f"{args.source}: has no {name}, which the challenge {args.challenge} needs")
            print(f"{name}: not there, left out")
            continue
        made[item.name] = prepare(args.source, args.data / name, item, base, args.allow_pipes, args.suffix)
    for enrol, trial in chosen.tests():
        if trial.name in made:
            check(made[trial.name], trial, made[enrol.name], args.partial)
    for item in chosen.sets:
        if item.name in made:
            data = made[item.name]
            share = check(data, item, None, args.partial)
            print(f"{data.path}: {len(data)} utterances, {len(data.speakers)} speakers{share}")


if __name__ == "__main__":
    run(main)
