"""Curves of released embeddings: what was measured against what is provable. SVG text (papers B and C)."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from dpanon.privacy.floors import auc_laplace, eer_gdp, eer_laplace
from dpanon.report.plots import LINES, svg

NOTE = "Noise in training alone promises nothing: a release without noise of its own has no ceiling and no floor."
MARKS = {"ignorant": "o-", "informed": "s-", "linear probe": "^:"}  # the probe is informed, too


def gender_curves(rows: Sequence[Mapping]) -> str:
    """Figures 2 and 3 of paper C: AUC and EER against the epsilon of training, and against that of the release.

    Args:
        rows: ``epsilon_train``, ``epsilon_release`` (inf: no noise), ``eer`` and ``auc``: attacker -> AUC, each as
            max(AUC, 1 - AUC). Attackers are those of MARKS.
    """
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    left, right = figure.subplots(2, 2).T
    plain = sorted((row for row in rows if math.isinf(row["epsilon_release"])), key=lambda row: row["epsilon_train"])
    finite = [row["epsilon_train"] for row in plain if math.isfinite(row["epsilon_train"])]
    last = 2.0 * max(finite, default=1.0)
    x = [min(row["epsilon_train"], last) for row in plain]
    for knowledge, mark in MARKS.items():
        left[0].plot(x, [row["auc"][knowledge] for row in plain], mark, label=knowledge)
    left[1].plot(x, [100 * row["eer"] for row in plain], "o-", label="EER")
    for axes in left:
        axes.set_xlabel("epsilon of training (the last point: no noise); release without noise", fontsize=8)
    for i, train in enumerate(sorted({row["epsilon_train"] for row in rows})):
        mine = [row for row in rows if row["epsilon_train"] == train and math.isfinite(row["epsilon_release"])]
        mine.sort(key=lambda row: row["epsilon_release"])
        if mine:
            x, colour = [row["epsilon_release"] for row in mine], LINES[(i + 1) % len(LINES)]
            for knowledge, mark in MARKS.items():
                label = f"{knowledge}, training {train:g}"
                right[0].plot(x, [row["auc"][knowledge] for row in mine], mark, color=colour, label=label)
            right[1].plot(x, [100 * row["eer"] for row in mine], "o-", color=colour, label=f"training {train:g}")
    grid = np.geomspace(0.05, 60.0, 200)
    right[0].plot(grid, [auc_laplace(e) for e in grid], "k--", label="ceiling of any attacker")
    right[1].plot(grid, [100 * eer_laplace(e) for e in grid], "k--", label="floor that it forces")
    for axes in right:
        axes.set_xscale("log")
        axes.set_xlabel("epsilon of the release", fontsize=8)
    for top, bottom in ((left[0], left[1]), (right[0], right[1])):
        top.set_ylabel("AUC of the sex", fontsize=8)
        bottom.set_ylabel("EER of verification / %", fontsize=8)
        top.set_ylim(0.45, 1.02)
        bottom.set_ylim(0.0, 55.0)
    return _finish(figure, [*left, *right], NOTE)


def speaker_curves(rows: Sequence[Mapping]) -> str:
    """EER against sigma / U, with the floor of the true mu and that which the printed rule claims.

    Args:
        rows: ``sigma_over_u`` (0: no noise), ``eer``, ``curve``; and ``eer_low``, ``eer_high``, ``simulated`` if known.
    """
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for i, name in enumerate(sorted({row["curve"] for row in rows})):
        mine = sorted((row for row in rows if row["curve"] == name), key=lambda row: row["sigma_over_u"])
        x, y = ([row[key] for row in mine] for key in ("sigma_over_u", "eer"))
        axes.plot(x, 100 * np.asarray(y), "o-", color=LINES[(i + 1) % len(LINES)], label=f"measured, {name}")
        low, high = ([100 * (row.get(key) or row["eer"]) for row in mine] for key in ("eer_low", "eer_high"))
        axes.fill_between(x, low, high, color=LINES[(i + 1) % len(LINES)], alpha=0.15)
    known = sorted({(row["sigma_over_u"], row["simulated"]) for row in rows if row.get("simulated") is not None})
    if known:
        levels, simulated = zip(*known, strict=True)
        axes.plot(levels, 100 * np.asarray(simulated), "kx", label="best attacker, simulated")
    grid = np.linspace(0.05, max(10.0, *(row["sigma_over_u"] for row in rows)), 200)
    axes.plot(grid, [100 * eer_gdp(2.0 / n) for n in grid], "k-", label="floor: mu = 2 U / sigma")
    axes.plot(grid, [100 * eer_gdp(1.0 / n) for n in grid], "k:", label="as published: mu = U / sigma")
    axes.set_xlabel("sigma / U", fontsize=8)
    axes.set_ylabel("EER / %", fontsize=8)
    axes.set_ylim(0.0, 55.0)
    return _finish(figure, [axes], "")


def _finish(figure: Figure, panels: Sequence, note: str) -> str:
    for axes in panels:
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=6, frameon=False)
    if note:
        figure.suptitle(note, fontsize=8)
    return svg(figure)
