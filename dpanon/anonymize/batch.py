"""Many recordings -> one release, which gets its name when it is complete; a killed run goes on where it was.

    OUT.partial/run.json       what the run was begun with
    OUT.partial/journal.jsonl  one line per finished recording: it is kept, never anonymized again
    OUT.partial/making/        what is being written
    OUT.partial/release/       finished: will be OUT
    OUT.partial/lock           held by the run at work

Only the process that holds the lock gives names and writes the journal, so a kill at any moment loses at most the
recordings that were at work. Nothing of OUT.partial has left the house: to drop what is not in the journal costs no
privacy.

With a ledger, OUT.partial/run.id names the run there, and a recording goes through these steps:

    reserve (synced)  ->  noise is drawn  ->  commit (synced)  ->  its place in release/  ->  its line in the journal

Killed before the commit, what was drawn was never named: the next run drops it and takes up the reservation, which
counts once. Killed between commit and journal, the recording is drawn and counted a second time. A run that is given up
(OUT.partial removed) leaves its reservations counted. So the ledger may count too much, never too little.

A job of an array makes one part, every Nth recording, in OUT.partKofN.partial; the run that follows takes the parts
over, makes what they lack and gives the name.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpanon
from dpanon.anonymize.sources import PARTIAL, Plan, printable, random_name
from dpanon.anonymize.statement import set_statement, write_statement, write_text
from dpanon.anonymize.workers import Done, Load, Options, Task, load, one_thread, open_ledger, outcomes
from dpanon.data.audio import SHIFT
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.errors import StaleError, UsageError

if TYPE_CHECKING:
    from dpanon.privacy.ledger import Ledger

CARRIED = ("text", "utt2spk", "spk2gender", "utt2lang", "spk2lang")  # labels; other tables were made from the speech
HEADER = 44  # bytes of a WAV without tags


@dataclass(frozen=True)
class Result:
    """``statement`` is privacy.json, or None when nothing was released."""

    out: Path
    statement: dict | None
    released: int
    refused: int
    kept: int  # of them, from an earlier run
    names: Path | None = None
    head: str = ""  # of the ledger


def release(
    plan: Plan,
    options: Options,
    jobs: int = 1,
    load: Load = load,
    on_refused: Callable[[Path, str], None] = lambda path, reason: None,
    on_done: Callable[[Path], None] = lambda path: None,
) -> Result:
    """Anonymize everything in ``plan``.

    Args:
        jobs: processes; the result does not depend on it.
        load: makes the system; called here once and once in every process.
        on_refused: told the recording and the reason, once for each that is refused.
        on_done: told each recording that is dealt with.

    Raises:
        UsageError: OUT exists, or another run is at work on it.
        StaleError: an unfinished run was begun with other options.
        LedgerError: the ledger cannot be used. What is not counted there is not released.
    """
    if os.path.lexists(plan.out):
        return _released_before(plan, options)
    one_thread()
    ledger = open_ledger(options)  # what is wrong with it shows before any work
    system = load(options)
    one_thread()
    system.pool.choose(options.target)  # an unknown target is found before any work
    if plan.part is not None and plan.whole.partial.exists():
        return Result(plan.out, None, 0, 0, 0)  # the parts are being taken over: nothing is left to do here
    with _open(plan, options, ledger) as run:
        run.take_over_parts()
        journal = run.finished()
        tasks = run.tasks(journal)
        refused = [*plan.troubles]
        kept = len(journal)
        for path, reason in refused:
            on_refused(path, reason)
        for source in plan.sources:
            if source.key in journal:
                on_done(source.path)
        for outcome in outcomes(tasks, options, load, system, jobs, ledger):
            if isinstance(outcome, Done):
                journal[outcome.task.key] = run.record(outcome)
            else:
                refused.append((outcome.task.path, outcome.reason))
                on_refused(outcome.task.path, outcome.reason)
            on_done(outcome.task.path)
        if plan.part is not None:
            return Result(plan.out, None, len(journal), len(refused), kept, head=ledger.head if ledger else "")
        if not journal:
            run.remove()
            return Result(plan.out, None, 0, len(refused), 0, head=ledger.head if ledger else "")
        return run.finish(journal, len(refused), kept)


class _Run:
    """An unfinished release on disk, locked."""

    def __init__(self, plan: Plan, options: Options, ledger: Ledger | None = None, root: Path | None = None):
        self.plan, self.options, self.ledger = plan, options, ledger
        self.root = root or plan.partial
        self.release, self.making = self.root / "release", self.root / "making"
        self.journal = self.root / "journal.jsonl"

    def check(self) -> None:
        """StaleError if it was begun with other options than these."""
        record, was = self._record(), json.loads((self.root / "run.json").read_text(encoding="utf-8"))
        for name in record | was:
            if was.get(name) != record.get(name):
                raise StaleError(
                    f"{self.root} was begun with {name} {was.get(name)!r}, now it is {record.get(name)!r}: give the "
                    "same options to go on, choose another OUT, or remove it to start again"
                )

    def begin(self) -> None:
        if (self.root / "run.json").exists():
            self.check()
        else:
            write_text(self.root / "run.json", json.dumps(self._record(), indent=1) + "\n")
        if self.ledger is not None and not (self.root / "run.id").exists():
            write_text(self.root / "run.id", secrets.token_hex(16) + "\n")
        shutil.rmtree(self.making, ignore_errors=True)
        self.making.mkdir()
        self.release.mkdir(exist_ok=True)

    def take_over_parts(self) -> None:
        """What jobs of an array finished. Journal first: killed in between, it is done again from the same parts."""
        folders = self.plan.parts_begun()
        if self.plan.part is not None:
            if strange := [path for path in folders if not path.name.endswith(f"of{self.plan.part[1]}{PARTIAL}")]:
                raise StaleError(f"{strange[0]}: was begun with another number of parts; go on with that one")
            return
        with ExitStack() as locks:
            for folder in folders:
                locks.enter_context(_locked(folder, self.plan.out))
                _Run(self.plan, self.options, root=folder).check()
            if folders:
                write_text(
                    self.journal, "".join(_whole_lines(path / self.journal.name) for path in (self.root, *folders))
                )
            for folder in folders:
                for wav in sorted((folder / "release").rglob("*.wav")):
                    to = self.release / wav.relative_to(folder / "release")
                    to.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(wav, to)
                shutil.rmtree(folder)

    def finished(self) -> dict[str, dict]:
        """key -> journal line of what is finished; drops everything else from the release."""
        keys = {source.key: source for source in self.plan.sources}
        entries: dict[str, dict] = {}
        if self.journal.exists():
            for line in _whole_lines(self.journal).splitlines():
                entry = json.loads(line)
                source = keys.get(entry["key"])
                if source and entry["stat"] == _stat(source.path) and self._is_whole(entry["row"]):
                    entries[entry["key"]] = entry
            write_text(self.journal, "".join(json.dumps(entry) + "\n" for entry in entries.values()))
        wanted = {self.wav(entry["row"]["utt"]) for entry in entries.values()}
        for path in sorted(self.release.rglob("*")):
            if path.is_file() and path not in wanted:
                path.unlink()
        return entries

    def tasks(self, journal: Mapping[str, dict]) -> list[Task]:
        """What is left to do, each with its public name."""
        taken = {entry["row"]["utt"] for entry in journal.values()}
        tasks: list[Task] = []
        run_id = None if self.ledger is None else (self.root / "run.id").read_text(encoding="ascii").strip()
        data = self.plan.data
        for source in self.plan.sources:
            if source.key not in journal:
                utt = source.utt or random_name(source.key, taken, self.options.keyed_noise)
                taken.add(utt)
                release = None if run_id is None else f"{run_id}|{source.key}"
                speaker = None if data is None else data.speaker(source.key)
                made = self.making / f"{len(tasks)}.wav"
                tasks.append(Task(source.key, utt, source.path, made, speaker, release))
        return tasks

    def record(self, done: Done) -> dict:
        """Give the recording its place, then remember it: in this order, a kill in between only repeats work."""
        if self.ledger is not None and done.receipt is not None:
            self.ledger.commit(done.receipt)
        wav = self.wav(done.row["utt"])
        wav.parent.mkdir(parents=True, exist_ok=True)
        os.replace(done.task.made, wav)
        entry = {"key": done.task.key, "stat": _stat(done.task.path), "row": done.row, "details": done.details}
        with self.journal.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
        return entry

    def wav(self, utt: str) -> Path:
        return self.release / f"{utt}.wav" if self.plan.kind == "file" else self.release / "wav" / f"{utt}.wav"

    def finish(self, journal: Mapping[str, dict], refused: int, kept: int) -> Result:
        """Statement and tables, one time of change for all files, and the name."""
        rows = [entry["row"] for entry in journal.values()]
        data = self.plan.data
        speakers = {} if data is None else {row["utt"]: data.speaker(row["utt"]) for row in rows}
        pairs = [(entry["row"], entry["details"]) for entry in journal.values()]
        statement = set_statement(self.options.system, self.options.public(), pairs, refused, speakers)
        prefix = f"{rows[0]['utt']}." if self.plan.kind == "file" else ""
        json_file, rows_file = (self.release / f"{prefix}privacy.{end}" for end in ("json", "jsonl"))
        if data is not None:
            _write_tables(data, self.release, rows)
        write_statement(statement, rows, json_file, rows_file)
        names = self._write_names(journal)
        now = time.time()
        for path in self.release.rglob("*"):
            os.utime(path, (now, now))  # no order of work, no time of the source
        if self.plan.kind == "file":
            for path in (rows_file, json_file):
                os.replace(path, self.plan.out.with_name(path.name))
            os.replace(self.wav(rows[0]["utt"]), self.plan.out)
        else:
            os.rename(self.release, self.plan.out)
        self.remove()
        head = "" if self.ledger is None else self.ledger.head
        return Result(self.plan.out, statement, len(rows), refused, kept, names, head)

    def remove(self) -> None:
        shutil.rmtree(self.root)

    def _record(self) -> dict[str, Any]:
        return {"dpanon": dpanon.__version__, "source": os.path.abspath(self.plan.source), **self.options.record()}

    def _write_names(self, journal: Mapping[str, dict]) -> Path | None:
        """Which random name is whose, for the owner only and outside of the release."""
        given = {entry["row"]["utt"]: key for key, entry in journal.items()}
        if self.plan.kind != "folder" or self.options.keep_names:
            return None
        file = self.plan.out.with_name(f"{self.plan.out.name}.names.tsv")
        old = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines() if file.exists() else []
        lines = dict.fromkeys([*old, *(f"{utt}.wav\t{printable(given[utt])}" for utt in sorted(given))])
        file.touch(mode=0o600)
        with file.open("w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.writelines(f"{line}\n" for line in lines)
        return file

    def _is_whole(self, row: Mapping) -> bool:
        wav = self.wav(row["utt"])
        return wav.is_file() and wav.stat().st_size == HEADER + 2 * SHIFT * row["num_frames"]


@contextmanager
def _open(plan: Plan, options: Options, ledger: Ledger | None) -> Iterator[_Run]:
    run = _Run(plan, options, ledger)
    if plan.kind == "file":
        for end in ("privacy.json", "privacy.jsonl"):
            beside = plan.out.with_name(f"{plan.sources[0].utt}.{end}")
            if os.path.lexists(beside) and not run.root.exists():
                raise UsageError(f"{beside} exists, and would be written beside {plan.out.name}; choose another OUT")
    if run.root.exists() and not (run.root / "run.json").exists():
        strangers = [name for name in os.listdir(run.root) if name != "lock" and not name.startswith(".run.json.tmp")]
        if strangers or run.root.is_symlink():
            raise UsageError(f"{run.root} exists, and is no unfinished run; move it away or choose another OUT")
    run.root.mkdir(parents=True, exist_ok=True)
    with _locked(run.root, plan.out):
        run.begin()
        yield run


@contextmanager
def _locked(folder: Path, out: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"{out}: another run is at work on it") from error
        yield


def _released_before(plan: Plan, options: Options) -> Result:
    """OUT is there. Done, if it is known to be the release of these recordings with these options; else misuse."""
    again = "it is not overwritten, and nothing is released a second time by itself; choose another OUT"
    beside = plan.out.with_name(f"{plan.out.stem}.privacy.json")
    statement_file = beside if plan.kind == "file" else plan.out / "privacy.json"
    run = _Run(plan, options)
    if (run.root / "run.json").exists():
        if any(run.release.rglob("*.wav")):
            raise UsageError(f"{plan.out} exists, and so does an unfinished run in {run.root}; move one of them away")
        run.check()
        run.remove()  # it was killed between giving the name and tidying up
    elif plan.data is None or not statement_file.is_file():
        raise UsageError(f"{plan.out} exists: {again}")
    statement = json.loads(statement_file.read_text(encoding="utf-8"))
    refused = statement["num_refused"]
    if plan.data is not None:
        made = DataDir.read(plan.out)
        was, now = statement.get("options", {}), options.public()
        for name in now | was:
            if was.get(name) != now.get(name):
                raise StaleError(f"{plan.out} exists, with {name} {was.get(name)!r}, not {now.get(name)!r}: {again}")
        if not set(made.utts) <= set(plan.data.utts) or len(made) + refused != len(plan.data):
            raise StaleError(f"{plan.out} exists, made from other utterances than those of {plan.source}: {again}")
    return Result(plan.out, statement, statement["num_released"], refused, statement["num_released"])


def _write_tables(data: DataDir, folder: Path, rows: list[dict]) -> None:
    """The tables of a data directory for the released utterances, validated."""
    frames = {row["utt"]: row["num_frames"] for row in rows}
    speakers = {data.speaker(utt) for utt in frames}
    tables: dict[str, dict[str, Any]] = {
        "wav.scp": {utt: f"wav/{utt}.wav" for utt in frames},
        "utt2num_samples": {utt: SHIFT * num for utt, num in frames.items()},
    }
    for name in CARRIED:
        if data.has(name):
            ids = speakers if name.startswith("spk2") else frames
            tables[name] = {key: value for key, value in data.table(name).items() if key in ids}
    trials = [trial for trial in data.trials() if trial[1] in frames] if data.has("trials") else None
    enrolls = [utt for utt in data.enrolls if utt in frames]
    write_data_dir(folder, tables, trials or None, enrolls or None, allow_existing=True)


def _whole_lines(file: Path) -> str:
    """The lines of a journal; the last one may be cut short, and is left out."""
    text = file.read_bytes().decode() if file.exists() else ""
    return text[: text.rfind("\n") + 1]


def _stat(path: Path) -> list[int]:
    """Tells a recording from a later one under its name."""
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]
