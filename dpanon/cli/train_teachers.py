"""Teachers of one job: <teachers>/partition.json -> <teachers>/<k>/model.pt. Called by steps/train_teachers.sh.

Job j of n trains teachers j, j + n, ...; those that are there stay. A teacher with an empty part is the start model.
Teachers are private: their weights, losses and logs tell about the speech.
"""

import os
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set
from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import read_partition
from dpanon.errors import UsageError
from dpanon.models.commands import load_commands, save_commands
from dpanon.models.transducer import load_transducer, save_transducer
from dpanon.train import transducer
from dpanon.train.commands import TrainCommandsConfig, Utterances, labels_of, train_commands

Train = Callable[[Path, list[int]], Any]
Save = Callable[[Any, Path], None]


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--job", default="1/1", metavar="J/N")
    parser.add_argument("--recogniser", choices=("words", "transducer"), default="words")
    parser.add_argument("start", type=Path, help="folder of the public model to begin with")
    parser.add_argument("private", type=Path)
    parser.add_argument("teachers", type=Path)
    args = parser.parse_args(argv)
    job, _, jobs = args.job.partition("/")
    if not (job.isdigit() and jobs.isdigit() and 1 <= int(job) <= int(jobs)):
        raise UsageError(f"--job {args.job}: expected J/N with 1 <= J <= N")
    torch.set_num_threads(1)
    os.environ["TQDM_DISABLE"] = "1"
    data = DataDir.read(args.private)
    partition = read_partition(args.teachers / "partition.json", data)
    train, save = (sequences if args.recogniser == "transducer" else words)(args, data)
    index = {utt: i for i, utt in enumerate(data.utts)}
    for number in range(int(job), partition.teachers + 1, int(jobs)):
        folder = args.teachers / str(number)
        if (folder / "model.pt").exists():
            continue
        save(train(folder, [index[utt] for utt in partition.parts[number - 1]]), folder / "model.pt")
        print(f"{folder}: done", flush=True)


def words(args: Namespace, data: DataDir) -> tuple[Train, Save]:
    """How a recogniser of single words is trained on some rows of ``data``, and saved."""
    config = load_config(TrainCommandsConfig, args.config, args.set)
    start, known = load_commands(args.start / "model.pt")
    whole, labels = Utterances.read(data, start.config.bands), labels_of(data, data.utts, known)

    def train(folder: Path, rows: list[int]) -> Any:
        return train_commands(folder, config, whole.take(rows), labels[rows], len(known), start) if rows else start

    return train, lambda model, path: save_commands(model, known, path)


def sequences(args: Namespace, data: DataDir) -> tuple[Train, Save]:
    """The same of a transducer."""
    config = load_config(transducer.TrainTransducerConfig, args.config, args.set)
    start, tokens = load_transducer(args.start / "model.pt")
    whole, labels = transducer.read_speech(data), transducer.labels_of(data, data.utts, tokens)

    def train(folder: Path, rows: list[int]) -> Any:
        if not rows:
            return start
        return transducer.train_transducer(
            folder,
            config,
            whole.take(rows),
            [labels[i] for i in rows],
            len(tokens),
            start,
            [data.speaker(data.utts[i]) for i in rows],
        )

    return train, lambda model, path: save_transducer(model, tokens, path)


if __name__ == "__main__":
    run(main)
