"""A release killed at 20 random moments and resumed is the set of an uninterrupted one; the ledger follows."""

import json
import multiprocessing
import random
import time

import fake_system
import numpy as np
import pytest
import soundfile

from dpanon.anonymize import batch
from dpanon.anonymize.sources import make_plan
from dpanon.anonymize.workers import Options
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.privacy.ledger import read

KILLS, NUM, DELAY = 20, 16, 0.03


@pytest.fixture
def source(tmp_path):
    """NUM recordings of 4 speakers, with trials."""
    (tmp_path / "wavs").mkdir()
    utts = [f"spk{i % 4}-{i:02d}" for i in range(NUM)]
    lengths = {}
    for i, utt in enumerate(utts):
        wave = np.random.default_rng(i).uniform(-0.5, 0.5, 4800 + 160 * i)
        soundfile.write(tmp_path / "wavs" / f"{utt}.wav", wave, 16000)
        lengths[utt] = len(wave)
    speakers = {utt: utt.split("-")[0] for utt in utts}
    tables = {
        "wav.scp": {utt: tmp_path / "wavs" / f"{utt}.wav" for utt in utts},
        "utt2spk": speakers,
        "utt2num_samples": lengths,
        "text": dict.fromkeys(utts, "words"),
    }
    trials = [(spk, utt, spk == speakers[utt]) for spk in ("spk0", "spk1") for utt in utts[8:]]
    return write_data_dir(tmp_path / "data", tables, trials).path


def release(source, out, options):
    return batch.release(make_plan(source, out), options, 1, fake_system.load)


def journaled(out):
    journal = out.with_name(f"{out.name}.partial") / "journal.jsonl"
    if out.exists():
        return NUM
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def kill_and_resume(source, out, options, after_kill=lambda: None):
    """The number of kills that hit a run at work."""
    context, moments, hits = multiprocessing.get_context("fork"), random.Random(), 0
    for _ in range(KILLS):
        process = context.Process(target=release, args=(source, out, options))
        process.start()
        time.sleep(moments.uniform(0, 4 * DELAY))
        hits += process.is_alive()
        process.kill()  # nothing happens to one that has ended
        process.join()
        after_kill()
    assert release(source, out, options).released == NUM
    return hits


def rows(out):
    return [json.loads(line) for line in (out / "privacy.jsonl").read_text().splitlines()]


def sounds(out):
    return {path.name: path.read_bytes() for path in (out / "wav").iterdir()}


@pytest.fixture(autouse=True)
def slow_system(monkeypatch):
    monkeypatch.setenv("FAKE_DELAY", str(DELAY))


def test_the_same_set_apart_from_noise_and_nobody_is_counted_twice(source, tmp_path):
    budget = tmp_path / "budget.jsonl"
    options = Options(epsilon_f0=10.0, epsilon_bn=100.0, ledger=str(budget))
    between = [0]  # recordings that a kill left between the ledger's commit and the journal: drawn again, and counted

    def after_kill():
        if budget.exists() and b"\n" in budget.read_bytes():  # else killed before its header: it begins again
            book = read(budget)  # what is only reserved is taken up again, and counts once
            committed = sum(account.releases for account in book.utterances.values()) - len(book.reserved)
            lost = committed - between[0] - journaled(tmp_path / "killed")
            assert lost in (0, 1)
            between[0] += lost

    assert kill_and_resume(source, tmp_path / "killed", options, after_kill) > 2
    release(source, tmp_path / "whole", Options(epsilon_f0=10.0, epsilon_bn=100.0))
    killed, whole = DataDir.read(tmp_path / "killed"), DataDir.read(tmp_path / "whole")
    killed.check_audio(decode=True)
    assert killed.tables().keys() == whole.tables().keys() and killed.trials() == whole.trials()
    for name in ("utt2spk", "utt2num_samples", "text"):
        assert killed.table(name) == whole.table(name)
    assert [row["utt"] for row in rows(tmp_path / "killed")] == list(whole.utts)
    for first, second in zip(rows(tmp_path / "killed"), rows(tmp_path / "whole"), strict=True):
        assert first | {"target": ""} == second | {"target": ""}
    assert not (tmp_path / "killed.partial").exists()
    accounts = read(budget)
    assert not accounts.reserved and len(accounts.utterances) == NUM
    counted = [account.releases for account in accounts.utterances.values()]
    assert min(counted) == 1, "nobody too little"
    assert sum(counted) <= NUM + between[0], "nobody too much, but for those drawn again"


def test_with_noise_that_repeats_the_same_bytes(source, tmp_path):
    options = Options(epsilon_f0=10.0, epsilon_bn=100.0, keyed_noise=3)
    kill_and_resume(source, tmp_path / "killed", options)
    release(source, tmp_path / "whole", options)
    assert sounds(tmp_path / "killed") == sounds(tmp_path / "whole") and len(sounds(tmp_path / "whole")) == NUM
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
