"""`dpanon anonymize`: every bad input is anonymized or refused by name, the rest is finished, the exit code says so."""

import inspect
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import soundfile

sys.path.insert(0, str(Path(__file__).parent / "anonymize"))
import fake_system

from dpanon.cli import anonymize, run


@pytest.fixture(autouse=True)
def system(monkeypatch):
    stub = types.ModuleType("dpanon.anonymize.pretrained")
    stub.load_system = fake_system.load_system
    monkeypatch.setitem(sys.modules, "dpanon.anonymize.pretrained", stub)


def call(*arguments):
    """Exit code."""
    with pytest.raises(SystemExit) as stop:
        run(anonymize.main, list(map(str, arguments)))
    return stop.value.code


def speech(rate=16000, seconds=0.5, channels=1, seed=0):
    wave = np.random.default_rng(seed).uniform(-0.3, 0.3, (int(rate * seconds), channels)).astype(np.float32)
    return wave[:, 0] if channels == 1 else wave


def write_good(folder):
    """name -> seconds of what must be anonymized."""
    made = {}

    def write(name, samples=None, rate=16000, seconds=0.5, **more):
        samples = speech(rate, seconds, seed=len(made)) if samples is None else samples
        soundfile.write(folder / name, samples, rate, **more)
        made[name] = len(samples) / rate

    for rate in (8000, 22050, 44100, 48000):
        write(f"rate {rate}.wav", rate=rate)
    for channels in (2, 6):
        write(f"{channels} channels.wav", speech(channels=channels, seed=channels))
    for subtype in ("PCM_24", "PCM_32", "FLOAT", "DOUBLE", "PCM_U8", "ULAW", "ALAW"):
        write(f"{subtype}.wav", subtype=subtype)
    write("lossless.flac")
    write("vorbis.OGG", format="OGG", subtype="VORBIS")
    write("opus.opus", rate=48000, format="OGG", subtype="OPUS")
    write("mpeg.mp3", rate=16000)
    write("silence.wav", np.zeros(8000))
    write("dc.wav", np.full(8000, 0.4))
    write("clipped.wav", np.sign(speech()))
    write("unvoiced.wav", np.diff(speech(), prepend=0) / 2)
    write("Jürgen Müller – 1.wav")
    (folder / "sub folder").mkdir()
    write("sub folder/x.wav")
    cut = (folder / "rate 8000.wav").read_bytes()
    (folder / "truncated.wav").write_bytes(cut[: len(cut) // 2])
    made["truncated.wav"] = (len(cut) // 2 - 44) / 16000
    (folder / "piped.wav").write_bytes(cut[:4] + b"\xff\xff\xff\xff" + cut[8:40] + b"\xff\xff\xff\xff" + cut[44:])
    made["piped.wav"] = 0.5
    with soundfile.SoundFile(folder / "tagged.wav", "w", 16000, 1) as file:
        file.title, file.artist = "Interview", "Erika Mustermann"
        file.write(speech(seed=99))
    made["tagged.wav"] = 0.5
    return made


def write_bad(folder):
    """name -> part of the reason for which it must be refused."""
    soundfile.write(folder / "one sample.wav", np.zeros(1), 16000)
    soundfile.write(folder / "20 ms.wav", np.zeros(320), 16000)
    soundfile.write(folder / "no sample.wav", np.zeros(0), 16000)
    broken = speech()
    broken[4000] = np.nan
    soundfile.write(folder / "nan.wav", broken, 16000, subtype="FLOAT")
    broken[4000] = -np.inf
    soundfile.write(folder / "inf.wav", broken, 16000, subtype="FLOAT")
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("to be, or not to be\n" * 9)
    (folder / "text.mp3").write_text("to be, or not to be\n" * 9)
    (folder / "phone.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(99))
    (folder / "gone.wav").symlink_to("nowhere.wav")
    os.mkfifo(folder / "pipe.wav")
    soundfile.write(folder / "zero.wav", speech(), 16000)
    raw = (folder / "zero.wav").read_bytes()
    (folder / "zero.wav").write_bytes(raw[:40] + bytes(4) + raw[44:])
    return {
        "one sample.wav": "at least 0.1 s",
        "20 ms.wav": "at least 0.1 s",
        "no sample.wav": "no samples",
        "nan.wav": "NaN or infinite",
        "inf.wav": "NaN or infinite",
        "empty.wav": "empty",
        "text.wav": "not a readable audio file",
        "text.mp3": "no",
        "phone.m4a": "not a readable audio file",
        "gone.wav": "No such file",
        "pipe.wav": "not a regular file",
        "zero.wav": "wrong header",
    }


def test_bad_input_is_anonymized_or_refused_in_one_line_each(tmp_path, capsys):
    source, out = tmp_path / "ein gang ü", tmp_path / "aus gang ü"
    source.mkdir()
    good, bad = write_good(source), write_bad(source)
    (source / "notes.txt").write_text("not audio, so passed over")
    assert call("--keep-names", "true", source, out) == 1
    said = capsys.readouterr()
    refused = [line for line in said.err.splitlines() if line.startswith("refused: ")]
    assert len(refused) == len(bad)
    for name, reason in bad.items():
        (line,) = [line for line in refused if line.startswith(f"refused: {source}/{name}: ")]
        assert reason in line.removeprefix(f"refused: {source}/{name}: ") and line.count(str(source)) == 1
    assert f"{len(good)} released, {len(bad)} refused" in said.out
    assert "1 other files are passed over (e.g. notes.txt)" in said.err
    rows = {row["utt"]: row for row in map(json.loads, (out / "privacy.jsonl").read_text().splitlines())}
    assert set(rows) == {name.rpartition(".")[0] for name in good}
    for name, seconds in good.items():
        utt = name.rpartition(".")[0]
        samples, rate = soundfile.read(out / "wav" / f"{utt}.wav")
        assert rate == 16000 and samples.shape == (160 * rows[utt]["num_frames"],)
        assert abs(len(samples) / 16000 - seconds) < (0.1 if utt == "mpeg" else 0.02), name
        assert b"Erika" not in (out / "wav" / f"{utt}.wav").read_bytes()


def test_exit_codes(tmp_path, capsys):
    source = tmp_path / "in"
    source.mkdir()
    soundfile.write(source / "a.wav", speech(), 16000)
    assert call(source, tmp_path / "ok") == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/ok: 1 released, 0 refused\n  epsilon of a frame 10, ")
    (source / "b.wav").write_bytes(b"")
    assert call(source, tmp_path / "some") == 1
    assert call("--allow-refused", "true", source, tmp_path / "rest") == 0
    (source / "a.wav").unlink()
    assert call("--allow-refused", "true", source, tmp_path / "none") == 1
    assert not (tmp_path / "none").exists()


MISUSE = {
    "IN is missing": (["{0}/none", "{0}/out"], "no such file"),
    "OUT exists": (["{0}/in", "{0}/there"], "exists"),
    "OUT is IN": (["{0}/in", "{0}/in"], "the same"),
    "OUT is IN by another name": (["{0}/in", "{0}/link"], "the same"),
    "OUT is in IN": (["{0}/in", "{0}/in/out"], "is inside of"),
    "OUT is in IN by another name": (["{0}/in", "{0}/link/out"], "is inside of"),
    "OUT would hold IN": (["{0}/in/sub/b.wav", "{0}/in"], "lies where the output would go"),
    "file to itself": (["{0}/in/a.wav", "{0}/in/a.wav"], "the same"),
    "file to a link to itself": (["{0}/in/a.wav", "{0}/a link.wav"], "the same"),
    "file to another format": (["{0}/in/a.wav", "{0}/out.mp3"], "only WAV is written; name it out.wav"),
    "nothing in it": (["{0}/there", "{0}/out"], "no audio file in it"),
    "unknown target": (["--target", "x", "{0}/in", "{0}/out"], "unknown target 'x'"),
    "untrained epsilon": (["--epsilon-bn", "3", "{0}/in", "{0}/out"], "choose one of 100, 10, 1"),
    "infinite epsilon": (["--epsilon-f0", "inf", "{0}/in", "{0}/out"], "epsilon must be finite and > 0"),
    "zero epsilon": (["--epsilon-f0", "0", "{0}/in", "{0}/out"], "epsilon must be finite and > 0"),
    "epsilon without noise": (["--system", "plain", "--epsilon-bn", "1", "{0}/in", "{0}/out"], "has no such noise"),
    "a voice without noise": (["--system", "voxlet", "{0}/in", "{0}/out"], "--mu or --noise-level"),
    "a target of a released voice": (
        ["--system", "voxlet", "--mu", "1", "--target", "x", "{0}/in", "{0}/out"],
        "takes no --target",
    ),
    "two noises for one thing": (
        ["--system", "voxlet", "--mu", "1", "--epsilon-bn", "1", "--epsilon-token", "1", "{0}/in", "{0}/out"],
        "two noises for the same",
    ),
    "mu of another system": (["--mu", "1", "{0}/in", "{0}/out"], "of the system voxlet, not of dp"),
    "no jobs": (["--jobs", "0", "{0}/in", "{0}/out"], "whole number > 0"),
    "mistyped option": (["--epsilon-bm", "1", "{0}/in", "{0}/out"], "did you mean '--epsilon-bn'"),
    "no models": (["--models", "{0}/none", "{0}/in", "{0}/out"], "no such directory"),
    "a device": (["/dev/null", "{0}/out"], "neither a file nor a directory"),
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_one_line_and_leaves_nothing(tmp_path, capsys, case):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    for name in ("in/a.wav", "in/sub/b.wav"):
        soundfile.write(tmp_path / name, speech(), 16000)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    (tmp_path / "a link.wav").symlink_to(tmp_path / "in" / "a.wav")
    before = sorted(tmp_path.rglob("*"))
    arguments, message = MISUSE[case]
    assert call(*(text.format(tmp_path) for text in arguments)) == 2
    said = capsys.readouterr().err.strip()
    assert message in said and said.startswith("error: ") and "\n" not in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_source_under_the_output_is_found_through_links(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "out.partial").mkdir()
    soundfile.write(tmp_path / "out.partial" / "a.wav", speech(), 16000)
    (tmp_path / "in" / "a.wav").symlink_to(tmp_path / "out.partial" / "a.wav")
    assert call(tmp_path / "in", tmp_path / "out") == 2
    assert "lies where the output would go" in capsys.readouterr().err


def test_a_broken_data_directory_is_no_folder(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "wav.scp").write_text("a a.wav\n")
    assert call(tmp_path / "data", tmp_path / "out") == 1
    assert "has no utt2spk" in capsys.readouterr().err


def test_strange_names_stay_on_their_line(tmp_path, capsys):
    source = tmp_path / "in"
    source.mkdir()
    soundfile.write(source / "good.wav", speech(), 16000)
    Path(os.fsdecode(os.fsencode(source) + b"/two\nlines.wav")).write_bytes(b"")
    Path(os.fsdecode(os.fsencode(source) + b"/latin\xe4.wav")).write_bytes(b"")
    assert call("--keep-names", "true", source, tmp_path / "out") == 1
    refused = [f"refused: {source}/{name}: the file is empty" for name in ("latin\\udce4.wav", "two\\nlines.wav")]
    assert capsys.readouterr().err.splitlines() == refused


def test_a_file_to_a_folder_gets_a_random_name(tmp_path):
    soundfile.write(tmp_path / "Erika Mustermann.flac", speech(), 16000)
    assert call(tmp_path / "Erika Mustermann.flac", tmp_path / "out") == 0
    (made,) = (tmp_path / "out" / "wav").iterdir()
    assert made.name.startswith("a-")


def test_a_full_disk_stops_and_can_go_on(tmp_path, capsys, monkeypatch):
    from dpanon.anonymize import workers
    from dpanon.errors import AudioError

    soundfile.write(tmp_path / "a.wav", speech(), 16000)

    def full(path, samples):
        raise AudioError(f"{path}: cannot be written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(workers, "write_wav", full)
        assert call(tmp_path / "a.wav", tmp_path / "out") == 1
    assert "No space left" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert call(tmp_path / "a.wav", tmp_path / "out") == 0


def test_the_target_is_drawn_without_the_input():
    from dpanon.anonymize.workers import choose_target
    from dpanon.synth.targets import TargetPool

    assert list(inspect.signature(TargetPool.choose).parameters) == ["self", "target"]
    assert list(inspect.signature(choose_target).parameters) == ["pool", "options", "utt"]


def test_help_is_quick(tmp_path):
    root = Path(__file__).resolve().parents[2]
    code = "import sys; from dpanon.cli import anonymize; assert 'torch' not in sys.modules, 'slow'"
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
