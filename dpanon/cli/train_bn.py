"""Train the bottleneck extractor: <data-dir> with its feature tables -> <out-dir>. Called by steps/train_bn.sh."""

import json
from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.cli.export_models import load_bottleneck
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.train import parallel
from dpanon.train.bottleneck import TrainBottleneckConfig, train_bottleneck


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--init", type=Path, help="directory of an earlier run to start from")
    parser.add_argument("--match", type=Path, help="directory of the extractor whose content this one has to give")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    parallel.place()
    config = load_config(TrainBottleneckConfig, args.config, args.set)
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    match = None if args.match is None else load_bottleneck(args.match).eval().requires_grad_(False)
    torch.manual_seed(config.loop.seed)
    figures = train_bottleneck(config, DataDir.read(args.data), args.out, args.init, match)
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    learned = [name for name in ("cosine", "mel", "ctc") if name in figures] + ["phone_accuracy"] * bool(
        config.phone_weight
    )
    said = ", ".join(f"{name.replace('_', ' ')} {figures[name]:.3f}" for name in learned)
    print(f"{args.out}: {config.loop.steps} steps, {said}")


if __name__ == "__main__":
    run(main)
