"""Systems of a recipe side by side (paper A, figures 3 to 6): privacy, words and pitch, as measured. SVG text."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from dpanon.evaluate.ceiling import BITS_PER_WORD
from dpanon.privacy import capacity
from dpanon.report.plots import LINES, svg

WORDS_PER_SECOND = 2.7  # of read speech
_VALUE = re.compile(r"_(f0eps|f0mu|bneps|tokeneps)([0-9.]+)")
_DRAW = re.compile(r"_draw\d+$")  # another release of the same system


def collect(results: Path) -> list[dict]:
    """One row for each system in results/*.json: what it is called, its noise, and what was measured of it."""
    rows = []
    for path in sorted(results.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, Mapping) or not isinstance(record.get("rows"), list) or not record["rows"]:
            continue
        row = record["rows"][0]
        name = str(record.get("system", path.stem))
        measured = {
            **{f"noise_{what}": float(value) for what, value in _VALUE.findall(name)},
            **{f"eer_{condition}": found for condition, found in row.get("asv", {}).items()},
            **{key: row[key] for key in ("asr", "f0") if key in row},
        }
        rows.append({"name": name, "kind": _VALUE.sub("", _DRAW.sub("", name)), **measured, "facts": row})
    return rows


def curves(rows: Sequence[Mapping]) -> str:
    """Three panels: WER against EER; correlation of f0 against its noise; WER against nats a second for what is said.

    Args:
        rows: of ``collect``.
    """
    figure = Figure(figsize=(12, 3.9), layout="constrained")
    trade, pitch, cost = figure.subplots(1, 3)
    kinds = sorted({row["kind"] for row in rows})
    colour = {kind: LINES[i % len(LINES)] for i, kind in enumerate(kinds)}
    named = set()  # in the legend
    for row in rows:
        for condition, mark in (("oa", "o"), ("aa", "s")):
            eer = row.get(f"eer_{condition}")
            if eer and "asr" in row:
                label = f"{row['kind']}, {condition}"
                point = 100 * eer["eer"], 100 * row["asr"]["wer"]
                trade.errorbar(
                    *point,
                    xerr=_span(eer, "eer"),
                    yerr=_span(row["asr"], "wer"),
                    fmt=mark,
                    color=colour[row["kind"]],
                    label=None if label in named else label,
                    linewidth=0.8,
                    markersize=4,
                )
                named.add(label)
                noise = ", ".join(value for _, value in _VALUE.findall(row["name"]))
                trade.annotate(noise, point, (3, 2), textcoords="offset points", fontsize=5)
    trade.set_xlabel("EER of the strongest attacker / %", fontsize=8)
    trade.set_ylabel("WER / %", fontsize=8)
    for axes, x, y, label in (
        (pitch, "noise_f0eps", "f0", "epsilon of the utterance"),
        (pitch, "noise_f0mu", "f0", "mu of the utterance"),
    ):
        _lines(axes, [row for row in rows if x in row and y in row], colour, x, label)
    pitch.set_xscale("log")
    pitch.set_xlabel("epsilon (or mu) of the pitch of an utterance", fontsize=8)
    pitch.set_ylabel("correlation of f0", fontsize=8)
    pitch.set_ylim(-0.1, 1.05)
    for kind in kinds:
        mine = sorted(
            (nats_per_second(row), 100 * row["asr"]["wer"]) for row in rows if row["kind"] == kind and "asr" in row
        )
        mine = [point for point in mine if math.isfinite(point[0])]
        if mine:
            cost.plot(*zip(*mine, strict=True), "o-", color=colour[kind], label=kind, markersize=4)
    limit = capacity.pure_epsilon_for(WORDS_PER_SECOND * BITS_PER_WORD / capacity.NAT)
    cost.axvline(limit, color="black", linestyle=":", label="least epsilon that words need")
    cost.set_xscale("log")
    cost.set_xlabel("epsilon a second for what is said", fontsize=8)
    cost.set_ylabel("WER / %", fontsize=8)
    for axes in (trade, pitch, cost):
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=5, frameon=False)
    return svg(figure)


def nats_per_second(row: Mapping) -> float:
    """Basic epsilon of one second of what is said; infinite where it has no noise."""
    from dpanon.models.tokens import RATE

    if "noise_bneps" in row:
        return 100.0 * row["noise_bneps"]
    return RATE * row["noise_tokeneps"] if "noise_tokeneps" in row else math.inf


def _lines(axes, rows: Sequence[Mapping], colour: Mapping, x: str, label: str) -> None:
    for kind in sorted({row["kind"] for row in rows}):
        mine = sorted((row[x], row["f0"]["f0_correlation"]) for row in rows if row["kind"] == kind)
        axes.plot(*zip(*mine, strict=True), "o-", color=colour[kind], label=f"{kind}, {label}", markersize=4)


def _span(figures: Mapping, name: str) -> list[list[float]] | None:
    low, high = figures.get(f"{name}_low"), figures.get(f"{name}_high")
    if low is None or high is None:
        return None
    return [[100 * max(0.0, figures[name] - low)], [100 * max(0.0, high - figures[name])]]
