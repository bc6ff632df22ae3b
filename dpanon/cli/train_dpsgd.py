"""DP-SGD on a private set: a recogniser of words -> <out>/model.pt, privacy.json. Called by steps/train_dpsgd.sh."""

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import torch

from dpanon.anonymize.statement import write_text
from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.data.tokens import read_tokens
from dpanon.errors import UsageError
from dpanon.models.commands import load_commands, read_words, save_commands
from dpanon.models.transducer import load_transducer, save_transducer
from dpanon.privacy import Guarantee
from dpanon.train import transducer
from dpanon.train.commands import Utterances, labels_of
from dpanon.train.dpsgd import DpSgdConfig, DpSgdSteps, train_dpsgd
from dpanon.train.queries import statement_of

Trained = tuple[Guarantee, dict[str, float], Callable[[Path], None]]


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="of the whole training")
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--recogniser", choices=("words", "transducer"), default="words")
    parser.add_argument("--words", type=Path, required=True, help="the vocabulary, or the list of tokens; public")
    parser.add_argument("--start", type=Path, help="folder of a public model to begin with")
    parser.add_argument("--system", default="dpsgd", help="name in the tables (default: dpsgd)")
    parser.add_argument("private", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    data = DataDir.read(args.private)
    train = sequences if args.recogniser == "transducer" else recogniser_of_words
    guarantee, figures, save = train(args, data)
    statement = statement_of(args.system, guarantee, args.delta) | {"options": figures | {"method": "dpsgd"}}
    save(args.out / "model.pt")
    write_text(args.out / "privacy.json", json.dumps(statement, allow_nan=False, indent=1) + "\n")
    print(f"{args.out}: {statement['sentence']}")


def recogniser_of_words(args: Namespace, data: DataDir) -> Trained:
    config = load_config(DpSgdConfig, args.config, args.set)
    words = read_words(args.words)
    start = load_commands(args.start / "model.pt")[0] if args.start else None
    heard = Utterances.read(data, start.config.bands if start else config.model.bands)
    save_config(config, args.out / "config.yaml")
    labels = labels_of(data, data.utts, words)
    model, guarantee, figures = train_dpsgd(config, heard, labels, len(words), args.epsilon, args.delta, start)
    return guarantee, figures, lambda path: save_commands(model, words, path)


def sequences(args: Namespace, data: DataDir) -> Trained:
    """A transducer, from a public start: weights of its linear layers, those that conf/dpsgd.yaml names."""
    if args.start is None:
        raise UsageError("--recogniser transducer needs --start: the layers that are not trained come from there")
    config = load_config(DpSgdSteps, args.config, args.set)
    model, tokens = load_transducer(args.start / "model.pt")
    if tokens != read_tokens(args.words):
        raise UsageError(f"{args.start}: was trained with another list of tokens than {args.words}")
    save_config(config, args.out / "config.yaml")
    speech, labels = transducer.read_speech(data), transducer.labels_of(data, data.utts, tokens)
    guarantee, figures = transducer.train_dpsgd(config, model, speech, labels, args.epsilon, args.delta)
    return guarantee, figures, lambda path: save_transducer(model, tokens, path)


if __name__ == "__main__":
    run(main)
