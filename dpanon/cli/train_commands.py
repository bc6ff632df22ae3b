"""Train a recogniser of words: <data-dir> with fbank.scp and text -> <out>. Called by steps/train_commands.sh.

On released labels (a privacy.json beside them) it is a student, or several with weights; --baseline true trains on
clear text: the public start model, and the one without any privacy.
"""

from pathlib import Path

import torch

from dpanon.anonymize.statement import write_text
from dpanon.cli import ArgumentParser, boolean, run
from dpanon.config import load_config, parse_set, save_config
from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import require_apart
from dpanon.models.commands import load_commands, read_words, save_commands
from dpanon.train.commands import TrainCommandsConfig, Utterances, labels_of, train_commands
from dpanon.train.students import adapt, require_released, train_students

ROUNDS = 2  # of guesses about unlabelled speech


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--baseline", type=boolean, default=False, help="train on clear text (default: false)")
    parser.add_argument("--words", type=Path, required=True, help="the vocabulary, public")
    parser.add_argument("--start", type=Path, help="folder of a public model to begin with")
    parser.add_argument("--private", type=Path, help="students: the private set, of which none may hear anything")
    parser.add_argument("--unlabelled", type=Path, help="public speech for more rounds, by guessing its words")
    parser.add_argument("--students", type=int, default=1, metavar="N", help="how many (default: 1)")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    if not args.baseline and args.private is None:
        parser.error("a student needs --private, to be kept from it; or --baseline true")
    torch.set_num_threads(1)
    config = load_config(TrainCommandsConfig, args.config, args.set)
    words, data = read_words(args.words), DataDir.read(args.data)
    start = load_commands(args.start / "model.pt")[0] if args.start else None
    bands = start.config.bands if start else config.model.bands
    args.out.mkdir(parents=True, exist_ok=True)
    save_config(config, args.out / "config.yaml")
    if args.baseline:
        model = train_commands(
            args.out, config, Utterances.read(data, bands), labels_of(data, data.utts, words), len(words), start
        )
        if args.unlabelled:
            known, unheard = Utterances.read(data, bands), Utterances.read(DataDir.read(args.unlabelled), bands)
            for _ in range(ROUNDS):
                model = adapt(args.out, config, known, labels_of(data, data.utts, words), unheard, model)
        save_commands(model, words, args.out / "model.pt")
        print(f"{args.out}: trained on the clear text of {len(data)} utterances: no privacy claim")
        return
    private = DataDir.read(args.private)
    require_released(data, private)
    spare = None
    if args.unlabelled:
        public = DataDir.read(args.unlabelled)
        require_apart(private, public)
        others = [utt for utt in public.utts if utt not in set(data.utts)]
        spare = Utterances.read(public, bands, others) if others else None
        heard = Utterances.read(public, bands, data.utts)
    else:
        heard = Utterances.read(data, bands)
    labels = labels_of(data, data.utts, words)
    made = train_students(args.out, config, heard, labels, words, args.students, start, spare)
    write_text(args.out / "privacy.json", (data.path / "privacy.json").read_text(encoding="utf-8"))
    print(f"{args.out}: {len(made.models)} students of {len(data)} released labels, weights {made.weights}")


if __name__ == "__main__":
    run(main)
