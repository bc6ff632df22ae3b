"""P_ASI against epsilon: metrics.json of steps/score_asi.sh -> curves/identification.json -> a table, a figure."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from dpanon.attack.sanity import sanity
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.metrics import read_metrics
from dpanon.report.plots import LINES, svg
from dpanon.report.tables import markdown_table, provenance_line

FILE = Path("curves") / "identification.json"  # below the results folder
LABELS = {
    "bn": "bottleneck",
    "bn_tdnnf": "bottleneck of a TDNN-F on log-mel (paper A)",
    "f0": "f0",
    "fbank": "log-mel energies (no release)",
}
UNITS = {"bn": "frame", "bn_tdnnf": "frame", "f0": "utterance", "fbank": "-"}
HEADER = (
    "feature",
    "epsilon",
    "of one",
    "P_ASI % [95 %]",
    "linear attacker %",
    "on training pieces %",
    "chance %",
    "speakers",
    "test pieces",
)
NOTE = (
    "P_ASI: share of test pieces that an x-vector network trained on released features of the same speakers gives to "
    "somebody else (paper A, figure 5); intervals: bootstrap over speakers. Each utterance is cut into {pieces} "
    "pieces; of each speaker the first 80 % train, then 10 % validate and 10 % are attacked. With few utterances of a "
    "speaker, training and test share a recording, and a piece is short. log-mel energies are what no system "
    "releases: they show what this attacker can do. The linear attacker (dotted) is a discriminant analysis of means "
    "over the same pieces. The noise is the guarantee, P_ASI the success of one attacker."
)
_KEPT: tuple[str, ...] = (
    "feature",
    "epsilon",
    "pieces",
    "set",
    "error",
    "error_low",
    "error_high",
    "train_error",
    "valid_error",
)
_LINEAR = ("linear_error", "linear_error_low", "linear_error_high", "linear_valid_error")  # None: not attacked so
_KEPT += ("chance", "num_speakers", "num_test", "num_releases", "epochs", "best_epoch", "flags")


def collect(exp: Path) -> list[dict]:
    """One row per feature and epsilon, in the order of the table; epsilon inf is None, as JSON has it."""
    rows: dict[tuple, dict] = {}
    for file, metrics in read_metrics(exp):
        if metrics["kind"] == "asi":
            key = (metrics["feature"], metrics["epsilon"])
            if key in rows:
                raise EvaluationError(f"{file}: another file has figures of {key[0]} at epsilon {key[1]}; remove one")
            rows[key] = {name: metrics[name] for name in _KEPT} | {name: metrics.get(name) for name in _LINEAR}
    if not rows:
        raise EvaluationError(f"{exp}: no figures of identification below it; run steps/score_asi.sh first")
    order = list(LABELS)
    return sorted(rows.values(), key=lambda row: (order.index(row["feature"]), -_epsilon(row)))


def doubts(rows: Sequence[dict]) -> list[str]:
    """What is wrong with an attacker: of one row, or of the rows of one feature together."""
    said = [
        f"{LABELS[row['feature']]}, epsilon {_epsilon(row):g}: {flag}"
        for row in rows
        for flag in row["flags"]
        if math.isinf(_epsilon(row)) or "by chance" not in flag  # chance is what noise is for
    ]
    for feature in dict.fromkeys(row["feature"] for row in rows):
        mine = [row | {"epsilon": _epsilon(row)} for row in rows if row["feature"] == feature]
        control = [] if feature == "fbank" else [row for row in rows if row["feature"] == "fbank"]
        said += [f"{LABELS[feature]}: {doubt}" for doubt in sanity(mine, control)]
    return said


def curves(rows: Sequence[dict]) -> str:
    """Figure 5 of paper A as SVG text: P_ASI against epsilon, the last point of each curve without noise."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    finite = sorted({_epsilon(row) for row in rows if math.isfinite(_epsilon(row))})
    places = {epsilon: i for i, epsilon in enumerate([*finite, math.inf])}
    for number, feature in enumerate(dict.fromkeys(row["feature"] for row in rows)):
        mine = sorted((row for row in rows if row["feature"] == feature), key=_epsilon)
        x = [places[_epsilon(row)] for row in mine]
        y, low, high = ([100 * row[key] for row in mine] for key in ("error", "error_low", "error_high"))
        colour = LINES[(number + 1) % len(LINES)]
        axes.plot(x, y, "o-" if len(x) > 1 else "s", color=colour, label=LABELS[feature])
        axes.vlines(x, low, high, color=colour, alpha=0.5)
        linear = [(at, 100 * row["linear_error"]) for at, row in zip(x, mine, strict=True) if row.get("linear_error")]
        if linear:
            axes.plot(*zip(*linear, strict=True), "x:", color=colour, linewidth=0.8)
    chance = 100 * rows[0]["chance"]
    axes.axhline(chance, color="k", linestyle=":", label=f"chance, {rows[0]['num_speakers']} speakers")
    axes.set_xticks(list(places.values()), [f"{epsilon:g}" for epsilon in finite] + ["no noise"])
    axes.set_xlabel("epsilon, of one frame (bottleneck) or of one utterance (f0)", fontsize=8)
    axes.set_ylabel("P_ASI / %", fontsize=8)
    axes.set_ylim(0, 103)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, frameon=False)
    return svg(figure)


def section(results: Path) -> str:
    """The part of RESULTS.md, '' without figures."""
    file = results / FILE
    if not file.is_file():
        return ""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        rows, made = content["rows"], content["provenance"]
        table = markdown_table(HEADER, [_cells(row) for row in rows])
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{file}: not made by steps/plot_asi.sh ({error!r})") from error
    lines = ["## Speaker identification from released features - smoke\n"]
    if made.get("command"):
        lines.append(f"    {made['command']}\n")
    lines.append(provenance_line({"system": "curves/identification", "rows": [], "provenance": made}) + "\n")
    lines += [table, NOTE.format(pieces=rows[0]["pieces"]) + "\n"]
    said = content["doubts"]
    lines.append("\n".join(f"- Check of the attacker: {doubt}." for doubt in said) + "\n" if said else "")
    return "\n".join(line for line in lines if line)


def _cells(row: dict) -> tuple[str, ...]:
    error, low, high, training, chance = (
        f"{100 * row[key]:.1f}" for key in ("error", "error_low", "error_high", "train_error", "chance")
    )
    epsilon = "no noise" if math.isinf(_epsilon(row)) else f"{row['epsilon']:g}"
    linear = "-"
    if row.get("linear_error") is not None:
        values = (100 * row[f"linear_{key}"] for key in ("error", "error_low", "error_high"))
        linear = "{:.1f} [{:.1f}, {:.1f}]".format(*values)
    counts = (str(row["num_speakers"]), str(row["num_test"]))
    return (
        LABELS[row["feature"]],
        epsilon,
        UNITS[row["feature"]],
        f"{error} [{low}, {high}]",
        linear,
        training,
        chance,
        *counts,
    )


def _epsilon(row: dict) -> float:
    return math.inf if row["epsilon"] is None else float(row["epsilon"])
