"""Teacher labels of public speech: <data>/wav.scp -> content.scp, phones.scp. Called by steps/extract_content.sh."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from dpanon.cli import ArgumentParser, run
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.features.content import PhoneTeacher, WhisperEncoder
from dpanon.features.level import normalise_level


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--teachers", default="whisper,hama", help="which labels to make, comma-separated")
    parser.add_argument("data", type=Path)
    args = parser.parse_args(argv)
    data = DataDir.read(args.data)
    teachers = {"whisper": ("content", WhisperEncoder), "hama": ("phones", PhoneTeacher)}
    for name in args.teachers.split(","):
        table, make = teachers[name]
        teacher = make()
        with ArrayWriter(data.path / f"{table}.scp") as writer:
            for utt in tqdm(data.utts, desc=f"{data.path}: {table}", mininterval=10):
                writer[utt] = np.asarray(teacher(normalise_level(read_audio(data.wav(utt)))))
    print(f"{data.path}: content labels of {len(data.utts)} utterances")


if __name__ == "__main__":
    run(main)
