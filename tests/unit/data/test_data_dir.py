"""What a data directory is, and that every mistake in one is named with its file and line."""

import os

import pytest

from dpanon.data import data_dir
from dpanon.data.audio import read_audio
from dpanon.data.data_dir import DataDir, read_table, write_data_dir
from dpanon.errors import DataDirError


def edit(data, name, change):
    """Apply ``change`` to the lines of one table."""
    path = data.path / name
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.write_text("".join(f"{line}\n" for line in change(lines)), encoding="utf-8")


def refused(data, *words, **options):
    with pytest.raises(DataDirError) as caught:
        DataDir.read(data.path, **options)
    for word in (str(data.path), *words):
        assert word in str(caught.value)


def test_what_is_written_is_read(data, tables):
    assert data.utts == tuple(sorted(tables["utt2spk"]))
    assert data.speakers == ("f1", "f2", "f3", "m1", "m10", "m2")
    assert data.utterances("m10") == ("m10-0", "m10-1", "m10-2", "m10-3")
    assert data.speaker("m10-1") == "m10" and data.sex("m10") == "m"
    assert data.text("f1-2") == "sentence 2 of f1"
    assert len(data) == len(data.utts) == 24
    for utt in data.utts:
        assert len(read_audio(data.wav(utt))) == data.num_samples(utt) == tables["utt2num_samples"][utt]
    data.check_audio(decode=True)
    assert data.tables() == {n: {k: str(v) for k, v in t.items()} for n, t in tables.items()} | {
        "spk2utt": data.table("spk2utt")
    }


def test_tables_are_sorted_as_bytes_and_end_in_a_line_feed(data):
    for name in os.listdir(data.path):
        content = (data.path / name).read_bytes()
        assert content.endswith(b"\n") and content.splitlines() == sorted(content.splitlines())


def test_a_relative_path_moves_with_the_directory(folder, data, tables):
    (folder / "moved" / "wav").mkdir(parents=True)
    for utt, wav in tables["wav.scp"].items():
        os.link(wav, folder / "moved" / "wav" / f"{utt}.wav")
    tables["wav.scp"] = {utt: f"wav/{utt}.wav" for utt in tables["wav.scp"]}
    write_data_dir(folder / "moved", tables, allow_existing=True)
    (folder / "moved").rename(folder / "elsewhere")
    there = DataDir.read(folder / "elsewhere")
    there.check_audio(decode=True)
    assert there.wav("f1-0") == folder / "elsewhere" / "wav" / "f1-0.wav"


def test_optional_tables_may_be_absent(folder, tables):
    del tables["text"], tables["spk2gender"]
    data = write_data_dir(folder / "bare", tables)
    assert data.sex("f1") is None and not data.has("text") and not data.has("trials") and data.enrolls == ()
    for ask in (lambda: data.text("f1-0"), data.trials, lambda: data.table("f0.scp"), lambda: data.wav("nobody")):
        with pytest.raises(DataDirError, match="bare: (has )?no "):
            ask()


def test_unknown_sex_and_empty_text_are_allowed(folder, tables):
    tables["spk2gender"]["f1"], tables["text"]["f1-0"] = "u", ""
    data = write_data_dir(folder / "new", tables)
    assert data.sex("f1") is None and data.text("f1-0") == ""


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("utt2spk", lambda lines: [lines[1], lines[0], *lines[2:]], ["utt2spk:2: 'f1-0' after 'f1-1': not sorted"]),
        ("utt2spk", lambda lines: [lines[0], *lines], ["utt2spk:2: 'f1-0' after 'f1-0'", "not unique"]),
        ("wav.scp", lambda lines: lines[:-6], ["wav.scp:", "6 of 24 have no row", "'m10-2'"]),
        ("text", lambda lines: [*lines, "z-1 extra"], ["text:", "1 are not in utt2spk (e.g. ['z-1'])"]),
        ("utt2spk", lambda lines: ["f1-0 f2", *lines[1:]], ["utt2spk:1", "'f2' is not the prefix of 'f1-0'"]),
        ("utt2spk", lambda lines: ["f1-0 f", *lines[1:]], ["utt2spk:1", "'f' is not the prefix of 'f1-0'"]),
        ("utt2spk", lambda lines: ["f1-0", *lines[1:]], ["utt2spk:1: found 'f1-0': nothing after the id"]),
        ("spk2utt", lambda lines: ["f1 f1-0 f1-1", *lines[1:]], ["spk2utt:1: 'f1': utt2spk has", "f1-2"]),
        ("spk2utt", lambda lines: lines[:-1], ["spk2utt:", "1 of 6 have no row", "'m2'"]),
        ("spk2gender", lambda lines: ["f1 female", *lines[1:]], ["spk2gender:1", "expected f, m or u, found 'female'"]),
        ("spk2gender", lambda lines: lines[1:], ["spk2gender:", "have no row (e.g. ['f1'])"]),
        ("utt2num_samples", lambda lines: ["f1-0 1.5", *lines[1:]], ["utt2num_samples:1", "found '1.5'"]),
        ("utt2num_samples", lambda lines: ["f1-0 0", *lines[1:]], ["utt2num_samples:1", "found '0'"]),
        ("utt2num_samples", lambda lines: ["f1-0 -5", *lines[1:]], ["utt2num_samples:1", "found '-5'"]),
        ("wav.scp", lambda lines: ["f1-0 rm -rf x |", *lines[1:]], ["wav.scp:1", "'rm -rf x |'", "--allow-pipes true"]),
        ("text", lambda lines: ["", *lines], ["text:1: found '' as an id"]),
        ("text", lambda lines: ["../etc x", *lines], ["text:1: found '../etc' as an id"]),
        ("text", lambda lines: ["f1\u00a00 x", *lines], ["text:1", "as an id"]),
    ],
)
def test_a_mistake_is_named_with_its_line(data, name, change, words):
    edit(data, name, change)
    refused(data, *words)


@pytest.mark.parametrize("name", ["wav.scp", "utt2spk", "spk2utt", "utt2num_samples"])
def test_a_required_table_is_missed(data, name):
    (data.path / name).unlink()
    refused(data, f"has no {name}")
    (data.path / name).touch()
    refused(data, f"{name}: is empty")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"f1-0 a\nf1-1 b", ["text:2: no end of line: the file was cut short"]),
        (b"f1-0 a\r\n", ["text:1: found a carriage return"]),
        (b"f1-0 a\nf1-1 \xff\n", ["text:2: not UTF-8: found byte 0xff"]),
    ],
)
def test_a_damaged_table_is_refused(data, content, words):
    (data.path / "text").write_bytes(content)
    refused(data, *words)


def test_no_directory(tmp_path):
    with pytest.raises(DataDirError, match="nowhere: no such data directory"):
        DataDir.read(tmp_path / "nowhere")


def test_a_line_is_split_once_at_the_first_blank(tmp_path):
    (tmp_path / "wav.scp").write_text("a-1 /x y/ü z.wav\na-2\t/tab\tbed\u2028.wav\n", encoding="utf-8")
    assert read_table(tmp_path / "wav.scp") == {"a-1": "/x y/ü z.wav", "a-2": "/tab\tbed\u2028.wav"}


def test_a_pipe_is_a_row_only_where_it_is_allowed(data):
    edit(data, "wav.scp", lambda lines: ["f1-0 cat x.wav |", *lines[1:]])
    refused(data, "which would run as you")
    allowed = DataDir.read(data.path, allow_pipes=True)
    with pytest.raises(DataDirError, match="'f1-0' is a command, not a file"):
        allowed.wav("f1-0")


def test_a_missing_file_and_a_wrong_length_are_found(data):
    data.wav("f2-1").unlink()
    with pytest.raises(DataDirError, match=r"wav.scp:6: 'f2-1': no such file"):
        data.check_audio()
    edit(data, "utt2num_samples", lambda lines: ["f1-0 1599", *lines[1:]])
    with pytest.raises(DataDirError, match=r"utt2num_samples:1: 'f1-0': expected the 1600 samples .* found 1599"):
        DataDir.read(data.path).check_audio(decode=True)


def test_trials_and_enrolls(folder, tables):
    trials = [("m1", "f1-1", False), ("f1", "f1-1", True)]
    data = write_data_dir(folder / "test", tables, trials, enrolls=["f2-0", "f1-0"])
    assert data.trials() == sorted(trials) and data.enrolls == ("f1-0", "f2-0") and data.has("enrolls")
    for lines, words in (
        (["f1 f1-1 nontarget"], "trials:1: found 'nontarget', but 'f1-1' is of speaker 'f1'"),
        (["f1 f2-1 target"], "trials:1: found 'target', but 'f2-1' is of speaker 'f2'"),
        (["f1 f1-9 target"], "trials:1: 'f1-9' is not in utt2spk"),
        (["f1 f1-1 target", "f1 f1-1 target"], "trials:2: 'f1' and 'f1-1' are paired twice"),
        (["f1 f1-1"], "trials:1: expected '<speaker> <utterance> target|nontarget', found 'f1 f1-1'"),
    ):
        edit(data, "trials", lambda _, lines=lines: lines)
        refused(data, words)
    edit(data, "trials", lambda _: ["f1 f1-1 target"])
    edit(data, "enrolls", lambda _: ["f2-0", "f1-0"])
    refused(data, "enrolls:2: 'f1-0' after 'f2-0'")
    edit(data, "enrolls", lambda _: ["nobody"])
    refused(data, "enrolls:1: 'nobody' is not in utt2spk")


def test_an_existing_directory_is_not_overwritten(data, tables):
    before = {name: (data.path / name).stat().st_mtime_ns for name in os.listdir(data.path)}
    assert write_data_dir(data.path, tables).utts == data.utts  # the same again: it stays
    assert {name: (data.path / name).stat().st_mtime_ns for name in os.listdir(data.path)} == before
    tables["text"]["f1-0"] += " more"
    with pytest.raises(DataDirError, match="exists, with other content; remove it to prepare it again"):
        write_data_dir(data.path, tables)
    with pytest.raises(DataDirError, match="exists, with other content"):
        write_data_dir(data.path.parent, tables)


def test_nothing_gets_the_name_unless_it_is_valid(folder, tables):
    tables["utt2spk"]["f1-0"] = "m1"
    with pytest.raises(DataDirError, match=f"{folder}/bad/utt2spk:1: speaker 'm1' is not the prefix"):
        write_data_dir(folder / "bad", tables)
    tables["utt2spk"]["f1-0"] = "f1"
    tables["text"]["f1-0"] = "two\nlines"
    with pytest.raises(DataDirError, match="line feed within"):
        write_data_dir(folder / "bad", tables)
    tables["text"]["f1-0"] = "one line"
    tables["wav.scp"]["f1-0"] = folder / "none.wav"
    with pytest.raises(DataDirError, match=f"{folder}/bad/wav.scp:1: 'f1-0': no such file"):
        write_data_dir(folder / "bad", tables)
    assert os.listdir(folder) == ["wav files"]


def test_an_interrupted_write_into_a_directory_does_not_read_as_a_set(data, tables, monkeypatch):
    real, moved = os.replace, []

    def replace(source, target):
        if len(moved) == 3:
            raise KeyboardInterrupt
        moved.append(target)
        real(source, target)

    monkeypatch.setattr(data_dir.os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_data_dir(data.path, tables, allow_existing=True)
    refused(data, "has no wav.scp")


def test_a_stale_table_of_arrays_is_refused_when_it_is_asked_for(data):
    edit(data, "f0.scp", lambda _: [f"{utt} /f0.ark:7" for utt in data.utts[:-1]])
    fresh = DataDir.read(data.path)
    assert fresh.has("f0.scp")
    with pytest.raises(DataDirError, match="1 of 24 have no row"):
        fresh.table("f0.scp")
