"""The challenge's data: the three layouts, what is refused, and trial lists rebuilt by the documented counts."""

import json
import shutil

import pytest

from dpanon.data.data_dir import DataDir
from dpanon.errors import DataDirError, UsageError
from dpanon.submission.layouts import LAYOUTS, check_suffix, layout


@pytest.mark.parametrize("challenge", LAYOUTS)
def test_each_layout_is_read(challenge, make_tree, prepare, tmp_path):
    out = prepare(challenge, make_tree(challenge), tmp_path / "data")
    chosen = layout(challenge)
    assert {path.name for path in out.iterdir()} - {"audio"} == {item.name for item in chosen.sets}
    for item in chosen.sets:
        data = DataDir.read(out / item.name)
        data.check_audio(decode=True)
        assert data.has("enrolls") == (item.role == "enrolls") and data.has("trials") == (item.role == "trials")
        assert data.has("utt2emo") == data.has("spk2fold") == (item.role == "emotion")
    for enrol, trial in chosen.tests():
        speakers = set(DataDir.read(out / enrol.name).speakers)
        trials = DataDir.read(out / trial.name).trials()
        assert {spk for spk, *_ in trials} <= speakers and {same for *_, same in trials} == {True, False}


def test_2022_does_without_vctk(make_tree, prepare, tmp_path, capsys):
    tree = make_tree("2022")
    for folder in tree.glob("vctk_*"):
        shutil.rmtree(folder)
    out = prepare("2022", tree, tmp_path / "data")
    assert not list(out.glob("vctk_*")) and "vctk_dev_trials_f_common: not there" in capsys.readouterr().out


def test_2026_mixes_the_sexes(make_tree, prepare, tmp_path):
    data = DataDir.read(prepare("2026", make_tree("2026"), tmp_path / "data") / "libri_dev_trials_mixed")
    enrolled = {spk: "fm"[int(spk) % 2] for spk, *_ in data.trials()}
    across = [row for row in data.trials() if enrolled[row[0]] != data.sex(data.speaker(row[1]))]
    assert across and not any(same for *_, same in across)


def test_names_of_the_organisers_are_kept(make_tree, prepare, tmp_path):
    out = prepare("2024", make_tree("2024"), tmp_path / "data")
    data = DataDir.read(out / "IEMOCAP_dev")
    names = data.table("utt2name")
    assert names["Ses01M-Ses01F_iemocap_dev_M002"] == "Ses01F_iemocap_dev_M002"
    assert not DataDir.read(out / "libri_dev_enrolls").has("utt2name")


def test_a_second_call_changes_nothing_and_resolved_pipes_stay(make_tree, prepare, tmp_path):
    tree = make_tree("2026")
    prepare("2026", tree, tmp_path / "data")
    before = {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "data").rglob("*")) if path.is_file()}
    prepare("2026", tree, tmp_path / "data")
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_commands_are_not_run_unasked(make_tree, prepare, tmp_path):
    with pytest.raises(DataDirError, match="is a command, which would run as you"):
        prepare("2026", make_tree("2026"), tmp_path / "data", "--partial", "true")
    assert not (tmp_path / "data" / "train-clean-360").exists()


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("libri_dev_enrolls/enrolls", None, "has no enrolls"),
        ("libri_test_trials_f/trials", "100 nobody-1 target\n", "expected '<speaker> <utterance>"),
        ("libri_test_trials_f/utt2spk", "x y\n", "in one of wav.scp and utt2spk only"),
        ("libri_dev_trials_m/wav.scp", "{utt} nowhere.flac\n", "no such file: nowhere.flac"),
    ],
)
def test_what_is_wrong_is_named(make_tree, prepare, tmp_path, file, change, message):
    tree = make_tree("2024")
    path = tree / file
    if change is None:
        path.unlink()
    else:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text(change.format(utt=lines[0].split()[0]) + "".join(lines[1:]))
    with pytest.raises(DataDirError, match=message):
        prepare("2024", tree, tmp_path / "data")


def test_a_label_that_contradicts_the_speakers_is_refused(make_tree, prepare, tmp_path):
    tree = make_tree("2024")
    path = tree / "libri_dev_trials_f" / "trials"
    path.write_text(path.read_text().replace("nontarget", "target", 1))
    with pytest.raises(DataDirError, match="is of speaker"):
        prepare("2024", tree, tmp_path / "data")


def test_less_than_all_is_taken_on_request_only(make_tree, prepare, tmp_path):
    with pytest.raises(DataDirError, match=r"has \d+ of \d+ utterances; take what is there with --partial true"):
        prepare("2026", make_tree("2026"), tmp_path / "data", "--allow-pipes", "true")
    with pytest.raises(DataDirError, match="no such folder"):
        prepare("2026", tmp_path / "none", tmp_path / "data")


def test_the_mixed_set_can_be_made_of_its_halves(make_tree, prepare, tmp_path):
    out = prepare("2026", make_tree("2024"), tmp_path / "data")
    assert "rebuilt" in json.loads((out / "libri_dev_trials_mixed" / "rebuilt.json").read_text())["lists"]
    halves = prepare("2024", tmp_path / "tree 2024" / "data", tmp_path / "halves")
    both = [DataDir.read(halves / f"libri_dev_trials_{sex}") for sex in "fm"]
    mixed = DataDir.read(out / "libri_dev_trials_mixed")
    assert set(mixed.utts) == set(both[0].utts) | set(both[1].utts)
    assert set(both[0].trials()) | set(both[1].trials()) < set(mixed.trials())


# rebuilt lists


@pytest.mark.parametrize("split", ["dev", "test"])
def test_documented_counts_of_trials(scripts, split):
    rule = scripts["make_trials"]
    readers = {f"{k}": [f"{k}-{j:04d}" for j in range(50 + k % 7 * 6)] for k in range(100, 140)}
    found = rule.rebuild(split, readers, {name: "fm"[int(name) % 2] for name in readers})
    assert len(found["enrolls"]) == len(set(found["enrolls"])) == {"dev": 343, "test": 438}[split]
    documented = {"dev": {"f": (1018, 704, 14566), "m": (960, 644, 12796)}, "test": {"f": (734, 548, 11196)}}
    documented["test"]["m"] = (762, 449, 9457)
    for sex, (utterances, targets, nontargets) in documented[split].items():
        utts, trials = found[sex]
        assert len(utts) == len(set(utts)) == utterances and not set(utts) & set(found["enrolls"])
        assert (sum(same for *_, same in trials), sum(not same for *_, same in trials)) == (targets, nontargets)
    mixed = rule.sets_of(found, split, "2026")[f"libri_{split}_trials_mixed"]["trials"]
    per_utterance = {"dev": 1018 * 14 + 960 * 13, "test": 734 * min(15, 13) + 762 * 12}[split]
    assert len(mixed) == sum(len(found[sex][1]) for sex in "fm") + per_utterance


def test_deal_is_even_and_complete(scripts):
    deal = scripts["make_trials"].deal
    assert deal(10, {"a": 9, "b": 2, "c": 9}) == {"a": 4, "b": 2, "c": 4}
    assert deal(4, {"a": 9, "b": 2, "c": 9}, 1) == {"a": 2, "b": 1, "c": 1}
    with pytest.raises(DataDirError, match="is the part complete"):
        deal(21, {"a": 9, "b": 2, "c": 9})


def test_an_incomplete_corpus_shrinks_and_says_so(scripts, librispeech, tmp_path, capsys):
    main = scripts["make_trials"].main
    options = ["--dev-part", "test-other", "--test-part", "test-other", "--train-part", "train-clean-100"]
    with pytest.raises(DataDirError, match="test-other has 48 of 2939 utterances"):
        main([*options, str(librispeech), str(tmp_path / "data")])
    main([*options, "--partial", "true", str(librispeech), str(tmp_path / "data")])
    assert "rebuilt" in capsys.readouterr().out
    for split in ("dev", "test"):
        note = json.loads((tmp_path / "data" / f"libri_{split}_enrolls" / "rebuilt.json").read_text())
        assert note["share"] == pytest.approx(48 / 2939 / 2, abs=1e-4)
        enrol = DataDir.read(tmp_path / "data" / f"libri_{split}_enrolls")
        trial = DataDir.read(tmp_path / "data" / f"libri_{split}_trials_mixed")
        assert len(enrol.speakers) >= 4 and not set(enrol.utts) & set(trial.utts)


def test_a_suffix_may_not_make_one_set_of_two():
    assert check_suffix("_dp_eps1.5") == "_dp_eps1.5"
    for bad in ("mine", "_", "_a/b", "_f", "_common", "_a b"):
        with pytest.raises(UsageError, match="--suffix"):
            check_suffix(bad)


def test_sets_that_others_anonymized_are_read_by_their_suffix(make_tree, prepare, tmp_path):
    tree = make_tree("2024")
    for folder in list(tree.iterdir()):
        folder.rename(folder.with_name(f"{folder.name}_theirs"))
    options = ("--partial", "true", "--allow-pipes", "true")
    with pytest.raises(DataDirError, match="has no libri_dev_enrolls, which"):
        prepare("2024", tree, tmp_path / "data")
    out = prepare("2024", tree, tmp_path / "data", "--suffix", "_theirs", *options)
    made = {path.name for path in out.iterdir()} - {"audio"}
    assert made == {f"{item.name}_theirs" for item in layout("2024").sets}
