"""Figures of recognisers of words: method against error at one budget. Functions of results/*.json alone."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import NO_CLAIM, floor_text
from dpanon.evaluate.metrics import read_metrics
from dpanon.report.plots import LINES, svg
from dpanon.report.tables import markdown_table, number, provenance_line

FIGURE = "errors.svg"  # beside the results

HEADER = ("system", "teachers", "queries", "answered", "sigma", "epsilon", "as published", "unit")
NOTES = (
    "Errors in per cent of the {counted}s, 95 % intervals {interval} over utterances; `test` has new "
    "utterances of known speakers, `test_speakers` speakers that no private or public utterance is of. epsilon "
    'is exact (at the delta below), of all answers of the row together, add or remove one unit. "As published" '
    "is the formula of paper D, which amplifies each query anew and ignores that sub-samples overlap: it is no "
    "guarantee. Sigma is the noise on a vote count (gnmax, confident), on the mean posterior (the others: for "
    "Laplace its scale), or relative to the clipping norm (DP-SGD). All rows from the same private set "
    "together cost more than each: publish one. MIA: membership inference by the model's confidence; 0.5 is a "
    "coin. "
)


def notes(results: Iterable[dict]) -> str:
    """How the table is to be read: what is counted (words, syllables, characters), and how its intervals are made."""
    counted = sorted({values.get("counted", "word") for result in results for values in result["errors"].values()})
    interval = "by Clopper and Pearson" if counted == ["word"] else "by bootstrap"
    return NOTES.format(counted="s and ".join(counted), interval=interval)


def collect(exp: Path) -> dict[str, dict]:
    """system -> {"system", "claim", "errors": {set: figures}, "membership"} from every metrics.json below ``exp``."""
    found: dict[str, dict] = {}
    for file, metrics in read_metrics(exp):
        if metrics["kind"] not in ("commands", "membership"):
            continue
        name = str(metrics["system"])
        system = found.setdefault(name, {"system": name, "claim": {}, "errors": {}, "membership": {}})
        if metrics["kind"] == "commands":
            if metrics["set"] in system["errors"]:
                raise EvaluationError(f"{file}: another file has figures of {name} on {metrics['set']}")
            system["claim"] = metrics.get("claim") or {}
            system["errors"][metrics["set"]] = {k: metrics[k] for k in ("error", "error_low", "error_high", "num")}
            system["errors"][metrics["set"]]["counted"] = metrics.get("counted", "word")
        else:
            system["membership"] = {k: metrics.get(k) for k in ("auc", "eer", "eer_floor", "members", "others")}
    if not found:
        raise EvaluationError(f"{exp}: no figures of recognisers of words below it; run steps/score_commands.sh first")
    return found


def read_results(folder: Path) -> list[dict]:
    """Every result, without claim first, then by name."""
    results = []
    for file in sorted(folder.glob("*.json")):
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            results.append((bool(result["claim"]), result["system"], result["errors"] and result))
        except (ValueError, KeyError, TypeError) as error:
            raise EvaluationError(f"{file}: not a result of steps/report_commands.sh ({error!r})") from error
    return [result for _, _, result in sorted(results, key=lambda row: row[:2]) if result]


def table(results: Sequence[dict]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of text."""
    sets = sorted({name for result in results for name in result["errors"]})
    header = (*HEADER, *(f"{name} error % [95 %]" for name in sets), "MIA AUC", "EER floor %")
    return header, [_row(result, sets) for result in results]


def results_markdown(results: Sequence[dict], title: str) -> str:
    """All of RESULTS.md."""
    header, rows = table(results)
    deltas = sorted({f"{r['claim']['delta']:g}" for r in results if r["claim"].get("delta")})
    parts = [
        f"# Results: {title}\n",
        "Generated from `results/*.json` by `steps/report_commands.sh`; edits are overwritten.\n",
        markdown_table(header, rows),
        notes(results) + (f" delta = {', '.join(deltas)}." if deltas else "") + "\n",
        f"![errors of all systems, and against the number of teachers](results/{FIGURE})\n",
    ]
    for result in results:
        parts.append(f"## {result['system']} - {result.get('status', 'smoke')}\n")
        made = result.get("provenance", {})
        if made.get("command"):
            parts.append(f"    {made['command']}\n")
        parts.append(provenance_line(result | {"rows": []}) + "\n")
        parts.append(result["claim"].get("sentence") or f"This system makes {NO_CLAIM}.")
        if total := result["claim"].get("epsilon_all_answers_of_these_teachers"):
            parts.append(f"All answers these teachers had given by then, together: epsilon {total:.4g}.")
        parts.append("")
    return "\n".join(parts)


def curves(results: Sequence[dict]) -> str:
    """The error of every system on every set (paper D, tables 1 and 2, figure 2), and against teachers. SVG text."""
    figure = Figure(figsize=(11, 1.4 + 0.3 * len(results)), layout="constrained")
    all_of_them, against = figure.subplots(1, 2)
    sets = sorted({name for result in results for name in result["errors"]})
    for i, name in enumerate(sets):
        colour = LINES[(i + 1) % len(LINES)]
        shown = [(row, result["errors"][name]) for row, result in enumerate(results) if name in result["errors"]]
        _points(all_of_them, [row + 0.2 * i for row, _ in shown], [error for _, error in shown], colour, name, True)
        for method, rows in _by_teachers(results, name).items():
            _points(against, list(rows), list(rows.values()), colour, f"{method}, {name}", False)
    all_of_them.set_yticks(range(len(results)), [result["system"] for result in results], fontsize=7)
    all_of_them.invert_yaxis()
    all_of_them.set_xlabel("error / %", fontsize=8)
    against.set_xlabel("teachers", fontsize=8)
    against.set_ylabel("error / %", fontsize=8)
    for axes in (all_of_them, against):
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=6, frameon=False)
    return svg(figure)


def _by_teachers(results: Sequence[dict], name: str) -> dict[str, dict[int, dict]]:
    """method -> number of its teachers -> error on the set, where there is more than one number."""
    found: dict[str, dict[int, dict]] = {}
    for result in results:
        options = result["claim"].get("options") or {}
        if options.get("partition") and name in result["errors"]:
            method = f"{options['method']}, epsilon {options['epsilon']:g}"
            found.setdefault(method, {})[options["partition"]["teachers"]] = result["errors"][name]
    return {method: dict(sorted(rows.items())) for method, rows in found.items() if len(rows) > 1}


def _points(axes, at: Sequence[float], errors: Sequence[dict], colour: str, label: str, lying: bool) -> None:
    middle = [100 * error["error"] for error in errors]
    span = [
        [100 * (error["error"] - error["error_low"]) for error in errors],
        [100 * (error["error_high"] - error["error"]) for error in errors],
    ]
    style = {"color": colour, "label": label, "markersize": 4, "linewidth": 0.8}
    if lying:
        axes.errorbar(middle, at, xerr=span, fmt="o", **style)
    else:
        axes.errorbar(at, middle, yerr=span, fmt="o-", **style)


def _row(result: dict, sets: Iterable[str]) -> tuple[str, ...]:
    claim, options = result["claim"], result["claim"].get("options") or {}
    partition = options.get("partition") or {}
    rate = f", rate {partition['rate']:g}" if partition.get("rate") else ""
    sigma = claim.get("sigma") or options.get("noise_multiplier")
    return (
        result["system"] + ("" if claim else f" ({NO_CLAIM})"),
        f"{partition['teachers']}{rate}" if partition else "-",
        str(options.get("queries") or "-"),
        str(claim.get("num_answered") or "-"),
        number(sigma, ".3g"),
        number(claim.get("epsilon"), ".3f"),
        number(claim.get("epsilon_as_published"), ".3f"),
        claim.get("unit") or "-",
        *(_error(result["errors"].get(name)) for name in sets),
        number(result["membership"].get("auc"), ".3f"),
        floor_text(claim["eer_floor"]) if claim.get("eer_floor") is not None else "-",
    )


def _error(values: dict | None) -> str:
    if values is None:
        return "-"
    return f"{100 * values['error']:.1f} [{100 * values['error_low']:.1f}, {100 * values['error_high']:.1f}]"
