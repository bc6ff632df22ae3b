"""Speaker verification attack on a released set: EER, interval, floor, linkability. Called by steps/score_asv.sh.

<out>/<extractor>+<back-end>/{metrics.json,scores} of every attacker, and <out>/metrics.json of the strongest.
Exit code 1 when a measured EER is below the floor that the set promises: then the promise is broken. With
--check-floor false it is only said and kept in metrics.json, for steps/check_floors.sh to fail on when all is measured.
"""

import json
from pathlib import Path

from dpanon.attack.asv import CONDITIONS, AsvConfig, below_floor, knowledge, score_asv, write_scores
from dpanon.attack.sanity import verification_flags
from dpanon.attack.trials import PROTOCOLS, make_trials
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.config import load_config
from dpanon.data.data_dir import DataDir
from dpanon.errors import UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import broken_assumption, floor_text, read_claim, voice_facts
from dpanon.evaluate.metrics import write_metrics


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override <asv-dir>/config.yaml"
    )
    parser.add_argument("--baseline", type=boolean, default=False, help="the trials are clear speech (default: false)")
    parser.add_argument("--condition", choices=(*CONDITIONS, "auto"), default="auto", help="default: by privacy.json")
    parser.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="speakers", help="default: speakers")
    parser.add_argument("--num-enrol", type=int, default=3, help="of a speaker, when one set is both (default: 3)")
    parser.add_argument("--cache", type=Path, default=Path("exp/embeddings"), help="directory of embeddings")
    parser.add_argument(
        "--check-floor", type=boolean, default=True, help="fail when an EER is below its floor (default: true)"
    )
    parser.add_argument("asv", type=Path, metavar="asv-dir")
    parser.add_argument("enrol", type=Path, metavar="enrol-dir")
    parser.add_argument("trial", type=Path, metavar="trial-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    config = load_config(AsvConfig, args.asv / "config.yaml", args.set)
    condition = find_condition(args.enrol, args.trial, args.condition)
    enrol, trial = DataDir.read(args.enrol), DataDir.read(args.trial)
    trials = make_trials(enrol, trial, args.protocol, args.num_enrol)
    claim = read_claim(trial.path, trials.trial_utts, args.baseline)
    attacks = score_asv(enrol, trial, trials, config, args.cache, args.asv)
    shared = {
        "condition": condition,
        "data": str(args.trial),
        "epsilon_frame": claim.epsilon_frame,
        "epsilon_utterance": claim.epsilon_utterance,
        "eer_floor": claim.eer_floor,
        "protocol": args.protocol,
        **voice_facts(claim),
    }
    record = args.asv / "training.json"
    training = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    flags = verification_flags(training)
    system, name = args.system or claim.system, args.trial.resolve().name
    for rank, attack in enumerate(attacks):
        refuted = below_floor(attack.metrics, claim.eer_floor)
        metrics = shared | attack.metrics | {"strongest": rank == 0}
        metrics["knowledge"] = knowledge(condition, attack.attacker, training)
        metrics |= {"broken": broken_assumption(claim)} if refuted else {}
        metrics |= {"flags": flags} if flags else {}
        write_scores(args.out / attack.attacker / "scores", trials, attack.scores)
        write_metrics(args.out / attack.attacker, "asv", system, name, metrics)
        if rank == 0:
            write_metrics(args.out, "asv", system, name, metrics)
    best = attacks[0].metrics
    print(
        f"{args.out}: {condition}, EER {100 * best['eer']:.1f} % [{100 * best['eer_low']:.1f}, "
        f"{100 * best['eer_high']:.1f}] by {best['attacker']}, floor: {floor_text(claim.eer_floor)}"
    )
    for flag in flags:
        print(f"warning: {flag}; its EER says little about a better attacker")
    winners = [attack.attacker for attack in attacks if below_floor(attack.metrics, claim.eer_floor)]
    if winners:
        words = (
            f"{args.trial}: {', '.join(winners)} reach an EER below the promised floor of {claim.eer_floor:.3f}: "
            f"{broken_assumption(claim)}. Do not release it"
        )
        if args.check_floor:
            raise EvaluationError(words)
        print(f"BELOW THE FLOOR. {words}")


def find_condition(enrol, trial, given="auto"):
    """oo, oa or aa, by which of the sets are released ones; what was ``given`` has to agree."""
    found = "".join("a" if (path / "privacy.json").is_file() else "o" for path in (enrol, trial))
    if found not in CONDITIONS:
        raise UsageError(f"{enrol} is anonymized and {trial} is not: such an attack is not defined here")
    if given not in ("auto", found):
        raise UsageError(f"--condition {given}: by their privacy.json, {enrol} and {trial} make {found}")
    return found


if __name__ == "__main__":
    run(main)
