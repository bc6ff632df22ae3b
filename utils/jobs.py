"""What utils/run.py and utils/slurm.py share: `[JOB=1:N] LOG COMMAND ...`, logs, the report at the end."""

import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

END = re.compile(r"# exit code (-?\d+), \d+ s")
TAIL = 20  # lines of a failing log that are shown


@dataclass
class Call:
    """A parsed command line."""

    log: str
    command: list[str]
    name: str = ""  # what is replaced by the number of the job, '' for a single job
    jobs: list[int] = field(default_factory=lambda: [1])
    options: dict[str, str] = field(default_factory=dict)

    def line(self, job: int) -> list[str]:
        return [self._fill(word, job) for word in self.command]

    def log_path(self, job: int) -> Path:
        return Path(self._fill(self.log, job))

    def _fill(self, text: str, job: int) -> str:
        return text.replace(self.name, str(job)) if self.name else text

    def exit_code(self, job: int) -> int | None:
        """What the log says; None for no end, or the log of another command."""
        try:
            lines = self.log_path(job).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return None
        end = END.fullmatch(lines[-1]) if lines else None
        return int(end[1]) if end and lines[0] == f"# {shlex.join(self.line(job))}" else None


def parse(argv: list[str], options: tuple[str, ...], doc: str) -> Call:
    found = {}
    while argv and argv[0].startswith("-"):
        if argv[0] in ("-h", "--help"):
            print(doc.strip())
            sys.exit(0)
        if argv[0] not in options:
            misuse(f"unknown option {argv[0]}; known: {' '.join(options)}")
        if len(argv) < 2:
            misuse(f"{argv[0]} needs a value")
        found[argv[0]], argv = argv[1], argv[2:]
    for name in ("--max-jobs", "--only"):
        if not re.fullmatch(r"[1-9]\d*", found.get(name, "1")):
            misuse(f"{name} takes a whole number > 0, not {found[name]!r}")
    if found.get("--pick", "incomplete") not in ("incomplete", "all"):
        misuse(f"--pick takes incomplete or all, not {found['--pick']!r}")
    spread = re.fullmatch(r"([A-Z]+)=(\d+):(\d+)", argv[0]) if argv else None
    argv = argv[1:] if spread else argv
    if len(argv) < 2:
        misuse("expected [JOB=1:N] LOG COMMAND ...")
    call = Call(argv[0], argv[1:], options=found)
    if spread:
        call.name, call.jobs = spread[1], list(range(int(spread[2]), int(spread[3]) + 1))
        if not call.jobs:
            misuse(f"{spread[0]} is no job at all")
        if len(call.jobs) > 1 and call.name not in call.log:
            misuse(f"{len(call.jobs)} jobs cannot share the log {call.log}; put {call.name} into its name")
    if found.get("--pick") == "incomplete":
        call.jobs = [job for job in call.jobs if call.exit_code(job) != 0]
    return call


def misuse(message: str) -> None:
    print(f"{sys.argv[0]}: {message} (see --help)", file=sys.stderr)
    sys.exit(2)


def report(call: Call) -> int:
    """Say how it went; the exit code of the whole."""
    failed = [job for job in call.jobs if call.exit_code(job) != 0]
    if not failed:
        return 0
    log = call.log_path(failed[0])
    print(f"error: {len(failed)} of {len(call.jobs)} jobs failed; the end of {log}:", file=sys.stderr)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else ["(no log)"]
    print("\n".join(f"  {line}" for line in lines[-TAIL:]), file=sys.stderr)
    if len(failed) > 1:
        print(f"  also: {' '.join(str(call.log_path(job)) for job in failed[1:6])}", file=sys.stderr)
    code = call.exit_code(failed[0])
    return code if code is not None and 0 < code < 126 else 1
