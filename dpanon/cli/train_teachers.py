"""Teachers of one job: <teachers>/partition.json -> <teachers>/<k>/model.pt. Called by steps/train_teachers.sh.

Job j of n trains teachers j, j + n, ...; those that are there stay. A teacher with an empty part is the start model.
Teachers are private: their weights, losses and logs tell about the speech.
"""

import os
from pathlib import Path

import torch

from dpanon.cli import ArgumentParser, run
from dpanon.config import load_config, parse_set
from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import read_partition
from dpanon.errors import UsageError
from dpanon.models.commands import load_commands, save_commands
from dpanon.train.commands import TrainCommandsConfig, Utterances, labels_of, train_commands


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parse_set(parser)
    parser.add_argument("--job", default="1/1", metavar="J/N")
    parser.add_argument("start", type=Path, help="folder of the public model to begin with")
    parser.add_argument("private", type=Path)
    parser.add_argument("teachers", type=Path)
    args = parser.parse_args(argv)
    job, _, jobs = args.job.partition("/")
    if not (job.isdigit() and jobs.isdigit() and 1 <= int(job) <= int(jobs)):
        raise UsageError(f"--job {args.job}: expected J/N with 1 <= J <= N")
    torch.set_num_threads(1)
    os.environ["TQDM_DISABLE"] = "1"
    config = load_config(TrainCommandsConfig, args.config, args.set)
    data = DataDir.read(args.private)
    partition = read_partition(args.teachers / "partition.json", data)
    start, words = load_commands(args.start / "model.pt")
    whole = Utterances.read(data, start.config.bands)
    labels = labels_of(data, data.utts, words)
    index = {utt: i for i, utt in enumerate(data.utts)}
    for number in range(int(job), partition.teachers + 1, int(jobs)):
        folder = args.teachers / str(number)
        if (folder / "model.pt").exists():
            continue
        rows = [index[utt] for utt in partition.parts[number - 1]]
        model = start
        if rows:
            model = train_commands(folder, config, whole.take(rows), labels[rows], len(words), start)
        save_commands(model, words, folder / "model.pt")
        print(f"{folder}: done", flush=True)


if __name__ == "__main__":
    run(main)
