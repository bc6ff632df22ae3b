#!/usr/bin/env python3
"""Run a command once, or as an array of N jobs, through Slurm. The call is that of utils/run.py.

    utils/slurm.py [--pick incomplete] [--max-jobs N] [--gpu N] [--cpus N] [--mem 8G] [--time 1-00:00:00]
                   [--partition NAME] [--sbatch OPTIONS] [JOB=1:N] LOG COMMAND [ARGUMENT ...]

Waits for the end (sbatch --wait). Each task runs utils/run.py --only K in this directory, so the logs are the
same. The directory must be one that the nodes share. --sbatch takes any further options, as one word.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from jobs import Call, parse, report

OPTIONS = ("--gpu", "--cpus", "--mem", "--time", "--partition", "--sbatch")
PATIENCE = 15  # seconds a shared disk may take to show the last line of a log


def script(call: Call) -> str:
    spread = [f"{call.name}=1:{max(call.jobs)}"] if call.name else []
    launcher = Path(__file__).with_name("run.py")
    rest = shlex.join([*spread, call.log, *call.command])
    line = f'{shlex.join([sys.executable, str(launcher)])} --only "$SLURM_ARRAY_TASK_ID" {rest}'
    return f"#!/usr/bin/env bash\ncd {shlex.quote(os.getcwd())} || exit 1\nexec {line}\n"


def options(call: Call, directory: Path) -> list[str]:
    given = call.options
    limit = f"%{given['--max-jobs']}" if "--max-jobs" in given else ""
    words = ["--wait", "--parsable", f"--array={','.join(map(str, call.jobs))}{limit}"]
    words += [f"--output={directory}/slurm.%a.log", f"--job-name={Path(call.command[0]).name}"]
    for name, option in (
        ("--cpus", "cpus-per-task"),
        ("--mem", "mem"),
        ("--time", "time"),
        ("--partition", "partition"),
    ):
        if name in given:
            words.append(f"--{option}={given[name]}")
    if given.get("--gpu", "0") != "0":
        words.append(f"--gres=gpu:{given['--gpu']}")
    return words + shlex.split(given.get("--sbatch", ""))


def main() -> int:
    call = parse(sys.argv[1:], ("--pick", "--max-jobs", *OPTIONS), __doc__)
    if not call.jobs:
        return 0
    if shutil.which("sbatch") is None:
        print("error: there is no sbatch on this machine; use utils/run.py in cmd.sh", file=sys.stderr)
        return 1
    log = Path(call.log.replace(call.name, "all") if call.name else call.log)
    directory = log.parent / "slurm"
    directory.mkdir(parents=True, exist_ok=True)
    for job in call.jobs:  # the end of an earlier run must not pass for the end of this one
        call.log_path(job).unlink(missing_ok=True)
    file = directory / f"{log.name}.sh"
    file.write_text(script(call), encoding="utf-8")
    submitted = subprocess.run(["sbatch", *options(call, directory), str(file)], stdin=subprocess.DEVNULL)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and any(call.exit_code(job) is None for job in call.jobs):
        time.sleep(0.5)
    code = report(call)
    if code and submitted.returncode and not any(call.log_path(job).exists() for job in call.jobs):
        print(f"error: sbatch ended with {submitted.returncode} and no job began", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
