"""Train ECAPA-TDNN, an attacker, on released speech -> <asv-dir>. Called by steps/train_ecapa.sh."""

from pathlib import Path

import torch

from dpanon.attack.ecapa import EcapaConfig, train_ecapa
from dpanon.attack.sanity import POOR_ACCURACY
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.config import load_config, parse_set
from dpanon.data.data_dir import DataDir
from dpanon.evaluate.claims import read_claim


def parse_args(argv=None):
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--baseline", type=boolean, default=False, help="train on clear speech (default: false)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto (default)")
    parser.add_argument(
        "--init", type=Path, help="fine-tune: an asv-dir of this step, or a checkpoint of SpeechBrain's ECAPA-TDNN"
    )
    parser.add_argument("data", type=Path, nargs="+", metavar="data-dir")
    parser.add_argument("out", type=Path, metavar="asv-dir")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    config = load_config(EcapaConfig, args.config, args.set)
    sets = [DataDir.read(path) for path in args.data]
    for data in sets:
        read_claim(data.path, data.utts, args.baseline)  # refuses clear speech that nobody asked for
    device = ("cuda" if torch.cuda.is_available() else "cpu") if args.device == "auto" else args.device
    figures = train_ecapa(config, sets, args.out, device, args.init)
    print(f"{args.out}: {config.loop.steps} steps, accuracy on training speakers {100 * figures['accuracy']:.1f} %")
    if figures["accuracy"] < POOR_ACCURACY:
        print("warning: a badly trained attacker overstates privacy; train longer before its EER is quoted")


if __name__ == "__main__":
    run(main)
