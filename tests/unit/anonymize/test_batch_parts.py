"""A release in parts, as an array of jobs makes it, is the release in one piece."""

import json
import os

import fake_system
import numpy as np
import pytest
import soundfile

from dpanon.anonymize import batch
from dpanon.anonymize.sources import make_plan
from dpanon.anonymize.workers import Options
from dpanon.cli import anonymize, run
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.errors import StaleError, UsageError
from dpanon.privacy.ledger import read

NUM = 5
KEYED = Options(epsilon_f0=10.0, epsilon_bn=100.0, keyed_noise=3)


@pytest.fixture
def source(tmp_path):
    (tmp_path / "wavs").mkdir()
    tables = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    for i in range(NUM):
        wave = np.random.default_rng(i).uniform(-0.5, 0.5, 4800 + 160 * i)
        utt = f"spk{i % 2}-{i}"
        soundfile.write(tmp_path / "wavs" / f"{utt}.wav", wave, 16000)
        for name, value in zip(tables, (tmp_path / "wavs" / f"{utt}.wav", utt[:4], len(wave), "words"), strict=True):
            tables[name][utt] = value
    return write_data_dir(tmp_path / "data", tables).path


def release(source, out, options=KEYED, part=None):
    return batch.release(make_plan(source, out, part=part), options, 1, fake_system.load)


def content(out):
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_parts_make_the_same_set(source, tmp_path):
    release(source, tmp_path / "whole")
    made = [release(source, tmp_path / "out", part=(k, 2)).released for k in (1, 2)]
    assert made == [3, 2] and not (tmp_path / "out").exists()
    result = release(source, tmp_path / "out")
    assert (result.released, result.kept) == (NUM, NUM)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]


def test_what_a_part_did_not_finish_is_made_at_the_end_and_counts_once(source, tmp_path):
    budget = tmp_path / "budget.jsonl"
    options = Options(epsilon_f0=10.0, epsilon_bn=100.0, ledger=str(budget))
    release(source, tmp_path / "out", options, (1, 3))
    with (tmp_path / "out.part1of3.partial" / "journal.jsonl").open("a") as stream:
        stream.write('{"key": "cut sh')
    assert release(source, tmp_path / "out", options, (1, 3)).kept == 2
    release(source, tmp_path / "out", options, (3, 3))
    result = release(source, tmp_path / "out", options)
    assert (result.released, result.kept) == (NUM, 3)
    assert [account.releases for account in read(budget).utterances.values()] == [1] * NUM


@pytest.mark.parametrize("moment", range(5))
def test_killed_while_it_takes_the_parts_over_it_goes_on(source, tmp_path, monkeypatch, moment):
    release(source, tmp_path / "whole")
    for k in (1, 2):
        release(source, tmp_path / "out", part=(k, 2))
    real, left = os.replace, [moment]

    def dying(*paths):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        real(*paths)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        release(source, tmp_path / "out")
    monkeypatch.setattr(os, "replace", real)
    assert release(source, tmp_path / "out", part=(1, 2)).released == 0  # the run that gives the name has it
    assert release(source, tmp_path / "out").kept == NUM
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_other_options_another_number_and_folders_are_refused(source, tmp_path):
    release(source, tmp_path / "out", part=(1, 2))
    with pytest.raises(StaleError, match="keyed_noise"):
        release(source, tmp_path / "out", Options(epsilon_f0=10.0, epsilon_bn=100.0))
    (tmp_path / "out.partial" / "run.json").unlink()
    (tmp_path / "out.partial").rename(tmp_path / "away")
    with pytest.raises(StaleError, match="another number of parts"):
        release(source, tmp_path / "out", part=(1, 3))
    with pytest.raises(UsageError, match="is of a data directory"):
        make_plan(tmp_path / "wavs", tmp_path / "out", part=(1, 2))


def test_a_finished_set_is_left_alone(source, tmp_path):
    release(source, tmp_path / "out")
    assert release(source, tmp_path / "out", part=(1, 2)).kept == NUM
    assert json.loads((tmp_path / "out" / "privacy.json").read_text())["num_released"] == NUM
    assert len(DataDir.read(tmp_path / "out")) == NUM


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/2/3", "a/2"])
def test_no_part(text, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        run(anonymize.main, ["--part", text, str(tmp_path), str(tmp_path / "out")])
    assert stop.value.code == 2 and "--part" in capsys.readouterr().err


def test_a_ledger_is_not_shared_by_the_nodes_of_a_cluster(source, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    with pytest.raises(SystemExit) as stop:
        run(anonymize.main, ["--ledger", "l.jsonl", "--part", "1/2", str(source), str(tmp_path / "out")])
    assert stop.value.code == 2 and "locked on one machine" in capsys.readouterr().err
