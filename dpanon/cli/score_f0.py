"""Correlation of f0 between a set and its release -> <out-dir>/metrics.json. Called by steps/score_f0.sh."""

from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.evaluate.claims import read_claim
from dpanon.evaluate.metrics import write_metrics
from dpanon.evaluate.pitch import mean_f0_correlation
from dpanon.features.f0 import METHODS, extract_f0


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument(
        "--baseline", type=boolean, default=False, help="the second set promises nothing (default: false)"
    )
    parser.add_argument("--method", choices=METHODS, default="swift", help="of both sets (default: swift)")
    parser.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    parser.add_argument("original", type=Path, metavar="original-dir")
    parser.add_argument("released", type=Path, metavar="released-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    original, released = DataDir.read(args.original), DataDir.read(args.released)
    claim = read_claim(released.path, released.utts, args.baseline)
    metrics = compare_f0(original, released, args.method)
    metrics |= {"data": str(args.released), "original": str(args.original), "method": args.method}
    write_metrics(args.out, "f0", args.system or claim.system, args.released.resolve().name, metrics)
    value = metrics["f0_correlation"]
    print(f"{args.out}: f0 correlation {'undefined' if value is None else format(value, '.2f')}")


def compare_f0(original, released, method="swift"):
    """Metrics of two data directories; f0 of both is measured here by one method."""
    utts = [utt for utt in released.utts if utt in set(original.utts)]
    return mean_f0_correlation(
        {utt: extract_f0(read_audio(original.wav(utt)), method) for utt in utts},
        {utt: extract_f0(read_audio(released.wav(utt)), method) for utt in released.utts},
        {utt: released.speaker(utt) for utt in released.utts},
    )


if __name__ == "__main__":
    run(main)
