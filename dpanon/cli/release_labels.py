"""Noisy labels of public speech by private teachers -> <out>/text, privacy.json. Called by steps/release_labels.sh."""

from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set
from dpanon.data.data_dir import DataDir
from dpanon.train.queries import METHODS, QueriesConfig, release_labels


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--epsilon", type=float, required=True, help="of all answers together")
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--cap", type=float, help="refuse if all that these teachers ever answered would cost more")
    parser.add_argument("--system", required=True, help="name in the tables")
    parser.add_argument("--start", type=Path, help="folder of the public model that finds candidates")
    parser.add_argument("teachers", type=Path)
    parser.add_argument("private", type=Path)
    parser.add_argument("public", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    config = load_config(QueriesConfig, args.config, args.set)
    private, public = DataDir.read(args.private), DataDir.read(args.public)
    said = release_labels(
        args.teachers,
        private,
        public,
        args.out,
        args.system,
        args.method,
        config,
        args.epsilon,
        args.delta,
        args.cap,
        args.start,
    )
    print(f"{args.out}: {said['num_answered']} of {config.queries} queries answered; {said['sentence']}")


if __name__ == "__main__":
    run(main)
