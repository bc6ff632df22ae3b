"""Who trains on what: units stay whole, disjoint parts are disjoint, Poisson coins have their rate and are secret."""

import json
from collections import Counter

import numpy as np
import pytest

from dpanon.data.audio import write_wav
from dpanon.data.data_dir import write_data_dir
from dpanon.data.partitions import (
    Partition,
    disjoint,
    parents_of,
    poisson,
    read_partition,
    require_apart,
    units_of,
    write_partition,
)
from dpanon.data.sets import write_subset
from dpanon.errors import DataDirError
from dpanon.privacy import PrivacyError

SPEAKERS, TAKES, COPIES = 6, 20, 2


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """6 speakers, 20 utterances each, every one with a copy at another speed."""
    folder = tmp_path_factory.mktemp("private")
    write_wav(folder / "any.wav", np.zeros(3200, dtype=np.float32))
    names = [(f"s{s}", f"s{s}-{t:02d}") for s in range(SPEAKERS) for t in range(TAKES)]
    utts = [(spk, f"{utt}{copy}", utt) for spk, utt in names for copy in ("", "-sp")]
    tables = {
        "wav.scp": {utt: folder / "any.wav" for _, utt, _ in utts},
        "utt2spk": {utt: spk for spk, utt, _ in utts},
        "utt2num_samples": {utt: 3200 for _, utt, _ in utts},
        "utt2parent": {utt: parent for _, utt, parent in utts},
    }
    return write_data_dir(folder / "set", tables)


@pytest.mark.parametrize("unit", ["utterance", "speaker"])
def test_disjoint_parts_hold_each_unit_once_and_whole(data, unit):
    partition = disjoint(data, 3, unit)
    heard = [utt for part in partition.parts for utt in part]
    assert sorted(heard) == list(data.utts)
    assert partition.most_teachers == 1
    for part in partition.parts:
        for utt in part:
            parent = utt.removesuffix("-sp")
            assert {parent, f"{parent}-sp"} <= set(part), "a copy follows its parent"


def test_to_remove_one_unit_moves_no_other(data):
    whole = disjoint(data, 5)
    gone = {"s2-07", "s2-07-sp"}
    left = write_subset(data, set(data.utts) - gone, data.path.with_name("without"))
    for before, after in zip(whole.parts, disjoint(left, 5).parts, strict=True):
        assert set(before) - gone == set(after)


def test_poisson_coins_have_their_rate_and_are_tossed_anew(data):
    rate, teachers, rounds = 0.25, 8, 6
    members = Counter()
    for _ in range(rounds):
        partition = poisson(data, teachers, rate)
        for part in partition.parts:
            members.update({partition.units[utt] for utt in part})
    tosses = SPEAKERS * TAKES * teachers * rounds
    assert abs(sum(members.values()) / tosses - rate) < 5 * (rate * (1 - rate) / tosses) ** 0.5
    assert poisson(data, teachers, rate).parts != poisson(data, teachers, rate).parts, "no seed"


def test_a_cap_bounds_the_teachers_of_a_speaker(data):
    partition = poisson(data, 10, 0.9, cap=2)
    for s in range(SPEAKERS):
        assert sum(any(utt.startswith(f"s{s}-") for utt in part) for part in partition.parts) <= 2
    assert partition.most_teachers <= 2


def test_the_file_is_read_back_and_is_not_for_others(data, tmp_path):
    partition = poisson(data, 4, 0.5, "speaker")
    write_partition(partition, tmp_path / "partition.json")
    assert read_partition(tmp_path / "partition.json", data) == partition
    assert (tmp_path / "partition.json").stat().st_mode & 0o077 == 0
    assert partition.statement() == {"kind": "poisson", "unit": "speaker", "teachers": 4, "rate": 0.5, "cap": 4}


@pytest.mark.parametrize("harm", ["overlap", "half a unit", "twice", "stranger"])
def test_a_partition_that_was_tampered_with_is_refused(data, tmp_path, harm):
    write_partition(disjoint(data, 3), tmp_path / "p.json")
    record = json.loads((tmp_path / "p.json").read_text())
    first, second = record["parts"][0], record["parts"][1]
    if harm == "overlap":
        parent = first[0].removesuffix("-sp")
        second += [parent, f"{parent}-sp"]
    elif harm == "half a unit":
        first.pop()
    elif harm == "twice":
        first.append(first[0])
    else:
        first.append("s9-00")
    (tmp_path / "p.json").write_text(json.dumps(record))
    with pytest.raises(PrivacyError, match="overlap|not all|twice"):
        read_partition(tmp_path / "p.json", data)


def test_a_partition_of_another_set_is_refused(data, tmp_path):
    write_partition(disjoint(data, 3), tmp_path / "p.json")
    other = write_subset(data, data.utts[:-2], data.path.with_name("shorter"))
    with pytest.raises(PrivacyError, match="not a partition of"):
        read_partition(tmp_path / "p.json", other)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda d: disjoint(d, 0), "teachers"),
        (lambda d: disjoint(d, 7, "speaker"), "fewer teachers"),
        (lambda d: disjoint(d, 2, "frame"), "unit"),
        (lambda d: poisson(d, 3, 0.0), "rate"),
        (lambda d: poisson(d, 3, 1.5), "rate"),
        (lambda d: poisson(d, 3, float("nan")), "rate"),
        (lambda d: poisson(d, 3, 0.5, cap=4), "cap"),
        (lambda d: Partition("disjoint", "utterance", 0.5, 1, units_of(d, "utterance"), (d.utts,)), "no such"),
    ],
)
def test_what_cannot_be_accounted_for_is_refused(data, make, match):
    with pytest.raises(PrivacyError, match=match):
        make(data)


def test_public_speech_is_apart_from_private_speech(data, tmp_path):
    private = write_subset(data, data.utts[:40], tmp_path / "private")
    public = write_subset(data, data.utts[40:], tmp_path / "public")
    with pytest.raises(PrivacyError, match="is an utterance of the private set"):
        require_apart(private, public)  # of the same file, whatever its name
    copy = {
        name: {utt: public.tables()[name][utt] for utt in public.utts[:2]} for name in ("utt2spk", "utt2num_samples")
    }
    write_wav(tmp_path / "other.wav", np.zeros(3200, dtype=np.float32))
    apart = write_data_dir(
        tmp_path / "apart", copy | {"wav.scp": dict.fromkeys(copy["utt2spk"], tmp_path / "other.wav")}
    )
    require_apart(private, apart)
    with pytest.raises(PrivacyError, match="is an utterance of the private set"):
        require_apart(apart, public)


def test_a_parent_of_another_speaker_is_refused(data, tmp_path):
    tables = data.tables()
    del tables["spk2utt"]
    tables["utt2parent"]["s1-00-sp"] = "s0-00"
    with pytest.raises(DataDirError, match="different speakers"):
        units_of(write_data_dir(tmp_path / "bad", tables), "utterance")
    tables["utt2parent"]["s1-00-sp"] = "s1-01-sp"
    with pytest.raises(DataDirError, match="is no parent here"):
        parents_of(write_data_dir(tmp_path / "worse", tables))
