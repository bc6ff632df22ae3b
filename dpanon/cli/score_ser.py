"""Emotions heard in a released set: UAR by folds -> <out-dir>/{metrics.json,predictions}. Called by steps/score_ser.sh.

The classifier is trained on the original set, fold by fold. utt2emo and spk2fold are those of the original set.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.claims import read_claim
from dpanon.evaluate.emotion import CLASSIFIERS, cross_validated, load_classifier, mean_uar
from dpanon.evaluate.metrics import write_metrics


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=boolean, default=False, help="the released set is clear (default: false)")
    parser.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    parser.add_argument("--classifier", choices=CLASSIFIERS, default="functionals", help="default: functionals")
    parser.add_argument("original", type=Path, metavar="original-dir")
    parser.add_argument("released", type=Path, metavar="released-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    original, released = DataDir.read(args.original), DataDir.read(args.released)
    claim = read_claim(released.path, released.utts, args.baseline)
    emotions, fold_of = original.table("utt2emo"), original.table("spk2fold")
    if strange := sorted(set(released.utts) - set(original.utts)):
        raise EvaluationError(f"{args.released}: {len(strange)} utterances are not in {args.original} ({strange[:3]})")
    folds = {utt: fold_of[original.speaker(utt)] for utt in original.utts}
    classifier = load_classifier(args.classifier)
    trained = {utt: classifier.features(read_audio(original.wav(utt))) for utt in original.utts}
    same = released.path.resolve() == original.path.resolve()
    tested = trained if same else {utt: classifier.features(read_audio(released.wav(utt))) for utt in released.utts}
    predicted = cross_validated(classifier, trained, tested, emotions, folds)
    metrics = mean_uar(predicted, emotions, folds, {utt: original.speaker(utt) for utt in predicted})
    metrics |= {"data": str(args.released), "original": str(args.original), "classifier": args.classifier}
    args.out.mkdir(parents=True, exist_ok=True)
    rows = (f"{utt} {emotions[utt]} {predicted[utt]} {folds[utt]}\n" for utt in sorted(predicted))
    (args.out / "predictions").write_text("".join(rows), encoding="utf-8")
    write_metrics(args.out, "ser", args.system or claim.system, args.released.resolve().name, metrics)
    print(f"{args.out}: UAR {100 * metrics['uar']:.1f} % of {metrics['num_utterances']} utterances")


if __name__ == "__main__":
    run(main)
