"""Figures of report.html, as SVG text. Nothing is shown and no state of pyplot is touched."""

import io
from collections.abc import Mapping

import matplotlib
import numpy as np
from matplotlib.figure import Figure

_SAME, _OTHER = "#0072b2", "#d55e00"  # told apart by colour-blind readers
LINES = ("#555555", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def score_histograms(panels: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> str:
    """One histogram per attacker: title -> (target scores, nontarget scores)."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.4 * rows), layout="constrained")
    for i, (title, (target, nontarget)) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        edges = np.histogram_bin_edges(np.concatenate([target, nontarget]), 40).tolist()
        axes.hist(nontarget, edges, density=True, alpha=0.6, color=_OTHER, label="different speakers")
        axes.hist(target, edges, density=True, alpha=0.6, color=_SAME, label="same speaker")
        axes.set_title(title, fontsize=9)
        axes.set_yticks([])
        axes.tick_params(labelsize=7)
        axes.set_xlabel("score", fontsize=8)
        if i == 0:
            axes.legend(fontsize=7, frameon=False)
    return svg(figure)


def f0_overlay(tracks: Mapping[str, np.ndarray], title: str = "") -> str:
    """f0 of one utterance by several systems: name -> (T,) Hz, 0 where unvoiced."""
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    axes = figure.add_subplot()
    for i, (name, f0) in enumerate(tracks.items()):
        shown = np.where(np.asarray(f0) > 0, f0, np.nan)
        axes.plot(np.arange(len(shown)) * 0.01, shown, label=name, color=LINES[i % len(LINES)], linewidth=1.3)
    axes.set_xlabel("time / s", fontsize=8)
    axes.set_ylabel("f0 / Hz", fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7, frameon=False, ncols=len(tracks))
    return svg(figure)


def svg(figure: Figure) -> str:
    """The same figure gives the same text: fixed ids, no date."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "dpanon"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
