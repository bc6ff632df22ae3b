"""Predicted listening quality (DNSMOS) of a set -> <out-dir>/metrics.json. Called by steps/score_quality.sh."""

from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.data.data_dir import DataDir
from dpanon.data.sets import subset
from dpanon.evaluate.claims import read_claim
from dpanon.evaluate.metrics import write_metrics
from dpanon.evaluate.quality import mean_dnsmos, rate_set


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--baseline", type=boolean, default=False, help="the set is clear speech (default: false)")
    parser.add_argument("--system", default="", help="name in the tables (default: that in privacy.json)")
    parser.add_argument(
        "--per-speaker", type=int, default=0, help="only the first so many utterances of each (default: 0, all)"
    )
    parser.add_argument("data", type=Path, metavar="data-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    data = DataDir.read(args.data)
    claim = read_claim(data.path, data.utts, args.baseline)
    utts = subset(data, per_speaker=args.per_speaker or None)
    scores = rate_set({utt: data.wav(utt) for utt in utts})
    metrics = mean_dnsmos(scores, {utt: data.speaker(utt) for utt in utts}) | {"data": str(args.data)}
    write_metrics(args.out, "quality", args.system or claim.system, args.data.resolve().name, metrics)
    print(f"{args.out}: DNSMOS OVRL {metrics['dnsmos_ovrl']:.2f} of {len(scores)} utterances")


if __name__ == "__main__":
    run(main)
