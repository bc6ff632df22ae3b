#!/usr/bin/env python3
"""What was done in a recipe: every stamp and every metrics.json below the given directories.

    utils/show_exp.py [DIR ...]      (default: data exp)

A row is a step's directory, done or begun, the seconds it took, and its inputs; a begun one names the job logs
that did not end with exit code 0. A metrics.json is shown with its plain values.
"""

import json
import sys
from pathlib import Path

from jobs import END


def unfinished(directory: Path) -> list[str]:
    logs = []
    for log in sorted(directory.rglob("log")) + sorted(directory.rglob("*.log")):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        end = END.fullmatch(lines[-1]) if lines else None
        if lines and lines[0].startswith("# ") and not (end and end[1] == "0"):
            logs.append(str(log))
    return logs


def show_stamp(file: Path) -> None:
    record = json.loads(file.read_text(encoding="utf-8"))
    inputs = " ".join(f"{name}={value[:8]}" for name, value in record["inputs"].items())
    state = "begun" if file.name == "stamp.begun.json" else "done"
    seconds = f"{record['seconds']:.0f} s" if "seconds" in record else ""
    print(f"{state:6}{seconds:>8}  {file.parent}  {inputs}")
    if state == "begun":
        for log in unfinished(file.parent)[:5]:
            print(f"{'':16}see {log}")


def show_metrics(file: Path) -> None:
    values = json.loads(file.read_text(encoding="utf-8"))
    plain = {key: value for key, value in values.items() if isinstance(value, str | int | float)}
    text = " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in plain.items())
    print(f"{'':14}  {file.parent}  {text}")


def main() -> int:
    if set(sys.argv[1:]) & {"-h", "--help"}:
        print(__doc__.strip())
        return 0
    tops = [Path(text) for text in sys.argv[1:] or ("data", "exp")]
    if sys.argv[1:] and (absent := [str(top) for top in tops if not top.is_dir()]):
        print(f"error: no directory {' '.join(absent)}", file=sys.stderr)
        return 1
    files = [file for top in tops for file in top.rglob("*.json")]
    for file in sorted(files):
        if file.name in ("stamp.json", "stamp.begun.json"):
            show_stamp(file)
        elif file.name == "metrics.json":
            show_metrics(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
