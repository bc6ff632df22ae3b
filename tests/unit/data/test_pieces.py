"""Pieces of utterances, speakers shared out."""

import numpy as np
import pytest

from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir
from dpanon.data.embeddings import read_set, sexes, write_set
from dpanon.data.pieces import cut, share_out
from dpanon.errors import DataDirError, UsageError


def test_pieces_are_the_utterance(data, folder, monkeypatch):
    monkeypatch.setattr("dpanon.data.pieces.SAMPLE_RATE", 1600)  # the recordings last 0.1 s
    pieces = cut(data, 0.5, 2, folder / "pieces")
    utt = data.utts[0]
    mine = [piece for piece in pieces.utts if piece.startswith(f"{utt}-p")]
    joined = np.concatenate([read_audio(pieces.wav(piece)) for piece in mine])
    assert len(mine) == 2
    assert np.array_equal(joined, read_audio(data.wav(utt)))
    assert {pieces.speaker(piece) for piece in mine} == {data.speaker(utt)}
    assert pieces.sex("f1") == "f"
    with pytest.raises(UsageError, match="exists"):
        cut(data, 0.5, 2, folder / "pieces")


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
