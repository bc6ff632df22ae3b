"""Membership inference against a recogniser of words -> <out>/metrics.json. Called by steps/score_membership.sh.

Fails when the attack does better than the guarantee allows, beyond chance: then noise is missing somewhere.
"""

from dataclasses import asdict
from pathlib import Path

import torch

from dpanon.attack.membership import membership
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.cli.score_commands import claim_of
from dpanon.data.data_dir import DataDir
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.metrics import write_metrics
from dpanon.train.commands import Utterances, labels_of
from dpanon.train.students import load_ensemble


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=boolean, default=False)
    parser.add_argument("--system", required=True, help="name in the tables")
    parser.add_argument("model", type=Path)
    parser.add_argument("private", type=Path, help="the members")
    parser.add_argument("others", type=Path, help="utterances of the same speakers that nothing was trained on")
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    claim, ensemble = claim_of(args.model, args.baseline), load_ensemble(args.model)
    scores = []
    for path in (args.private, args.others):
        data = DataDir.read(path)
        heard = Utterances.read(data, ensemble.models[0].config.bands)
        scores += [ensemble.recognise(heard), labels_of(data, data.utts, ensemble.words)]
    found = membership(*scores)
    floor, spread = claim.get("eer_floor") or 0.0, 4 * (0.25 / min(found.members, found.others)) ** 0.5
    write_metrics(args.out, "membership", args.system, args.others.name, asdict(found) | {"eer_floor": floor})
    if found.eer < floor - spread:
        raise EvaluationError(f"{args.model}: membership is found at EER {found.eer:.3f}; the floor is {floor:.3f}")
    print(f"{args.system}: membership: AUC {found.auc:.3f}, EER {100 * found.eer:.1f} % (floor {100 * floor:.1f} %)")


if __name__ == "__main__":
    run(main)
