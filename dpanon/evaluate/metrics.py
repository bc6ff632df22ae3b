"""The files in which scoring steps leave their figures for the report."""

import json
import math
import os
from pathlib import Path

from dpanon.evaluate import EvaluationError

KINDS = ("asv", "asr", "asr_other", "f0", "quality", "ser", "voices", "gender", "commands", "membership", "asi")


def write_metrics(path: Path, kind: str, system: str, set_name: str, values: dict) -> Path:
    """Write ``<path>/metrics.json``: one flat object with kind, system and set."""
    if kind not in KINDS:
        raise EvaluationError(f"unknown kind of metrics {kind!r}; choose one of {', '.join(KINDS)}")
    content = {"kind": kind, "system": system, "set": set_name} | values
    file = path / "metrics.json"
    write_json(file, content)
    return file


def write_json(file: Path, content: object) -> None:
    """Write beside and rename. NaN and infinity become null: they are not JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    tmp = file.with_name(f".{file.name}.tmp{os.getpid()}")
    tmp.write_text(json.dumps(_finite(content), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tmp.replace(file)


def read_metrics(root: Path) -> list[tuple[Path, dict]]:
    """Every metrics.json below ``root``, by path."""
    found = []
    for file in sorted(root.rglob("metrics.json")):
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise EvaluationError(f"{file}: not JSON: {error}") from error
        if isinstance(values, dict) and values.get("kind") in KINDS:
            found.append((file, values))
    return found


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
