"""DP-SGD on a private set: a recogniser of words -> <out>/model.pt, privacy.json. Called by steps/train_dpsgd.sh."""

import json
from pathlib import Path

import torch

from dpanon.anonymize.statement import write_text
from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.models.commands import load_commands, read_words, save_commands
from dpanon.train.commands import Utterances, labels_of
from dpanon.train.dpsgd import DpSgdConfig, train_dpsgd
from dpanon.train.queries import statement_of


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="of the whole training")
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--words", type=Path, required=True, help="the vocabulary, public")
    parser.add_argument("--start", type=Path, help="folder of a public model to begin with")
    parser.add_argument("--system", default="dpsgd", help="name in the tables (default: dpsgd)")
    parser.add_argument("private", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    config = load_config(DpSgdConfig, args.config, args.set)
    words, data = read_words(args.words), DataDir.read(args.private)
    start = load_commands(args.start / "model.pt")[0] if args.start else None
    heard = Utterances.read(data, start.config.bands if start else config.model.bands)
    labels = labels_of(data, data.utts, words)
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    model, guarantee, figures = train_dpsgd(config, heard, labels, len(words), args.epsilon, args.delta, start)
    statement = statement_of(args.system, guarantee, args.delta) | {"options": figures | {"method": "dpsgd"}}
    save_commands(model, words, args.out / "model.pt")
    write_text(args.out / "privacy.json", json.dumps(statement, allow_nan=False, indent=1) + "\n")
    print(f"{args.out}: {statement['sentence']}")


if __name__ == "__main__":
    run(main)
