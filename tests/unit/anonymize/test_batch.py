"""A release of many recordings: what it holds, that it survives a kill, and that nothing is released twice."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import fake_system
import numpy as np
import pytest
import soundfile

from dpanon.anonymize import batch
from dpanon.anonymize.sources import make_plan
from dpanon.anonymize.workers import Options
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.errors import StaleError, UsageError

DP = Options(epsilon_f0=10.0, epsilon_bn=100.0)
PLAIN = Options(system="plain")
KEYED = Options(epsilon_f0=10.0, epsilon_bn=100.0, keyed_noise=7)
FAKE = Path(fake_system.__file__)
ROOT = FAKE.parents[3]


def speech(seconds=0.5, seed=0):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, int(16000 * seconds)).astype(np.float32)


def folder(path, num=4, old=True):
    path.mkdir()
    for i in range(num):
        file = path / f"talk {i} of Jörg.wav"
        soundfile.write(file, speech(0.3 + i / 10, seed=i), 16000)
        if old:
            os.utime(file, (1e9, 1e9))
    return path


def data_dir(path, num=4):
    wavs = folder(path.with_name(f"{path.name}.ü wav"), num)
    utts = [f"spk{i % 2}-{i}" for i in range(num)]
    files = dict(zip(utts, sorted(wavs.iterdir()), strict=True))
    speakers = {utt: utt.split("-")[0] for utt in utts}
    tables = {
        "wav.scp": files,
        "utt2spk": speakers,
        "utt2num_samples": {utt: len(soundfile.read(file)[0]) for utt, file in files.items()},
        "text": {utt: f"words of {utt}" for utt in utts},
        "spk2gender": {"spk0": "f", "spk1": "m"},
        "utt2loudness": dict.fromkeys(utts, "3.5"),
    }
    trials = [(spk, utt, spk == speakers[utt]) for spk in ("spk0", "spk1") for utt in utts[2:]]
    return write_data_dir(path, tables, trials or None, utts[:2])


def release(source, out, options=DP, jobs=1, **more):
    return batch.release(make_plan(source, out, options.keep_names), options, jobs, fake_system.load, **more)


def rows_of(out):
    return [json.loads(line) for line in (out / "privacy.jsonl").read_text().splitlines()]


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def cli(*arguments, delay=0.0, start=False, **more):
    command = [sys.executable, str(FAKE), "--system", "plain", *map(str, arguments)]  # no noise: no torch to load
    environment = {**os.environ, "FAKE_DELAY": str(delay), "PYTHONPATH": str(ROOT)}
    if start:
        return subprocess.Popen(
            command,
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # a job in the background of a shell, as the tests may be, starts with SIGINT ignored
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, **more)


def wait_for_rows(process, journal, num):
    while not (journal.exists() and journal.read_text().count("\n") >= num):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


# what is released


def test_a_folder_keeps_no_name_no_time_and_no_tag(tmp_path):
    result = release(folder(tmp_path / "in"), tmp_path / "out")
    files = content(tmp_path / "out")
    wavs = sorted((tmp_path / "out" / "wav").iterdir())
    assert (result.released, result.refused, len(wavs)) == (4, 0, 4)
    assert set(files) == {"privacy.json", "privacy.jsonl", *(f"wav/{p.name}" for p in wavs)}
    for path in wavs:
        assert len(path.stem) == 10 and path.stem.startswith("a-")
        raw = path.read_bytes()
        assert raw[36:40] == b"data" and len(raw) == 44 + int.from_bytes(raw[40:44], "little")
        assert (len(raw) - 44) % 320 == 0
        assert path.stat().st_mtime > 1.5e9
    assert len({path.stat().st_mtime_ns for path in wavs}) == 1  # not even the order of work
    assert not any(word in data for data in files.values() for word in (b"talk", b"J\xc3\xb6rg", b"rg.wav", b"in/"))
    assert not (tmp_path / "out.partial").exists()


def test_the_map_of_names_is_private_outside_and_only_grows(tmp_path):
    source = folder(tmp_path / "in", 2)
    first = release(source, tmp_path / "out")
    assert first.names == tmp_path / "out.names.tsv" and first.names.stat().st_mode & 0o077 == 0
    lines = dict(line.split("\t") for line in first.names.read_text().splitlines())
    assert sorted(lines.values()) == ["talk 0 of Jörg.wav", "talk 1 of Jörg.wav"]
    assert set(lines) == {path.name for path in (tmp_path / "out" / "wav").iterdir()}
    (tmp_path / "out").rename(tmp_path / "published")
    release(source, tmp_path / "out")
    assert len(first.names.read_text().splitlines()) == 4


def test_names_are_kept_on_request_and_never_collide(tmp_path):
    source = folder(tmp_path / "in", 1)
    (source / "sub").mkdir()
    for name in ("sub/a.wav", "sub/a.flac", "sub/A.ogg", "b.MP3"):
        if name.endswith("ogg"):
            soundfile.write(source / name, speech(), 16000, format="OGG", subtype="VORBIS")
        else:
            soundfile.write(source / name, speech(), 16000, format=name.split(".")[1].upper())
    options = Options(epsilon_f0=10.0, epsilon_bn=100.0, keep_names=True)
    result = release(source, tmp_path / "out", options)
    names = {str(p.relative_to(tmp_path / "out" / "wav")) for p in (tmp_path / "out" / "wav").rglob("*.wav")}
    assert names == {"talk 0 of Jörg.wav", "sub/a.wav.wav", "sub/a.flac.wav", "sub/A.ogg.wav", "b.wav"}
    assert result.names is None


def test_a_data_directory_keeps_labels_and_loses_what_was_made_from_the_speech(tmp_path):
    source = data_dir(tmp_path / "data")
    (source.path / "f0.scp").write_text("".join(f"{utt} f0.ark:1\n" for utt in source.utts))
    release(source.path, tmp_path / "out")
    made = DataDir.read(tmp_path / "out")
    made.check_audio(decode=True)
    assert made.utts == source.utts and made.trials() == source.trials() and made.enrolls == source.enrolls
    for name in ("text", "utt2spk", "spk2utt", "spk2gender"):
        assert made.table(name) == source.table(name)
    assert not made.has("f0.scp") and not made.has("utt2loudness")
    assert made.table("wav.scp") == {utt: f"wav/{utt}.wav" for utt in made.utts}
    assert [row["utt"] for row in rows_of(tmp_path / "out")] == list(made.utts)
    assert all(made.num_samples(row["utt"]) == 160 * row["num_frames"] for row in rows_of(tmp_path / "out"))


def test_a_file_has_its_statement_beside_it(tmp_path):
    source = folder(tmp_path / "in", 1) / "talk 0 of Jörg.wav"
    release(source, tmp_path / "new" / "übung 1.wav")
    made = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert made == ["übung 1.privacy.json", "übung 1.privacy.jsonl", "übung 1.wav"]
    assert json.loads((tmp_path / "new" / "übung 1.privacy.json").read_text())["num_released"] == 1


def test_rows_and_statement_say_what_is_promised(tmp_path):
    release(data_dir(tmp_path / "data").path, tmp_path / "out")
    rows, record = rows_of(tmp_path / "out"), json.loads((tmp_path / "out" / "privacy.json").read_text())
    for row in rows:
        assert row["epsilon_utterance"] == 10 + 100 * row["num_frames"]
        assert (row["epsilon_f0"], row["epsilon_bn"], row["epsilon_frame"]) == (10, 100, 100)
        assert row["unit"] == "utterance" and "same number of frames" in row["adjacency"]
        assert row["releasable"] is True and row["sampler"] == "exact" and row["eer_floor"] < 1e-6
        assert any("number of frames" in text for text in row["not_covered"])
    assert record["epsilon_utterance_worst"] == max(row["epsilon_utterance"] for row in rows)
    by_speaker = [sum(r["epsilon_utterance"] for r in rows if r["utt"].startswith(s)) for s in ("spk0", "spk1")]
    assert record["epsilon_speaker_worst"] == max(by_speaker)
    assert record["guarantee"]["kind"] == "pure" and record["num_released"] == 4 and record["num_refused"] == 0
    assert [part["mechanism"] for part in record["mechanisms"]] == ["pitch", "bottleneck features"]
    assert "vacuous" in record["sentence"] and record["releasable"] is True and record["dpanon"]


def test_padded_lengths_tell_their_step_and_nothing_else(tmp_path):
    """Recordings of 0.3 to 0.6 s come out one second long; the claim is about all lengths of that step."""
    padded = release(folder(tmp_path / "in"), tmp_path / "out", replace(DP, pad_lengths=True))
    lengths = {soundfile.info(file).frames for file in (tmp_path / "out" / "wav").iterdir()}
    assert lengths == {16000}
    for row in rows_of(tmp_path / "out"):
        assert row["num_frames"] == 100 and row["epsilon_utterance"] == 10.0 + 100 * 100.0
        assert "same step of the public ladder" in row["adjacency"]
        assert not any("number of frames" in word for word in row["not_covered"] + row["conditional_on"])
    assert "step of the public ladder" in padded.statement["sentence"]
    plain = release(tmp_path / "in", tmp_path / "plain", replace(PLAIN, pad_lengths=True))
    assert plain.statement["guarantee"]["kind"] == "none"


def test_padding_makes_the_same_recording_no_other(tmp_path):
    """The ledger knows a recording by its own samples, padded or not."""
    source, ledger = folder(tmp_path / "in", 1), str(tmp_path / "ledger")
    for name, pad in (("a", False), ("b", True)):
        release(source, tmp_path / name, replace(DP, pad_lengths=pad, ledger=ledger))
    from dpanon.privacy.ledger import Ledger

    (recording,) = source.iterdir()
    with Ledger(ledger) as book:
        spent = book.of_utterance(read_audio(recording)).epsilon()
    assert spent == (10.0 + 30 * 100.0) + (10.0 + 100 * 100.0)


def test_plain_claims_nothing_and_says_so(tmp_path):
    release(folder(tmp_path / "in", 1), tmp_path / "out", PLAIN)
    (row,), record = rows_of(tmp_path / "out"), json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert [row[name] for name in ("epsilon_f0", "epsilon_bn", "epsilon_utterance", "eer_floor")] == [None] * 4
    assert {"pitch", "voicing", "energy"} <= set(row["not_covered"])
    assert (record["guarantee"]["kind"], record["guarantee"]["reason"]) == ("none", "no noise")
    assert record["sentence"].startswith("No privacy guarantee: no noise")


# the noise, the target


@pytest.mark.parametrize(("kind", "system"), [("folder", "dp"), ("data", "plain")])
def test_keyed_noise_gives_the_same_bytes_with_any_number_of_jobs(tmp_path, kind, system):
    options = KEYED if system == "dp" else Options(system, keyed_noise=7)
    source = data_dir(tmp_path / "data", 5).path if kind == "data" else folder(tmp_path / "in", 5)
    for jobs in (1, 3):
        release(source, tmp_path / f"out{jobs}", options, jobs)
    assert content(tmp_path / "out1") == content(tmp_path / "out3")
    record = json.loads((tmp_path / "out1" / "privacy.json").read_text())
    assert record["releasable"] is False and record["sentence"].startswith("NOT RELEASABLE")
    assert all(row["releasable"] is False and row["sampler"] == "keyed" for row in rows_of(tmp_path / "out1"))


def test_noise_and_target_differ_from_run_to_run_without_a_key(tmp_path):
    source = folder(tmp_path / "in", 8)
    release(source, tmp_path / "one")
    release(source, tmp_path / "two")
    outs = [tmp_path / name for name in ("one", "two")]
    sounds = [
        {row["num_frames"]: (out / "wav" / f"{row['utt']}.wav").read_bytes() for row in rows_of(out)} for out in outs
    ]
    assert all(sounds[0][num] != sounds[1][num] for num in sounds[0])
    assert len({row["target"] for out in outs for row in rows_of(out)}) > 1


def test_another_seed_gives_other_noise(tmp_path):
    source = data_dir(tmp_path / "data", 2).path
    release(source, tmp_path / "a", KEYED)
    release(source, tmp_path / "b", Options(epsilon_f0=10.0, epsilon_bn=100.0, keyed_noise=8))
    assert (tmp_path / "a" / "wav" / "spk0-0.wav").read_bytes() != (tmp_path / "b" / "wav" / "spk0-0.wav").read_bytes()


def test_one_target_for_all_when_it_is_named(tmp_path):
    release(folder(tmp_path / "in", 3), tmp_path / "out", Options(epsilon_f0=10.0, epsilon_bn=100.0, target="m02a"))
    assert {row["target"] for row in rows_of(tmp_path / "out")} == {"m02a"}
    with pytest.raises(UsageError, match="unknown target 'x'"):
        release(tmp_path / "in", tmp_path / "out2", Options(epsilon_f0=10.0, epsilon_bn=100.0, target="x"))
    assert not (tmp_path / "out2.partial").exists()


# refusals


def test_a_bug_or_a_death_costs_one_recording_only(tmp_path):
    source = folder(tmp_path / "in", 3)
    soundfile.write(source / "bug.wav", np.full(8000, 0.25), 16000)
    soundfile.write(source / "death.wav", np.full(8000, 0.125), 16000)
    said = {}
    result = release(
        source, tmp_path / "out", PLAIN, jobs=2, on_refused=lambda path, reason: said.update({path.name: reason})
    )
    assert (result.released, result.refused) == (3, 2)
    assert "a bug" in said["bug.wav"] and "died" in said["death.wav"]


def test_nothing_is_named_when_all_are_refused(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.wav").write_bytes(b"")
    result = release(tmp_path / "in", tmp_path / "out")
    assert result.statement is None and result.refused == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_a_data_directory_shrinks_by_what_is_refused(tmp_path):
    source = data_dir(tmp_path / "data")
    source.wav("spk1-3").write_bytes(b"no audio")
    result = release(source.path, tmp_path / "out")
    made = DataDir.read(tmp_path / "out")
    assert result.refused == 1 and "spk1-3" not in made.utts and len(made.trials()) == 2
    again = release(source.path, tmp_path / "out")  # the same command: nothing is released again
    assert (again.released, again.kept, again.refused) == (3, 3, 1)


def test_the_same_recording_under_two_names_is_released_once(tmp_path):
    source = folder(tmp_path / "in", 1)
    (source / "link.wav").symlink_to("talk 0 of Jörg.wav")
    os.link(source / "talk 0 of Jörg.wav", source / "zz.wav")
    said = []
    result = release(source, tmp_path / "out", on_refused=lambda path, reason: said.append(reason))
    assert (result.released, result.refused) == (1, 2) and all("same file" in reason for reason in said)


# kills


@pytest.mark.parametrize(("kind", "jobs"), [("folder", 1), ("data", 2)])
def test_a_killed_run_goes_on_and_keeps_what_is_finished(tmp_path, kind, jobs):
    source = data_dir(tmp_path / "data", 6).path if kind == "data" else folder(tmp_path / "in", 6)
    out, partial = tmp_path / "ö out", tmp_path / "ö out.partial"
    options = ("--jobs", jobs)
    process = cli(*options, source, out, delay=1, start=True)
    wait_for_rows(process, partial / "journal.jsonl", 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    time.sleep(0.3)  # the workers are gone as well
    before = content(partial / "release")
    assert before and all(data[:4] == b"RIFF" for data in before.values())
    with (partial / "journal.jsonl").open("a") as stream:
        stream.write('{"key": "cut sho')
    stale = cli(*options, "--target", "f00a", source, out)
    assert stale.returncode == 3 and "was begun with target 'random', now it is 'f00a'" in stale.stderr
    done = cli("--jobs", 1, source, out)  # jobs may differ
    assert done.returncode == 0, done.stderr
    assert "6 released" in done.stdout and "of them before" in done.stdout and not partial.exists()
    after = content(out)
    journaled = {name: data for name, data in before.items() if name in after}
    assert len(journaled) >= 2 and all(after[name] == data for name, data in journaled.items())
    assert len([name for name in after if name.endswith(".wav")]) == 6 == len(rows_of(out))


def test_an_interrupted_run_says_how_to_go_on(tmp_path):
    process = cli(folder(tmp_path / "in", 6), tmp_path / "out", delay=1, start=True)
    wait_for_rows(process, tmp_path / "out.partial" / "journal.jsonl", 1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    assert "To go on:" in said and f"dpanon anonymize --system plain {tmp_path}/in {tmp_path}/out" in said


def test_two_runs_do_not_share_an_output(tmp_path):
    source = folder(tmp_path / "in", 3)
    with pytest.raises(KeyboardInterrupt):
        release(source, tmp_path / "out", on_done=stop_after(1))
    with (tmp_path / "out.partial" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run is at work"):
            release(source, tmp_path / "out")
    assert release(source, tmp_path / "out").kept == 1


@pytest.mark.parametrize("kind", ["file", "folder", "data"])
@pytest.mark.parametrize("step", ["os.rename", "os.replace", "shutil.rmtree", "os.utime"])
def test_a_kill_while_finishing_loses_nothing(tmp_path, monkeypatch, kind, step):
    """The calls of the end fail one after the other; the same command always gets there, with the same bytes."""
    source = data_dir(tmp_path / "data").path if kind == "data" else folder(tmp_path / "in", 1 if kind == "file" else 3)
    source = next(source.iterdir()) if kind == "file" else source
    out = tmp_path / ("out.wav" if kind == "file" else "out")
    sounds: dict = {}
    module, name = {"os": os, "shutil": batch.shutil}[step.split(".")[0]], step.split(".")[1]
    real, left = getattr(module, name), [0]

    class Kill(BaseException):
        pass

    def dying(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            raise Kill
        return real(*args, **kwargs)

    for survive in range(40):
        left[0] = survive
        monkeypatch.setattr(module, name, dying)
        try:
            result = release(source, out)
        except Kill:
            result = None
        monkeypatch.setattr(module, name, real)
        journal = tmp_path / f"{out.name}.partial" / "journal.jsonl"
        if journal.exists():
            entries = [json.loads(line) for line in journal.read_text().splitlines()]
            for entry in entries:  # what is finished once has the same noise for ever
                assert sounds.setdefault(entry["key"], entry["row"]["utt"]) == entry["row"]["utt"]
        if result:
            break
    assert result.released == {"file": 1, "folder": 3, "data": 4}[kind]
    assert out.exists() and not (tmp_path / f"{out.name}.partial").exists()
    if kind != "file":
        assert {row["utt"] for row in rows_of(out)} == {path.stem for path in (out / "wav").iterdir()}


def test_a_recording_that_changed_is_done_again_and_one_that_went_is_dropped(tmp_path):
    source, out = folder(tmp_path / "in", 3), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        release(source, out, on_done=stop_after(2))
    entries = [json.loads(line) for line in (tmp_path / "out.partial" / "journal.jsonl").read_text().splitlines()]
    soundfile.write(source / entries[0]["key"], speech(1.0), 16000)
    (source / entries[1]["key"]).unlink()
    result = release(source, out)
    assert (result.released, result.kept) == (2, 0)
    assert sorted(row["num_frames"] for row in rows_of(out)) == [50, 100]


def stop_after(num):
    left = [num]

    def on_done(path):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    return on_done


# places


def test_an_output_that_exists_is_not_touched(tmp_path):
    source = folder(tmp_path / "in", 1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        release(source, tmp_path / "out")
    assert content(tmp_path / "out") == {"mine": b"mine"}
    (tmp_path / "other.partial").mkdir()
    (tmp_path / "other.partial" / "mine").write_text("mine")
    with pytest.raises(UsageError, match="is no unfinished run"):
        release(source, tmp_path / "other")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="exists"):
        release(source, tmp_path / "gone")


def test_a_data_directory_released_with_other_options_is_stale(tmp_path):
    source = data_dir(tmp_path / "data").path
    release(source, tmp_path / "out")
    before = content(tmp_path / "out")
    assert release(source, tmp_path / "out").kept == 4
    with pytest.raises(StaleError, match="epsilon_bn"):
        release(source, tmp_path / "out", Options(epsilon_f0=10.0, epsilon_bn=1.0))
    with pytest.raises(StaleError, match="other utterances"):
        release(data_dir(tmp_path / "more", 6).path, tmp_path / "out")
    assert content(tmp_path / "out") == before
