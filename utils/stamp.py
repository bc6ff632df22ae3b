#!/usr/bin/env python3
"""The stamp of a step: were these outputs made from these inputs? Called by utils/stamps.sh.

    utils/stamp.py check DIR NAME=INPUT ...   # exit 0 done, 10 to do, 3 made from other inputs
    utils/stamp.py mark DIR [OUTPUT ...]      # the step is finished

An input is a file (its content counts), a directory (the content of the files in it, not below, that are
neither logs nor stamps) or a plain value. What has a slash in it must exist. ``check`` leaves the
inputs in DIR/stamp.begun.json, ``mark`` makes DIR/stamp.json of it, so the inputs are those the step began with.
Nothing is ever rebuilt by itself: a second release of the same speech costs privacy a second time.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

DONE, TO_DO, STALE, FAILED = 0, 10, 3, 1


def digest(path: Path) -> str:
    """Hash of a file's content, or of the files in a directory."""
    total = hashlib.sha256()
    if path.is_dir():
        for file in sorted(path.iterdir()):
            if file.is_file() and not file.name.startswith((".", "stamp.")) and file.suffix != ".log":
                total.update(f"{file.name}\0{digest(file)}\0".encode())
    else:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                total.update(block)
    return total.hexdigest()


def describe(inputs: list[str]) -> dict[str, str]:
    """``name=input`` -> name: hash of a path's content, or the value itself."""
    found = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            raise SystemExit(f"{sys.argv[0]}: {text!r}: expected NAME=INPUT, each name once")
        path = Path(value)
        if value and path.exists():
            found[name] = digest(path)
        elif "/" in value:
            print(f"error: {name}: {value} does not exist; did an earlier stage fail?", file=sys.stderr)
            raise SystemExit(FAILED)
        else:
            found[name] = value
    return found


def changes(was: dict[str, str], now: dict[str, str]) -> str:
    """The first input that differs, as a phrase; '' if none does."""
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            old, new = (_short(inputs.get(name)) for inputs in (was, now))
            return f"{name} was {old}, is {new}"
    return ""


def _short(value: str | None) -> str:
    if value is None:
        return "not an input"
    return repr(value[:8] if len(value) == 64 else value)


def write(path: Path, record: dict) -> None:
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    tmp.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    tmp.rename(path)


def check(directory: Path, inputs: dict[str, str]) -> int:
    stamp, begun = directory / "stamp.json", directory / "stamp.begun.json"
    for file, verb in ((stamp, "made"), (begun, "begun")):
        if not file.is_file():
            continue
        record = json.loads(file.read_text(encoding="utf-8"))
        if change := changes(record["inputs"], inputs):
            return stale(f"{directory} was {verb} from other inputs: {change}", directory)
        for output, was in record.get("outputs", {}).items():
            if not Path(output).exists():
                return stale(f"{directory} was made, but {output} is gone", directory)
            if digest(Path(output)) != was:
                return stale(f"{directory} was made, but {output} is not what was made", directory)
        if verb == "made":
            print(f"{directory}: done before, from the same inputs")
            return DONE
    directory.mkdir(parents=True, exist_ok=True)
    write(begun, {"inputs": inputs, "began": time.time()})
    return TO_DO


def stale(what: str, directory: Path) -> int:
    print(f"error: {what}. Choose another directory or remove {directory}", file=sys.stderr)
    return STALE


def mark(directory: Path, outputs: list[str]) -> int:
    begun = directory / "stamp.begun.json"
    if not begun.is_file():
        print(f"error: {directory}: marked done without already_done before it", file=sys.stderr)
        return FAILED
    for output in outputs:
        if not Path(output).exists():
            print(f"error: {directory}: the step ended, but did not make {output}", file=sys.stderr)
            return FAILED
    record = json.loads(begun.read_text(encoding="utf-8"))
    seconds = round(time.time() - record.pop("began"), 1)
    record |= {"outputs": {output: digest(Path(output)) for output in outputs}, "seconds": seconds}
    write(directory / "stamp.json", record)
    begun.unlink()
    return DONE


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] not in ("check", "mark"):
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "check":
        return check(Path(sys.argv[2]), describe(sys.argv[3:]))
    return mark(Path(sys.argv[2]), sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
