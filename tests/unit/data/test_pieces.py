"""Pieces of utterances, speakers shared out."""

import numpy as np
import pytest

from dpanon.data.audio import read_audio, write_wav
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.embeddings import read_set, sexes, write_set
from dpanon.data.pieces import cut, share_out
from dpanon.errors import DataDirError, UsageError


def test_pieces_are_the_utterance(folder):
    samples = np.random.default_rng(1).normal(0, 0.1, 17_001)
    write_wav(folder / "long.wav", samples)
    tables = {"wav.scp": folder / "long.wav", "utt2spk": "f1", "utt2num_samples": 17_001}
    data = write_data_dir(
        folder / "one", {name: {"f1-0": value} for name, value in tables.items()} | {"spk2gender": {"f1": "f"}}
    )
    pieces = cut(data, 0.5, 9, folder / "pieces")
    joined = np.concatenate([read_audio(pieces.wav(piece)) for piece in pieces.utts])
    assert pieces.utts == ("f1-0-p000", "f1-0-p001")
    assert np.array_equal(joined, read_audio(folder / "long.wav"))
    assert pieces.speakers == ("f1",)
    assert pieces.sex("f1") == "f"
    assert cut(data, 0.5, 1, folder / "first").utts == ("f1-0-p000",)
    with pytest.raises(UsageError, match="exists"):
        cut(data, 0.5, 9, folder / "pieces")


@pytest.mark.parametrize(("seconds", "most"), [(0.1, 1), (float("nan"), 1), (1.0, 0)])
def test_no_pieces_of_nothing(data, folder, seconds, most):
    with pytest.raises(UsageError):
        cut(data, seconds, most, folder / "pieces")


def test_speakers_are_shared_out_within_each_sex(data):
    parts = share_out(data, {"train": 2, "test": 1})
    assert sorted(sum(parts.values(), ())) == sorted(data.speakers)
    assert {name: sum(speaker[0] == "f" for speaker in speakers) for name, speakers in parts.items()} == {
        "train": 2,
        "test": 1,
    }
    assert parts == share_out(data, {"train": 200, "test": 100})


def test_a_part_without_speakers_is_refused(data):
    with pytest.raises(UsageError, match="too few: c gets none"):
        share_out(data, {"a": 1, "b": 1, "c": 1e-6})
    with pytest.raises(UsageError, match="two parts"):
        share_out(data, {"a": 1})


def test_a_set_of_vectors_has_no_audio_and_names_no_path(data, folder):
    vectors = np.random.default_rng(1).normal(size=(len(data), 5)).astype(np.float32)
    write_set(data, vectors, folder / "out")
    again, found = read_set(folder / "out")
    assert np.array_equal(found, vectors)
    assert again.utts == data.utts
    assert not (folder / "out" / "wav.scp").exists()
    assert str(folder) not in (folder / "out" / "xvector.scp").read_text()
    (folder / "out").rename(folder / "moved")
    assert np.array_equal(read_set(folder / "moved")[1], vectors)
    assert np.nansum(sexes(again)) == 12
    with pytest.raises(DataDirError, match="no wav.scp"):
        DataDir.read(folder / "moved")
    with pytest.raises(UsageError, match="exists"):
        write_set(data, vectors, folder / "moved")


def test_what_cannot_be_written_leaves_nothing(data, folder):
    vectors = np.full((len(data), 5), np.nan, dtype=np.float32)
    with pytest.raises(DataDirError, match="finite"):
        write_set(data, vectors, folder / "out")
    assert not [path for path in folder.iterdir() if "out" in path.name]
