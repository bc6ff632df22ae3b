"""Speaker identification from one feature at one epsilon -> <out-dir>/metrics.json. Called by steps/score_asi.sh.

The speech of <data-dir> is released here, by the attacker, who trains on one part of it and attacks the other.
"""

import math
from pathlib import Path
from pickle import UnpicklingError

import torch

from dpanon.anonymize.pipeline import System
from dpanon.attack.identification import IdentificationConfig, identify
from dpanon.attack.released import FEATURES, Extracted, extracted, release_features, system_of
from dpanon.cli import ArgumentParser, run
from dpanon.cli.export_models import load_bottleneck
from dpanon.config import load_config, parse_set
from dpanon.data.data_dir import DataDir
from dpanon.errors import DpanonError, UsageError
from dpanon.evaluate.metrics import write_metrics
from dpanon.privacy import KeyedNoise, SystemNoise
from dpanon.train import parallel
from dpanon.train.bottleneck import TrainBottleneckConfig


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--feature", choices=FEATURES, required=True)
    parser.add_argument(
        "--epsilon", type=float, required=True, help="of one frame (bn, bn_tdnnf) or utterance (f0); inf: no noise"
    )
    parser.add_argument("--releases", type=int, default=1, help="of every utterance, each with new noise (default: 1)")
    parser.add_argument("--models", default="", help="directory of weights (default: the shipped ones)")
    parser.add_argument(
        "--extractor", default="", metavar="DIR", help="of bn_tdnnf: made by steps/train_bn.sh with this epsilon"
    )
    parser.add_argument("--keyed-noise", default="", metavar="SEED", help="repeatable noise, for tests")
    parser.add_argument("data", type=Path, metavar="data-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    return parser.parse_args(argv)


def load_extracted(directory: Path, epsilon: float) -> Extracted:
    """What an extractor of steps/train_bn.sh releases; UsageError if that is not what ``directory`` has."""
    try:
        trained_for = load_config(TrainBottleneckConfig, directory / "config.yaml").epsilon
        network = load_bottleneck(directory)
    except (DpanonError, OSError, KeyError, RuntimeError, UnpicklingError) as error:
        raise UsageError(f"{directory}: no extractor of steps/train_bn.sh: {error}") from error
    return extracted(network, trained_for, epsilon)


def main(argv=None):
    args = parse_args(argv)
    if args.releases < 1:
        raise UsageError(f"--releases takes a whole number > 0, not {args.releases}")
    torch.set_num_threads(1)
    config = load_config(IdentificationConfig, args.config, args.set)
    data = DataDir.read(args.data)
    if args.extractor and args.feature != "bn_tdnnf":
        raise UsageError(f"--extractor is for the feature bn_tdnnf, not for {args.feature}")
    system: Extracted | System | None
    if args.extractor:
        system = load_extracted(Path(args.extractor), args.epsilon)
    else:
        system = system_of(args.feature, args.epsilon, Path(args.models) if args.models else None)
    clear = math.isinf(args.epsilon)

    def noise(number):
        if not args.keyed_noise:
            return lambda utt: SystemNoise()
        return lambda utt: KeyedNoise(int(args.keyed_noise), utt, f"asi{number}")

    releases = [release_features(args.feature, system, data, noise(k)) for k in range(1 if clear else args.releases)]
    parallel.place()  # not before the release, which is made on the CPU
    found = identify(config, releases, {utt: data.speaker(utt) for utt in data.utts}, args.out)
    facts = {"feature": args.feature, "epsilon": args.epsilon, "pieces": config.pieces}
    name = f"{args.feature}_eps{args.epsilon:g}"
    write_metrics(args.out, "asi", name, data.path.resolve().name, {"data": str(args.data)} | facts | found)
    error, low, high, linear, chance, training = (
        f"{100 * found[key]:.1f}"
        for key in ("error", "error_low", "error_high", "linear_error", "chance", "train_error")
    )
    print(
        f"{args.out}: P_ASI {error} % [{low}, {high}], on training pieces {training} %; linear attacker {linear} %; "
        f"chance {chance} %; {found['num_speakers']} speakers, {found['num_test']} test pieces"
    )
    for flag in found["flags"]:
        print(f"warning: {flag}")


if __name__ == "__main__":
    run(main)
