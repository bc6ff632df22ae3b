"""metrics.json of the scoring steps -> one JSON object per system, the only source of every table.

    {"system", "status", "rows": [{"set", "epsilon_frame", "epsilon_utterance", "eer_floor", "asv": {condition:
     strongest attacker's metrics}, "asr": {}, "asr_other": [other recognisers], "f0": {}, "quality": {}}],
     "attackers": [...], "provenance": {...}}

It holds no path of the machine it was made on.
"""

import os
import platform
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import dpanon
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import Claim, read_claim
from dpanon.evaluate.metrics import read_metrics

STATUSES = ("smoke", "reproduced", "paper")
PRIVATE = ("data", "original")  # paths in metrics.json that stay on this machine
_OWN = ("kind", "system", "set", "strongest")  # the strongest of a folder need not be that of all
_CLAIM = ("epsilon_frame", "epsilon_utterance", "eer_floor")


def collect(exp: Path, systems: Sequence[str] | None = None) -> dict[str, dict]:
    """system -> its rows and attackers, from every metrics.json below ``exp``.

    Args:
        systems: names; None: all that are found.
    """
    found: dict[str, dict] = {}
    for file, metrics in read_metrics(exp):
        if metrics["kind"] == "asi":  # of features, not of a system: dpanon.report.identification
            continue
        system = found.setdefault(str(metrics["system"]), {"rows": {}, "attackers": {}})
        row = system["rows"].setdefault(str(metrics["set"]), {"set": metrics["set"], "asv": {}})
        public = {key: value for key, value in metrics.items() if key not in (*PRIVATE, *_OWN)}
        if metrics["kind"] == "asr_other":
            others = row.setdefault("asr_other", [])
            if any(other["recogniser"] == public["recogniser"] for other in others):
                raise EvaluationError(
                    f"{file}: another file has figures of {public['recogniser']!r} on {row['set']}; remove the old one"
                )
            row["asr_other"] = sorted([*others, public], key=lambda other: str(other["recogniser"]))
            continue
        if metrics["kind"] != "asv":
            row[metrics["kind"]] = public
            continue
        key = tuple(str(metrics.get(part, "")) for part in ("set", "condition", "attacker", "knowledge"))
        if key in system["attackers"] and system["attackers"][key] != public | {"set": metrics["set"]}:
            raise EvaluationError(f"{file}: another file has other figures of {' '.join(key)}; remove the old one")
        system["attackers"][key] = public | {"set": metrics["set"]}
        row.update({name: metrics.get(name) for name in _CLAIM})
        best = row["asv"].get(metrics["condition"])
        if best is None or metrics["eer"] < best["eer"]:
            row["asv"][metrics["condition"]] = public
    if not found:
        raise EvaluationError(f"{exp}: no metrics.json below it; run the scoring steps first")
    unknown = sorted(set(systems or ()) - set(found))
    if unknown:
        raise UsageError(f"{exp}: no figures of {unknown}; found {sorted(found)}")
    return {
        name: {
            "system": name,
            "rows": [found[name]["rows"][key] for key in sorted(found[name]["rows"])],
            "attackers": [found[name]["attackers"][key] for key in sorted(found[name]["attackers"])],
        }
        for name in sorted(found)
        if systems is None or name in systems
    }


def data_dirs(exp: Path) -> tuple[dict[str, Path], Path | None]:
    """system -> directory that was scored, and the directory of the original speech, as far as they still exist."""
    dirs: dict[str, Path] = {}
    original: Path | None = None
    for _, metrics in read_metrics(exp):
        path = Path(str(metrics.get("data", "")))
        if (path / "wav.scp").is_file():
            dirs.setdefault(str(metrics["system"]), path)
        if metrics["kind"] == "f0" and (Path(str(metrics.get("original", ""))) / "wav.scp").is_file():
            original = original or Path(str(metrics["original"]))
    return dirs, original or dirs.get("original")


def released_dirs(exp: Path) -> dict[str, Path]:
    """system -> a directory that was scored and has a privacy.json, with or without recordings in it."""
    dirs: dict[str, Path] = {}
    for _, metrics in read_metrics(exp):
        path = Path(str(metrics.get("data", "")))
        if (path / "privacy.json").is_file():
            dirs.setdefault(str(metrics["system"]), path)
    return dirs


def claim_of(path: Path) -> Claim | None:
    """What the set promises in words (adjacency, sentence, sampler); None for clear speech."""
    if not (path / "privacy.json").is_file():
        return None
    return read_claim(path, ())


def claim_words(details: dict) -> dict:
    """The parts of privacy.json that a reader of a table needs, as text."""
    flat = {**(details.get("guarantee") or {}), **details}
    words = {key: flat[key] for key in ("sentence", "adjacency", "sampler", "unit") if isinstance(flat.get(key), str)}
    if flat.get("releasable") is False:
        words["releasable"] = "no: keyed noise, for tests only"
    return words


def provenance(command: str = "", started: float | None = None) -> dict:
    """What made the figures: command, version, commit, hardware, time."""
    return {
        "command": command or None,
        "version": dpanon.__version__,
        "commit": commit(Path(dpanon.__file__).parent),
        "hardware": hardware(),
        "seconds": None if started is None else max(0, round(time.time() - started)),
    }


def commit(folder: Path) -> str:
    """Short commit of the source tree with "clean" or "dirty"; "unknown" for an installed package."""
    git = ("git", "-C", str(folder))
    try:
        name = subprocess.run((*git, "rev-parse", "--short", "HEAD"), capture_output=True, text=True, timeout=20)
        # a results file that was just written does not change what is computed
        files = (
            "status",
            "--porcelain",
            "--",
            ":/dpanon",
            ":/steps",
            ":/utils",
            ":/local",
            ":/egs/**/*.sh",
            ":/egs/**/conf",
        )
        changes = subprocess.run((*git, *files), capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if name.returncode or changes.returncode:
        return "unknown"
    return f"{name.stdout.strip()} ({'dirty' if changes.stdout.strip() else 'clean'})"


def hardware() -> str:
    """Processor, number of usable cores, GPUs if any."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(encoding="utf-8", errors="replace"), re.M)
        model = match[1].strip() if match else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{cores}x {model}"
    import torch  # here, as nothing else in a report needs it

    if torch.cuda.is_available():
        text += f", {torch.cuda.device_count()}x {torch.cuda.get_device_name(0)}"
    return text
