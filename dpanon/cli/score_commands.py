"""Error rate of a recogniser of words on test sets -> <out>/<set>/metrics.json. Called by steps/score_commands.sh.

A model without privacy.json is scored with --baseline true only, and its rows say "no privacy claim".
"""

import json
from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.data_dir import DataDir
from dpanon.errors import UsageError
from dpanon.evaluate.intervals import clopper_pearson
from dpanon.evaluate.metrics import write_metrics
from dpanon.train.commands import Utterances, labels_of
from dpanon.train.students import load_ensemble

CLAIM = (
    "epsilon",
    "delta",
    "unit",
    "sentence",
    "eer_floor",
    "epsilon_as_published",
    "epsilon_all_answers_of_these_teachers",
    "sigma",
    "num_answered",
    "options",
)


def claim_of(model: Path, baseline: bool) -> dict:
    """What a table says about the privacy of a model; {} for a baseline."""
    file = model / "privacy.json"
    if baseline:
        return {}
    if not file.is_file():
        raise UsageError(f"{file}: no such file; a model without a claim is scored only with --baseline true")
    said = json.loads(file.read_text(encoding="utf-8"))
    return {key: said.get(key) for key in CLAIM}


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=boolean, default=False)
    parser.add_argument("--system", required=True, help="name in the tables")
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("sets", type=Path, nargs="+", metavar="data-dir")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    claim, ensemble = claim_of(args.model, args.baseline), load_ensemble(args.model)
    for path in args.sets:
        data = DataDir.read(path)
        heard = Utterances.read(data, ensemble.models[0].config.bands)
        wrong = ensemble.recognise(heard).argmax(-1) != labels_of(data, data.utts, ensemble.words)
        errors, between = int(wrong.sum()), clopper_pearson(int(wrong.sum()), len(data))
        share = errors / len(data)
        values: dict[str, object] = {"error": share, "error_low": between.low, "error_high": between.high}
        values |= {"num": len(data), "num_speakers": len(data.speakers), "claim": claim}
        write_metrics(args.out / path.name, "commands", args.system, path.name, values)
        print(f"{args.system}: {path.name}: {100 * share:.1f} % of {len(data)} words wrong")


if __name__ == "__main__":
    run(main)
