#!/usr/bin/env python3
"""Run a command once, or as N jobs in parallel, on this machine.

    utils/run.py [--pick incomplete] [--max-jobs N] [JOB=1:N] LOG COMMAND [ARGUMENT ...]

JOB in LOG and COMMAND is replaced by the number of the job. The first line of a log is the command, the
last one its exit code. utils/slurm.py is called in the same way; cmd.sh chooses between them.

  --pick incomplete  leave out the jobs whose log ends with exit code 0 of the same command
  --max-jobs N       run at most N at once (default: all)
  --only K           run job K alone and say nothing (used by utils/slurm.py)
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque

from jobs import Call, parse, report

BEAT = 60  # seconds between progress lines where there is no terminal


def start(call: Call, job: int) -> tuple[subprocess.Popen | None, float]:
    log = call.log_path(job)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream:
        stream.write(f"# {shlex.join(call.line(job))}\n")
        stream.flush()
        try:
            process = subprocess.Popen(
                call.line(job), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
            )
        except OSError as error:
            stream.write(f"{error}\n# exit code 127, 0 s\n")
            return None, 0.0
    return process, time.monotonic()


def finish(call: Call, job: int, code: int, began: float) -> None:
    with call.log_path(job).open("a", encoding="utf-8") as stream:
        stream.write(f"# exit code {code}, {time.monotonic() - began:.0f} s\n")


def progress(call: Call, done: int, began: float, last: list[float]) -> None:
    seconds, text = time.monotonic() - began, f"{done} of {len(call.jobs)} jobs done"
    if sys.stderr.isatty():
        end = "\n" if done == len(call.jobs) else ""
        print(f"\r  {text}, {seconds:.0f} s", end=end, file=sys.stderr, flush=True)
    elif seconds - last[0] > BEAT:
        last[0] = seconds
        print(f"  {text}, {seconds:.0f} s: {call.log}", file=sys.stderr, flush=True)


def run(call: Call) -> int:
    waiting, running, done = deque(call.jobs), {}, 0
    limit = int(call.options.get("--max-jobs", len(call.jobs) or 1))
    began, last = time.monotonic(), [0.0]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        while waiting or running:
            while waiting and len(running) < limit:
                job = waiting.popleft()
                process, at = start(call, job)
                if process is None:
                    done += 1
                else:
                    running[job] = process, at
            for job, (process, at) in list(running.items()):
                if (code := process.poll()) is not None:
                    finish(call, job, code, at)
                    del running[job]
                    done += 1
            progress(call, done, began, last)
            time.sleep(0.02 if time.monotonic() - began < 2 else 0.2)
    finally:  # interrupted: no job outlives its launcher
        for job, (process, at) in running.items():
            os.killpg(process.pid, signal.SIGTERM)
            finish(call, job, process.wait(), at)
    return report(call)


def main() -> int:
    call = parse(sys.argv[1:], ("--pick", "--max-jobs", "--only"), __doc__)
    if "--only" in call.options:
        call.jobs = [int(call.options["--only"])]
    return run(call)


if __name__ == "__main__":
    sys.exit(main())
