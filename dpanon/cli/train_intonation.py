"""Train the intonation network: <data-dir>, <bn-dir> -> <out-dir>. Called by steps/train_intonation.sh."""

import json
from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.cli.export_models import load_bottleneck
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.train import parallel
from dpanon.train.intonation import TrainIntonationConfig, train_intonation


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--noise", default="none", help="epsilon of one frame in the content, or none (system plain)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("data", type=Path, metavar="data-dir")
    parser.add_argument("bn", type=Path, metavar="bn-dir")
    parser.add_argument("out", type=Path, metavar="out-dir")
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    parallel.place()
    config = load_config(TrainIntonationConfig, args.config, args.set)
    epsilon = None if args.noise == "none" else float(args.noise)
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    figures = train_intonation(config, load_bottleneck(args.bn), epsilon, DataDir.read(args.data), args.out)
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(
        f"{args.out}: {config.loop.steps} steps, correlation {figures['correlation']:.3f} "
        f"of {figures['held_out']:.0f} held-out utterances"
    )


if __name__ == "__main__":
    run(main)
