"""`dpanon anonymize --ledger`: what is released was counted before, a run that goes on counts once, caps refuse."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import fake_system
import numpy as np
import pytest
import soundfile

from dpanon.anonymize import batch
from dpanon.anonymize.sources import make_plan
from dpanon.anonymize.workers import Options, promised
from dpanon.cli import anonymize, run
from dpanon.cli import ledger as ledger_command
from dpanon.data.data_dir import write_data_dir
from dpanon.errors import StaleError
from dpanon.privacy import Guarantee
from dpanon.privacy.ledger import Ledger, LedgerError, read

COST = 10.0 + 50 * 100.0  # of half a second


class Kill(BaseException):
    """As kill -9: nothing that comes after it happens."""


@pytest.fixture(autouse=True)
def system(monkeypatch):
    stub = types.ModuleType("dpanon.anonymize.pretrained")
    stub.load_system = fake_system.load_system
    monkeypatch.setitem(sys.modules, "dpanon.anonymize.pretrained", stub)


@pytest.fixture
def budget(tmp_path):
    return tmp_path / "budget.jsonl"


def speech(seed=0):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, 8000).astype(np.float32)


def folder(path, num=3):
    path.mkdir()
    for i in range(num):
        soundfile.write(path / f"talk {i} of Mustermann.wav", speech(i), 16000)
    return path


def data_dir(path, num=4):
    wavs = sorted(folder(path.with_name(f"{path.name} wavs"), num).iterdir())
    utts = [f"spk{i % 2}-{i}" for i in range(num)]
    tables = {
        "wav.scp": dict(zip(utts, wavs, strict=True)),
        "utt2spk": {utt: utt.split("-")[0] for utt in utts},
        "utt2num_samples": dict.fromkeys(utts, 8000),
    }
    return write_data_dir(path, tables).path


def options(budget, **more):
    return Options(epsilon_f0=10.0, epsilon_bn=100.0, ledger=str(budget), **more)


def release(source, out, opts, **more):
    return batch.release(make_plan(source, out), opts, 1, fake_system.load, **more)


def releases(budget):
    """How often each recording was counted."""
    return sorted(account.releases for account in read(budget).utterances.values())


def call(*arguments):
    """Exit code."""
    with pytest.raises(SystemExit) as stop:
        run(anonymize.main, list(map(str, arguments)))
    return stop.value.code


def show(budget, *arguments, capsys):
    capsys.readouterr()
    ledger_command.main(["show", str(budget), "--json", "true", *map(str, arguments)])
    return json.loads(capsys.readouterr().out)


# counted


def test_another_release_of_the_same_speech_adds_up_whatever_its_file_is(tmp_path, budget):
    release(folder(tmp_path / "in"), tmp_path / "out", options(budget))
    (tmp_path / "renamed").mkdir()
    wave, rate = soundfile.read(tmp_path / "in" / "talk 0 of Mustermann.wav")
    soundfile.write(tmp_path / "renamed" / "x.flac", wave, rate)
    result = release(tmp_path / "renamed", tmp_path / "out2", options(budget))
    assert releases(budget) == [1, 1, 2] and not read(budget).reserved
    with Ledger(budget) as ledger:
        assert ledger.of_utterance(wave.astype(np.float32)).epsilon() == 2 * COST
        assert result.head == ledger.head
    for file in (budget, tmp_path / "budget.jsonl.key"):
        assert b"Mustermann" not in file.read_bytes() and b"talk" not in file.read_bytes()


def test_speakers_come_from_the_data_directory(tmp_path, budget, capsys):
    release(data_dir(tmp_path / "data"), tmp_path / "out", options(budget))
    with Ledger(budget) as ledger:
        assert ledger.of_speaker("spk1").epsilon() == 2 * COST
    shown = show(budget, "--speaker", "spk1", capsys=capsys)
    assert [entry["epsilon"] for entry in shown["speakers"]] == [2 * COST] and not shown["utterances"]
    assert Guarantee.from_dict(shown["speakers"][0]["guarantee"]).unit == "speaker"
    assert b"spk1" not in budget.read_bytes()


def test_the_statement_says_that_it_was_counted_and_not_where(tmp_path, budget):
    release(folder(tmp_path / "in"), tmp_path / "out", options(budget, cap_epsilon=1e6))
    statement = (tmp_path / "out" / "privacy.json").read_text()
    assert json.loads(statement)["options"]["ledger"] is True and "budget" not in statement and "cap" not in statement


def test_noise_is_drawn_after_the_reservation_and_named_after_the_commit(tmp_path, budget, monkeypatch):
    seen = []
    real, replace = fake_system.FakeSystem.anonymize, os.replace

    def spy(self, samples, target, noise=None):
        seen.append(("draw", read(budget).num_rows, len(read(budget).reserved)))
        return real(self, samples, target, noise)

    def named(src, dst):
        if "/release/" in str(dst):
            seen.append(("name", read(budget).num_rows, len(read(budget).reserved)))
        replace(src, dst)

    monkeypatch.setattr(fake_system.FakeSystem, "anonymize", spy)
    monkeypatch.setattr(os, "replace", named)
    release(folder(tmp_path / "in", 2), tmp_path / "out", options(budget))
    drawn_and_named = [event for event in seen if event[1] > 1][:4]
    assert drawn_and_named == [("draw", 2, 1), ("name", 3, 0), ("draw", 4, 1), ("name", 5, 0)]


def test_what_is_promised_beforehand_is_what_is_drawn(tmp_path, budget, monkeypatch):
    system = fake_system.FakeSystem("dp", 100.0, 10.0)
    made = system.anonymize(speech(), system.pool.choose())
    assert promised(system, 50) == made.guarantee
    monkeypatch.setattr("dpanon.anonymize.workers.promised", lambda system, num: promised(system, num - 1))
    said = []
    result = release(
        folder(tmp_path / "in", 1), tmp_path / "out", options(budget), on_refused=lambda *a: said.append(a)
    )
    assert result.statement is None and "the ledger counts parts" in said[0][1]


def test_the_system_plain_is_counted_without_bound(tmp_path, budget):
    release(folder(tmp_path / "in", 1), tmp_path / "out", Options(system="plain", ledger=str(budget)))
    assert next(iter(read(budget).utterances.values())).epsilon() == float("inf")


# stopped and taken up again


def test_a_run_that_goes_on_counts_nothing_twice(tmp_path, budget, monkeypatch):
    """Killed while it draws, once for each recording: nothing had its name, so each counts once."""
    source = folder(tmp_path / "in")
    real = fake_system.FakeSystem.anonymize
    for left in (0, 1, 1):  # each run finishes so many, then dies amid the next one

        def dying(self, samples, target, noise=None, rest=[left]):  # noqa: B006
            rest[0] -= 1
            real(self, samples, target, noise)
            if rest[0] < 0:
                raise Kill
            return real(self, samples, target, noise)

        monkeypatch.setattr(fake_system.FakeSystem, "anonymize", dying)
        with pytest.raises(Kill):
            release(source, tmp_path / "out", options(budget))
    monkeypatch.setattr(fake_system.FakeSystem, "anonymize", real)
    result = release(source, tmp_path / "out", options(budget))
    assert (result.released, result.kept) == (3, 2)
    assert releases(budget) == [1, 1, 1] and not read(budget).reserved


@pytest.mark.parametrize("moment", ["os.replace", "json.dumps"])
def test_killed_between_commit_and_journal_it_counts_twice(tmp_path, budget, monkeypatch, moment):
    """It may have had its name, and is drawn again: two releases, as far as anyone can tell."""
    source = folder(tmp_path / "in")
    module, name = {"os": os, "json": json}[moment.split(".")[0]], moment.split(".")[1]
    real = getattr(module, name)

    def dying(*args, **kwargs):
        if (name == "replace" and "/release/" in str(args[1])) or (name == "dumps" and "stat" in args[0]):
            raise Kill
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, dying)
    with pytest.raises(Kill):
        release(source, tmp_path / "out", options(budget))
    monkeypatch.setattr(module, name, real)
    assert releases(budget) == [1]
    assert release(source, tmp_path / "out", options(budget)).released == 3
    assert releases(budget) == [1, 1, 2] and not read(budget).reserved


def test_a_run_given_up_stays_counted(tmp_path, budget, monkeypatch):
    soundfile.write(folder(tmp_path / "in", 1) / "bug.wav", np.full(8000, 0.25), 16000)
    result = release(tmp_path / "in", tmp_path / "out", options(budget))
    assert (result.released, result.refused) == (1, 1)
    assert releases(budget) == [1, 1] and len(read(budget).reserved) == 1


def test_a_run_goes_on_under_its_ledger_only_and_under_any_cap(tmp_path, budget):
    source = folder(tmp_path / "in")

    def stop(path):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(source, tmp_path / "out", options(budget), on_done=stop)
    for other in (options(tmp_path / "other.jsonl"), Options(epsilon_f0=10.0, epsilon_bn=100.0)):
        with pytest.raises(StaleError, match="was begun with ledger"):
            release(source, tmp_path / "out", other)
    assert release(source, tmp_path / "out", options(budget, cap_epsilon=COST)).released == 3
    data = data_dir(tmp_path / "data")
    release(data, tmp_path / "out2", Options(epsilon_f0=10.0, epsilon_bn=100.0))
    with pytest.raises(StaleError, match="ledger"):  # done, but not counted there
        release(data, tmp_path / "out2", options(budget))


@pytest.mark.slow
def test_a_killed_process_and_its_workers_leave_ledger_and_journal_in_step(tmp_path, budget):
    source, out = data_dir(tmp_path / "data", 8), tmp_path / "out"
    fake = Path(fake_system.__file__)
    command = [sys.executable, str(fake), "--ledger", str(budget), "--jobs", "2", str(source), str(out)]
    environment = {**os.environ, "FAKE_DELAY": "0.5", "PYTHONPATH": str(fake.parents[3])}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    journal = tmp_path / "out.partial" / "journal.jsonl"
    while not (journal.exists() and journal.read_text().count("\n") >= 3):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(0.5)  # the workers are gone as well
    book = read(budget)
    committed = sum(account.releases for account in book.utterances.values()) - len(book.reserved)
    named = len(list((tmp_path / "out.partial" / "release").rglob("*.wav")))
    assert named <= committed <= named + 1
    again = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    total = sum(account.releases for account in read(budget).utterances.values())
    assert 8 <= total <= 9 and len(list((out / "wav").iterdir())) == 8 and not read(budget).reserved


# refused


def test_a_recording_over_its_cap_is_refused_and_the_others_go_on(tmp_path, budget, capsys):
    source = folder(tmp_path / "in")
    (tmp_path / "first").mkdir()
    (source / "talk 1 of Mustermann.wav").rename(tmp_path / "first" / "x.wav")
    assert call("--epsilon-bn", 100, "--ledger", budget, tmp_path / "first", tmp_path / "out") == 0
    (tmp_path / "first" / "x.wav").rename(source / "y.wav")
    before = read(budget).num_rows
    assert call("--epsilon-bn", 100, "--ledger", budget, "--cap-epsilon", 1.5 * COST, source, tmp_path / "out2") == 1
    said = capsys.readouterr()
    refused = [line for line in said.err.splitlines() if line.startswith("refused: ")]
    assert len(refused) == 1 and "y.wav: over the cap" in refused[0] and f"epsilon {2 * COST:.6g}" in refused[0]
    assert "2 released, 1 refused" in said.out and read(budget).head in said.out
    assert releases(budget) == [1, 1, 1] and read(budget).num_rows == before + 4


def test_a_speaker_over_the_cap_is_refused(tmp_path, budget, capsys):
    source = data_dir(tmp_path / "data", 6)
    cap = ("--cap-epsilon-speaker", 2 * COST)
    assert call("--epsilon-bn", 100, "--ledger", budget, *cap, source, tmp_path / "out") == 1
    assert "4 released, 2 refused" in capsys.readouterr().out
    assert {account.releases for account in read(budget).speakers.values()} == {2}


def test_a_ledger_that_cannot_be_believed_stops_everything_in_one_line(tmp_path, budget, capsys):
    source = folder(tmp_path / "in", 1)
    budget.write_text("no ledger\n")
    assert call("--ledger", budget, source, tmp_path / "out") == 1
    assert capsys.readouterr().err == f"error: {budget}: line 1: not a row of a ledger\n"
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize("row", [2, 3])
def test_a_full_disk_stops_the_run_before_anything_is_named(tmp_path, budget, monkeypatch, row):
    """At the reservation (row 2) or at the commit (row 3) of the second recording."""
    source = folder(tmp_path / "in")
    real, rows = os.write, [0]

    def full(fd, data):
        if bytes(data[:5]) == b'{"n":':
            rows[0] += 1
            if rows[0] > row + 1:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LedgerError, match="No space left on device; nothing is released"):
        release(source, tmp_path / "out", options(budget))
    monkeypatch.setattr(os, "write", real)
    assert not (tmp_path / "out").exists()
    assert len(list((tmp_path / "out.partial" / "release").rglob("*.wav"))) == 1
    assert release(source, tmp_path / "out", options(budget)).kept == 1
    assert releases(budget) == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cap-epsilon", "5"], "give --ledger"),
        (["--ledger-names", "true"], "give --ledger"),
        (["--ledger", "L", "--keyed-noise", "1"], "leave one out"),
        (["--ledger", "L", "--system", "plain", "--cap-epsilon", "5"], "no cap allows it"),
        (["--ledger", "L", "--cap-delta", "1e-6"], "belongs to"),
        (["--ledger", "L", "--cap-epsilon", "0"], "finite and > 0"),
        (["--ledger", "L", "--cap-epsilon", "5", "--cap-delta", "1"], "between 0 and 1"),
        (["--ledger", "L", "--cap-epsilon-speaker", "5"], "needs a data directory"),
    ],
)
def test_options_that_cannot_be_meant(tmp_path, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert call(*arguments, folder(tmp_path / "in", 1), tmp_path / "out") == 2
    assert said in capsys.readouterr().err and sorted(os.listdir(tmp_path)) == ["in"]


# dpanon ledger


def ledger_call(capsys, *arguments):
    """(exit code, what was said)."""
    with pytest.raises(SystemExit) as stop:
        run(ledger_command.main, list(map(str, arguments)))
    said = capsys.readouterr()
    return stop.value.code, said.out + said.err


def test_show_prints_totals_in_the_order_of_their_cost(tmp_path, budget, capsys):
    source = data_dir(tmp_path / "data", 3)
    release(source, tmp_path / "out", options(budget, ledger_names=True))
    again = tmp_path / "data wavs" / "talk 1 of Mustermann.wav"
    release(again, tmp_path / "again.wav", options(budget))
    code, said = ledger_call(capsys, "show", budget)
    lines = said.splitlines()
    assert code == 0 and lines[0].split() == ["utterance", "name", "speaker", "releases", "epsilon"]
    assert lines[2].split()[1] == "spk1-1" and lines[2].split()[3:] == ["2", f"{2 * COST:g}"]
    assert f"3 utterances and 2 speakers; 9 rows, head {read(budget).head}" in lines[-1]
    shown = show(budget, "--of", again, capsys=capsys)
    assert [entry["releases"] for entry in shown["utterances"]] == [2] and not shown["speakers"]


def test_check_finds_what_is_wrong_and_where(tmp_path, budget, capsys):
    release(folder(tmp_path / "in"), tmp_path / "out", options(budget))
    data = budget.read_bytes()
    code, said = ledger_call(capsys, "check", budget)
    head = read(budget).head
    assert code == 0 and "7 rows" in said and head in said
    rows = data.splitlines(keepends=True)
    budget.write_bytes(b"".join(rows[:-2]))
    assert ledger_call(capsys, "check", budget)[0] == 0  # cannot be seen
    code, said = ledger_call(capsys, "check", budget, "--head", head)
    assert code == 1 and "line 6: no row has the hash" in said and said.count("\n") == 1
    budget.write_bytes(data + rows[-1][:100])
    code, said = ledger_call(capsys, "check", budget, "--head", json.loads(rows[4])["hash"])
    assert code == 0 and "2 rows more" in said and "line 8 was cut short" in said
    budget.write_bytes(b"".join([*rows[:2], *rows[3:]]))
    code, said = ledger_call(capsys, "check", budget)
    assert code == 1 and said == f"error: {budget}: line 3: does not follow the line before: rows were removed, " + (
        "inserted or moved\n"
    )
    assert ledger_call(capsys, "check", tmp_path / "none") == (
        1,
        f"error: {tmp_path}/none: No such file or directory\n",
    )
    assert ledger_call(capsys, "check")[0] == 2
