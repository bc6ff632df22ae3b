"""Attacks on released speaker embeddings: EER by speaker models, AUC of the sex. Called by steps/score_embeddings.sh.

<out>/metrics.json (sex), <out>/{oo,oa,aa}/metrics.json and scores (verification). <train-dir> trains the attackers
that know nothing of the protection, <released-train-dir>, the same speech released, those that do.
Exit code 1 when what is measured is beyond what the release promises: then the promise is broken.
"""

from pathlib import Path

from dpanon.attack.asv import write_scores
from dpanon.attack.optimal import optimal_eer
from dpanon.attack.protected import ProtectedAttackConfig, check_speakers, infer_sex, refuted, verify
from dpanon.attack.trials import make_trials
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.config import load_config, parse_set
from dpanon.data.embeddings import read_set
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import floor_text, read_claim, voice_facts
from dpanon.evaluate.metrics import write_metrics
from dpanon.privacy import SpeakerGaussian


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--baseline", type=boolean, default=False, help="the test set is clean (default: false)")
    parser.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    parser.add_argument("--gender", type=boolean, default=True, help="attack the sex, too (default: true)")
    parser.add_argument("--facts", default="", help="KEY=NUMBER ... to be kept with the figures, for curves")
    parser.add_argument("train", type=Path, metavar="train-dir")
    parser.add_argument("released_train", type=Path, metavar="released-train-dir")
    parser.add_argument("test", type=Path, metavar="test-dir")
    parser.add_argument("released_test", type=Path, metavar="released-test-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    config = load_config(ProtectedAttackConfig, args.config, args.set)
    train, released_train = read_set(args.train), read_set(args.released_train)
    test, released = read_set(args.test), read_set(args.released_test)
    check_speakers(train[0], test[0])
    check_speakers(released_train[0], released[0])
    claim = read_claim(args.released_test, released[0].utts, args.baseline)
    ceiling = claim.rows[0].get("auc_ceiling") if claim.rows else None
    voice = voice_facts(claim)
    facts = {key: float(value) for key, _, value in (text.partition("=") for text in args.facts.split())}
    shared = {
        "data": str(args.released_test),
        "epsilon_frame": claim.epsilon_frame,
        "epsilon_utterance": claim.epsilon_utterance,
        "eer_floor": claim.eer_floor,
        **voice,
        **facts,
    }
    if voice:
        mechanism = SpeakerGaussian(voice["mu"], voice["sigma"] / voice["sigma_over_u"], 2)
        best = optimal_eer(mechanism)
        shared["eer_simulated"] = best
        print(
            f"{args.out}: mu {voice['mu']:.4g}, floor {100 * voice['eer_floor_mu']:.1f} %; as published mu "
            f"{voice['mu_as_published']:.4g}, {100 * voice['eer_floor_as_published']:.1f} %; the best attacker, "
            f"simulated, {100 * best:.1f} %"
        )
    system, name = args.system or claim.system, args.test.resolve().name
    conditions = {"oo": test} if args.baseline else {"oa": test, "aa": released}
    attacks = []
    for condition, enrol in conditions.items():
        found = verify(released_train if condition == "aa" else train, enrol, released, config)
        attacks += [(condition, attack) for attack in found]
        trials = make_trials(enrol[0], released[0], num_enrol=config.num_enrol)
        for rank, attack in enumerate(found):
            values = shared | {"condition": condition, "protocol": "speakers"} | attack.metrics
            folder = args.out / condition / attack.attacker
            write_scores(folder / "scores", trials, attack.scores)
            write_metrics(folder, "asv", system, name, values | {"strongest": rank == 0})
        print(f"{args.out}: {condition}, EER {_interval(found[0].metrics, 'eer', 100)} % by {found[0].attacker}")
    genders = infer_sex(train, released_train, released, config) if args.gender else []
    if genders:
        write_metrics(args.out, "gender", system, name, shared | {"auc_ceiling": ceiling, "attackers": genders})
    for told in genders:
        print(f"{args.out}: sex by {told['knowledge']} {told['attacker']}, AUC {_interval(told, 'auc', 1)}")
    print(f"{args.out}: EER floor: {floor_text(claim.eer_floor)}")
    if broken := refuted(attacks, claim.eer_floor, genders, ceiling):
        raise EvaluationError(
            f"{args.released_test}: {'; '.join(broken)}: the noise is not there, or the set is not what its "
            "privacy.json says. Do not release it"
        )


def _interval(values, key, factor):
    digits = 1 if factor == 100 else 3
    return " ".join(
        f"{before}{factor * values[key + after]:.{digits}f}{end}"
        for before, after, end in (("", "", ""), ("[", "_low", ","), ("", "_high", "]"))
    )


if __name__ == "__main__":
    run(main)
