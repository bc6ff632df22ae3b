"""How private and how useful is an anonymized set? EER, WER, f0 correlation, DNSMOS in one command.

    dpanon evaluate --orig data/test --anon data/test_dp

Both are data directories of the same utterances. EER: the first utterances of a speaker enrol, the others are trials
(or as the tables enrolls and trials say, with --enrol where a challenge keeps its enrolment speech in another set);
cosine, and trained back-ends when --train gives anonymized training speech.
The figures need at least two speakers; a recipe with a proper test set says more.
"""

import tempfile
from pathlib import Path

from dpanon.attack.asv import AsvConfig, below_floor, score_asv, train_asv
from dpanon.attack.trials import PROTOCOLS, make_trials
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.cli.score_f0 import compare_f0
from dpanon.data.data_dir import DataDir
from dpanon.errors import MissingDependencyError, UsageError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import floor_text, read_claim
from dpanon.evaluate.metrics import write_json
from dpanon.evaluate.quality import mean_dnsmos, rate_set
from dpanon.evaluate.wer import Transcriber, transcribe_set, word_error_rate
from dpanon.report.tables import text_table


def parse_args(argv=None):
    parser = ArgumentParser(prog="dpanon evaluate", description=__doc__)
    parser.add_argument("--orig", type=Path, required=True, metavar="DIR", help="data directory of the original speech")
    parser.add_argument("--anon", type=Path, required=True, metavar="DIR", help="data directory of its release")
    parser.add_argument(
        "--enrol", type=Path, nargs=2, metavar="DIR", help="enrolment speech of the table trials, original and released"
    )
    parser.add_argument("--train", type=Path, nargs="+", default=[], metavar="DIR", help="anonymized training speech")
    parser.add_argument("--extractors", default="campplus,ge2e", help="default: campplus,ge2e")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="speakers", help="default: speakers")
    parser.add_argument("--num-enrol", type=int, default=3, help="enrolment utterances of a speaker (default: 3)")
    parser.add_argument("--wer", type=boolean, default=True, help="transcribe: the slow part (default: true)")
    parser.add_argument("--quality", type=boolean, default=True, help="DNSMOS (default: true)")
    parser.add_argument("--baseline", type=boolean, default=False, help="--anon has no privacy.json (default: false)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    original, anonymized = DataDir.read(args.orig), DataDir.read(args.anon)
    claim = read_claim(anonymized.path, anonymized.utts, args.baseline)
    missing = sorted(set(anonymized.utts) - set(original.utts))
    if missing:
        raise EvaluationError(f"{args.orig}: {len(missing)} utterances of {args.anon} are not there ({missing[:3]})")
    enrolment = [DataDir.read(path) for path in args.enrol] if args.enrol else [original, anonymized]
    if anonymized.has("trials") and not args.enrol and not original.enrolls:
        raise UsageError(
            f"{args.anon}/trials speaks of enrolment speech in another set: give it with --enrol ORIG ANON"
        )
    figures, refuted = measure_privacy(args, original, anonymized, enrolment, claim.eer_floor)
    figures |= measure_utility(args, original, anonymized)
    rows = [(name, *values) for name, values in figures.items()]
    print(text_table(("figure", "original", "anonymized"), rows), end="")
    print(f"EER floor: {floor_text(claim.eer_floor)}")
    if args.json:
        write_json(args.json, {name: {"original": o, "anonymized": a} for name, (o, a) in figures.items()})
    if refuted:
        raise EvaluationError(
            f"{args.anon}: {', '.join(refuted)} are below the promised floor: the guarantee is broken"
        )


def measure_privacy(args, original, anonymized, enrolment, floor):
    """EER in conditions oo, oa, aa. ``enrolment``: original and released, which may be the sets themselves."""
    figures, refuted = {}, []
    names = tuple(args.extractors.split(","))
    cosine = AsvConfig(extractors=names, backends=("cosine",))
    trained = AsvConfig(extractors=names) if args.train else cosine
    with tempfile.TemporaryDirectory(prefix="dpanon-evaluate-") as folder:
        tmp = Path(folder)
        if args.train:
            train_asv([DataDir.read(path) for path in args.train], tmp / "asv", trained, tmp / "train")
        for condition, enrol, trial in (
            ("oo", enrolment[0], original),
            ("oa", enrolment[0], anonymized),
            ("aa", enrolment[1], anonymized),
        ):
            cache = tmp / condition[0] / condition[1]
            trials = make_trials(enrol, trial, args.protocol, args.num_enrol)
            config = trained if condition == "aa" else cosine
            attacks = score_asv(enrol, trial, trials, config, cache, tmp / "asv")
            best = attacks[0].metrics
            text = f"{100 * best['eer']:.1f} [{100 * best['eer_low']:.1f}, {100 * best['eer_high']:.1f}]"
            values = (text, "-") if condition == "oo" else ("-", text)
            figures[f"EER % {condition}, {best['attacker']}"] = values
            if condition == "aa":
                figures["linkability aa"] = ("-", f"{best['linkability']:.2f}")
                figures["min Cllr aa"] = ("-", _with_interval(best, "min_cllr"))
                figures["TPR % at FPR 1 % aa"] = ("-", _with_interval(best, "tpr_at_fpr_1", 100))
                zebra = f"{_with_interval(best, 'zebra_expected')}, worst {best['zebra_category']}"
                figures["ZEBRA bits aa"] = ("-", zebra)
            if condition != "oo" and below_floor(best, floor):
                refuted.append(f"{best['attacker']} ({condition})")
    return figures, refuted


def _with_interval(metrics, name, scale=1):
    low, high = scale * metrics[f"{name}_low"], scale * metrics[f"{name}_high"]
    return f"{scale * metrics[name]:.2f} [{low:.2f}, {high:.2f}]"


def measure_utility(args, original, anonymized):
    figures = {}
    utts = anonymized.utts
    if args.wer and original.has("text"):
        transcriber = Transcriber(beam_size=5)
        words = {utt: original.text(utt) for utt in utts}
        speakers = [original.speaker(utt) for utt in utts]
        rates = [
            word_error_rate(words, transcribe_set(_wavs(d, utts), transcriber), speakers)
            for d in (original, anonymized)
        ]
        figures["WER %"] = tuple(f"{100 * rate['wer']:.1f}" for rate in rates)
    correlation = compare_f0(original, anonymized)["f0_correlation"]
    figures["f0 correlation"] = ("-", "undefined" if correlation is None else f"{correlation:.2f}")
    if args.quality:
        speaker = {utt: original.speaker(utt) for utt in utts}
        try:
            rates = [mean_dnsmos(rate_set(_wavs(d, utts)), speaker) for d in (original, anonymized)]
            figures["DNSMOS OVRL"] = tuple(f"{rate['dnsmos_ovrl']:.2f}" for rate in rates)
        except MissingDependencyError as error:
            figures["DNSMOS OVRL"] = ("-", f"not measured: {error}")
    return figures


def _wavs(data, utts):
    return {utt: data.wav(utt) for utt in utts}


if __name__ == "__main__":
    run(main)
