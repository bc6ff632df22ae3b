"""Train the pitch auto-encoder: <data-dir>/f0.scp -> <out-dir>. Called by steps/train_f0.sh."""

import json
from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.train import parallel
from dpanon.train.pitch import TrainPitchConfig, train_pitch


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    parallel.place()
    config = load_config(TrainPitchConfig, args.config, args.set)
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    figures = train_pitch(config, DataDir.read(args.data), args.out)
    (args.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(f"{args.out}: {config.loop.steps} steps, correlation {figures['correlation']:.3f}")


if __name__ == "__main__":
    run(main)
