"""Arrays come back as they were written, or not at all."""

import os
import pickle

import kaldiio
import numpy as np
import pytest

from dpanon.data.arrays import ArrayWriter, load_scp
from dpanon.errors import DataDirError

ARRAYS = {
    "b-1": np.arange(7, dtype=np.float32),
    "a-1": np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32),
    "c-ü": np.zeros(0, np.float32),
}


@pytest.fixture
def scp(folder):
    with ArrayWriter(folder / "x.scp") as writer:
        for utt, array in ARRAYS.items():
            writer[utt] = array
    return folder / "x.scp"


def test_round_trip(scp):
    found = load_scp(scp)
    assert list(found) == sorted(ARRAYS) and len(found) == 3
    for utt, array in ARRAYS.items():
        np.testing.assert_array_equal(found[utt], array)
        assert found[utt].dtype == np.float32 and found[utt].flags.writeable
    assert sorted(os.listdir(scp.parent)) == ["x.ark", "x.scp"]


def test_kaldi_reads_it(tmp_path):
    with ArrayWriter(tmp_path / "x.scp") as writer:
        writer["a"] = ARRAYS["a-1"]
    np.testing.assert_array_equal(kaldiio.load_scp(str(tmp_path / "x.scp"))["a"], ARRAYS["a-1"])


def test_a_relative_ark_is_beside_its_scp(scp):
    scp.write_text(scp.read_text(encoding="utf-8").replace(f"{scp.parent}/", ""), encoding="utf-8")
    scp.parent.rename(scp.parent.with_name("moved"))
    np.testing.assert_array_equal(load_scp(scp.parent.with_name("moved") / "x.scp")["b-1"], ARRAYS["b-1"])


def test_nothing_has_a_name_before_the_end(folder):
    with pytest.raises(RuntimeError):
        with ArrayWriter(folder / "x.scp") as writer:
            writer["a"] = np.zeros(3, np.float32)
            assert not (folder / "x.scp").exists() and not (folder / "x.ark").exists()
            raise RuntimeError
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    "array", [np.array([1, 2]), np.zeros((2, 2, 2)), np.array([np.nan], np.float32), np.float32(1), np.array(["a"])]
)
def test_what_is_no_float_array_is_refused(folder, array):
    with pytest.raises(DataDirError, match="'a-1': expected finite floats"):
        with ArrayWriter(folder / "x.scp") as writer:
            writer["a-1"] = array


def test_twice_and_bad_names_are_refused(folder):
    writer = ArrayWriter(folder / "x.scp")
    writer["a"] = np.zeros(3)
    with pytest.raises(DataDirError, match="'a' is written twice"):
        writer["a"] = np.zeros(3)
    with pytest.raises(DataDirError, match="as an id"):
        writer["a b"] = np.zeros(3)
    writer.abandon()
    with pytest.raises(DataDirError, match="ends in .scp"):
        ArrayWriter(folder / "x.txt")


def test_a_damaged_ark_is_refused(scp):
    ark = scp.with_suffix(".ark")
    ark.write_bytes(ark.read_bytes()[:20])
    with pytest.raises(DataDirError, match="'b-1': cannot read"):
        load_scp(scp)["b-1"]
    ark.unlink()
    with pytest.raises(DataDirError, match="No such file"):
        load_scp(scp)["b-1"]
    with pytest.raises(KeyError):
        load_scp(scp)["nobody"]


def test_a_pickle_in_an_ark_is_never_loaded(folder):
    (folder / "x.ark").write_bytes(b"PKL" + pickle.dumps(np.zeros(3)))
    (folder / "x.scp").write_text("a x.ark:0\nb x.ark\n")
    with pytest.raises(DataDirError, match="no binary array"):
        load_scp(folder / "x.scp")["a"]
    with pytest.raises(DataDirError, match="expected <ark>:<offset>"):
        load_scp(folder / "x.scp")["b"]
