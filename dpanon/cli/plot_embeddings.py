"""Curves of what stage 5 measured -> <results-dir>/{gender,speaker}.svg. Called by steps/plot_embeddings.sh.

Systems whose names differ in their first number only, the noise level, are points of one curve.
"""

import math
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.errors import UsageError
from dpanon.evaluate.metrics import read_metrics
from dpanon.report.curves import gender_curves, speaker_curves
from dpanon.report.tables import sweep_of


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("exp", type=Path, metavar="exp-dir")
    parser.add_argument("results", type=Path, metavar="results-dir")
    args = parser.parse_args(argv)
    genders, speakers = collect(args.exp)
    if not genders and not speakers:
        raise UsageError(f"{args.exp}: no figures of released embeddings below it; run stage 5 first")
    args.results.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("gender", gender_curves(genders) if genders else ""),
        ("speaker", speaker_curves(speakers) if speakers else ""),
    ):
        if text:
            (args.results / f"{name}.svg").write_text(text, encoding="utf-8")
            print(args.results / f"{name}.svg")


def collect(exp: Path) -> tuple[list[dict], list[dict]]:
    """Rows of the two kinds of curves, from every metrics.json below ``exp``."""
    strongest: dict[str, dict] = {}  # system -> verification of released against released embeddings
    genders: dict[str, dict] = {}
    for _, metrics in read_metrics(exp):
        system = metrics["system"]
        if metrics["kind"] == "asv" and metrics["condition"] == "aa":
            if system not in strongest or metrics["eer"] < strongest[system]["eer"]:
                strongest[system] = metrics
        elif metrics["kind"] == "gender":
            genders[system] = metrics
    rows = []
    for system, metrics in genders.items():
        if system in strongest and "epsilon_train" in metrics:
            auc = {"ignorant": 0.5, "informed": 0.5, "linear probe": 0.5}
            for found in metrics["attackers"]:
                probe = found["knowledge"] == "informed" and found["attacker"] == "probe"
                name = "linear probe" if probe else found["knowledge"]
                auc[name] = max(auc[name], found["advantage"])
            epsilons = {key: _number(metrics.get(key)) for key in ("epsilon_train", "epsilon_release")}
            rows.append(epsilons | {"eer": strongest[system]["eer"], "auc": auc})
    levels = [metrics for metrics in strongest.values() if "noise_level" in metrics or "sigma_over_u" in metrics]
    return rows, [
        {
            **metrics,
            "curve": sweep_of(metrics["system"]),
            "sigma_over_u": metrics.get("sigma_over_u", 0.0),
            "simulated": metrics.get("eer_simulated"),
        }
        for metrics in levels
    ]


def _number(value) -> float:
    return math.inf if value is None else float(value)  # JSON has no infinity


if __name__ == "__main__":
    run(main)
