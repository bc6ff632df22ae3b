"""Train the synthesizer: <data-dir>, <bn-dir> -> <out-dir>. Called by steps/train_synth.sh."""

import json
from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.cli.export_models import load_bottleneck, save_bottleneck
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.train import parallel
from dpanon.train.synth import TrainSynthConfig, train_synth


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--init", type=Path, help="directory of an earlier run to start from")
    parser.add_argument("--noise", default="none", help="epsilon of one frame in the content, or none (system plain)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("data", type=Path)
    parser.add_argument("bn", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    parallel.place()
    config = load_config(TrainSynthConfig, args.config, args.set)
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    extractor = load_bottleneck(args.bn)
    epsilon = None if args.noise == "none" else float(args.noise)
    figures, extractor = train_synth(config, extractor, epsilon, DataDir.read(args.data), args.out, args.init)
    if config.joint:
        save_bottleneck(extractor, args.bn, args.out / "bn")
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(f"{args.out}: {config.loop.steps} steps, mel difference {figures['mel']:.3f}")


if __name__ == "__main__":
    run(main)
