"""Fail when a measured EER is below the floor that its set promises. Called by steps/check_floors.sh.

Reads what steps/score_asv.sh --check-floor false kept in every metrics.json below a <score-dir>; exit code 1 and one
line for each set whose promise is broken, with the assumption that broke.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.metrics import read_metrics


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("scores", type=Path, nargs="+", metavar="score-dir")
    args = parser.parse_args(argv)
    if missing := [folder for folder in args.scores if not folder.is_dir()]:
        raise UsageError(f"{missing[0]}: no such directory; run stage 5 first")
    num = 0
    broken: dict[str, dict] = {}
    for _, metrics in (found for folder in args.scores for found in read_metrics(folder)):
        if metrics["kind"] == "asv" and metrics.get("eer_floor") is not None:
            num += 1
            key = metrics["set"]
            if metrics.get("broken") and metrics["eer"] < broken.get(key, metrics | {"eer": 1.0})["eer"]:
                broken[key] = metrics
    for name, found in broken.items():
        print(
            f"{name}: EER {100 * found['eer']:.1f} % (at most {100 * _most(found):.1f} %) by {found['attacker']}, "
            f"floor {100 * found['eer_floor']:.1f} %: {found['broken']}"
        )
    if broken:
        raise EvaluationError(f"{', '.join(broken)}: the promised floor does not hold; do not release it")
    print(f"none of {num} EERs is below its floor")


def _most(metrics):
    return max(metrics.get("eer_high") or metrics["eer"], metrics["eer_upper_bound"])


if __name__ == "__main__":
    run(main)
