"""Split, merge, subset, combine, trials, mend; and that the scripts of utils/ are their thin faces."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from dpanon.data.audio import num_samples
from dpanon.data.cuts import to_cuts
from dpanon.data.data_dir import DataDir, read_table, write_data_dir
from dpanon.data.sets import combine, fix, make_trials, merge, split, subset, write_subset
from dpanon.errors import AudioError, DataDirError, UsageError

ROOT = Path(__file__).resolve().parents[3]


def script(name):
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda *args: module.main([str(arg) for arg in args])


@pytest.mark.parametrize("num_shards", [1, 2, 5, 24])
def test_shards_are_a_partition_in_order(folder, data, num_shards):
    shards = [DataDir.read(path) for path in split(data, num_shards, folder / "nj")]
    assert tuple(utt for shard in shards for utt in shard.utts) == data.utts
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1 and len(sizes) == num_shards
    assert all(shard.wav(utt) == data.wav(utt) for shard in shards for utt in shard.utts)


def test_splitting_again_keeps_what_jobs_have_done(folder, data):
    split(data, 3, folder / "nj")
    (folder / "nj/2/f0.scp").write_text("m1-0 x.ark:1\n")  # not all of the shard: its job was stopped
    split(data, 3, folder / "nj")
    assert (folder / "nj/2/f0.scp").exists()
    with pytest.raises(DataDirError, match="nj/1 was made from other data than"):
        split(data, 2, folder / "nj")
    with pytest.raises(UsageError, match="cannot split 24 utterances into 25"):
        split(data, 25, folder / "new")


@pytest.mark.parametrize("num_shards", [1, 3])
def test_merge_is_the_same_for_any_number_of_shards(folder, data, num_shards):
    shards = split(data, num_shards, folder / "nj")
    for shard in shards:
        rows = DataDir.read(shard).utts
        (shard / "f0.scp").write_text("".join(f"{utt} /a b.ark:{len(utt)}\n" for utt in rows))
        (shard / "p.jsonl").write_text("".join(json.dumps({"utt": utt, "n": 1}) + "\n" for utt in reversed(rows)))
    assert merge(data.path / "f0.scp", data.path / "utt2spk", [s / "f0.scp" for s in shards]) == 24
    assert read_table(data.path / "f0.scp") == {utt: f"/a b.ark:{len(utt)}" for utt in data.utts}
    merge(data.path / "p.jsonl", data.path / "utt2spk", [s / "p.jsonl" for s in shards])
    assert [json.loads(line)["utt"] for line in (data.path / "p.jsonl").read_text().splitlines()] == list(data.utts)


def test_merge_names_the_missing_and_the_log(folder, data):
    shards = split(data, 3, folder / "nj")
    for shard in shards:
        utts = DataDir.read(shard).utts
        kept = utts[:-2] if shard.name == "2" else utts
        (shard / "f0.scp").write_text("".join(f"{utt} x:1\n" for utt in kept))
    with pytest.raises(DataDirError) as caught:
        merge(data.path / "f0.scp", data.path / "utt2spk", [s / "f0.scp" for s in shards])
    assert "f0.scp: 2 of 24 have no row (e.g. ['m1-2', 'm1-3'])" in str(caught.value)
    assert str(caught.value).endswith("see the logs beside " + str(folder / "nj/2/f0.scp"))
    assert not (data.path / "f0.scp").exists()
    with pytest.raises(DataDirError, match="nj/1/f0.scp:1: 'f1-0' is in another shard"):
        merge(data.path / "f0.scp", data.path / "utt2spk", [shards[0] / "f0.scp"] * 2)
    with pytest.raises(DataDirError, match="its job has not finished"):
        merge(data.path / "f0.scp", data.path / "utt2spk", [folder / "nj/9/f0.scp"])


def test_subsets(folder, data):
    assert subset(data, speakers=2, per_speaker=1) == ("f1-0", "f2-0")
    assert subset(data, speakers=["m10"], first=3) == ("m10-0", "m10-1", "m10-2")
    assert subset(data, utts=["m2-3", "f1-1"]) == ("f1-1", "m2-3")
    with pytest.raises(UsageError, match=r"1 of 2 are no speakers .*'x'"):
        subset(data, speakers=["f1", "x"])
    with pytest.raises(UsageError, match="no utterance is left"):
        subset(data, speakers=["f1"], utts=["f2-0"])
    new = write_subset(data, ["m2-3", "f1-1"], folder / "new")
    assert new.utts == ("f1-1", "m2-3") and new.speakers == ("f1", "m2") and new.text("m2-3") == data.text("m2-3")


def test_trials_of_a_subset_shrink(folder, tables):
    trials = [("f1", "f1-1", True), ("f1", "f2-1", False)]
    data = write_data_dir(folder / "t", tables, trials, enrolls=["f1-0", "f2-0"])
    new = write_subset(data, ["f1-0", "f1-1"], folder / "new")
    assert new.trials() == trials[:1] and new.enrolls == ("f1-0",)


def test_combine(folder, data):
    one = write_subset(data, subset(data, utts=["f1-0", "f2-0"]), folder / "one")
    two = write_subset(data, subset(data, utts=["f1-1"]), folder / "two")
    (two.path / "text").unlink()
    both, left_out = combine([one, DataDir.read(two.path)], folder / "both")
    assert both.utts == ("f1-0", "f1-1", "f2-0") and left_out == ["text"] and both.sex("f1") == "f"
    with pytest.raises(DataDirError, match="'f1-0' is in another source"):
        combine([one, data], folder / "again")
    (two.path / "spk2gender").write_text("f1 m\n")
    with pytest.raises(DataDirError, match="spk2gender: 'f1' is in another source"):
        combine([one, DataDir.read(two.path)], folder / "again")


def test_trial_lists_are_complete_and_within_a_sex(folder, data):
    enrolls, women, men = make_trials(data, 1, folder / "e", folder / "t")
    assert enrolls.enrolls == tuple(f"{spk}-0" for spk in data.speakers)
    for part in (women, men):
        assert len(part) == 9 and len(part.trials()) == 27 and sum(same for *_, same in part.trials()) == 9
        assert not set(part.utts) & set(enrolls.utts)
        assert {spk[0] for spk, *_ in part.trials()} == {part.utts[0][0]}
    with pytest.raises(UsageError, match="6 speakers have no more than the 4 utterances"):
        make_trials(data, 4, folder / "e2", folder / "t2")


def test_trials_need_to_know_the_sex(folder, tables):
    del tables["spk2gender"]
    with pytest.raises(DataDirError, match="6 speakers have no f or m"):
        make_trials(write_data_dir(folder / "u", tables), 1, folder / "e", folder / "t")


def test_mending_drops_nothing(folder, data):
    """A directory as others write it: unsorted, ids without the speaker, utt2gender, no lengths, a pipe."""
    kaldi = folder / "kaldi"
    kaldi.mkdir()
    wav = data.wav("f1-0")
    (kaldi / "wav.scp").write_text(f"b {wav}\na cat '{wav}' |\na cat '{wav}' |\n")
    (kaldi / "utt2spk").write_text("b ann\na bob\n")
    (kaldi / "utt2gender").write_text("b female\na M\n")
    (kaldi / "text").write_text("b one\na two words \n")
    (kaldi / "trials").write_text("ann  b\ttarget\nbob b nontarget\n")
    with pytest.raises(DataDirError, match="--allow-pipes true"):
        fix(kaldi)
    mended = fix(kaldi, allow_pipes=True)
    assert mended.utts == ("ann-b", "bob-a") and mended.sex("ann") == "f" and mended.sex("bob") == "m"
    assert mended.wav("bob-a") == kaldi / "wav" / "bob-a.wav" and mended.text("bob-a") == "two words"
    assert mended.num_samples("ann-b") == num_samples(wav)
    assert mended.trials() == [("ann", "ann-b", True), ("bob", "ann-b", False)]
    mended.check_audio(decode=True)
    (kaldi / "text").write_text("ann-b one\nann-b two\nbob-a x\n")
    with pytest.raises(DataDirError, match="text:2: 'ann-b' has two values"):
        fix(kaldi)


def test_cuts_are_exact(data, folder):
    cuts = to_cuts(data)
    assert [cut.id for cut in cuts] == list(data.utts)
    for cut in cuts:
        assert cut.num_samples == data.num_samples(cut.id) == cut.load_audio().shape[1]
        segment = cut.supervisions[0]
        assert (segment.speaker, segment.gender) == (data.speaker(cut.id), data.sex(data.speaker(cut.id)))
        assert segment.text == data.text(cut.id)


def test_cuts_want_16_khz_mono(folder, tables):
    import numpy as np
    import soundfile

    soundfile.write(folder / "stereo.wav", np.zeros((1600, 2)), 16000)
    tables["wav.scp"]["f1-0"] = folder / "stereo.wav"
    with pytest.raises(AudioError, match="found 2 channels at 16000 Hz"):
        to_cuts(write_data_dir(folder / "s", tables))


def test_scripts(folder, data, capsys):
    """Each script of utils/ on a directory with a blank and an umlaut in its name."""
    script("utils/split_data.py")(data.path, 2, folder / "nj")
    for k in "12":
        shutil.copy(folder / "nj" / k / "wav.scp", folder / "nj" / k / "x.scp")
    script("utils/merge_tables.py")(
        data.path / "x.scp", data.path / "utt2spk", *(folder / "nj" / k / "x.scp" for k in "12")
    )
    script("utils/subset_data.py")("--speakers", 1, data.path, folder / "one")
    (folder / "list").write_text("m2 and more\n")
    script("utils/subset_data.py")("--speakers", folder / "list", data.path, folder / "two")
    script("utils/combine_data.py")(folder / "both", folder / "one", folder / "two")
    script("utils/validate_data_dir.py")("--audio", "true", folder / "both", data.path)
    script("utils/data_to_cuts.py")(folder / "both")
    said = capsys.readouterr().out
    assert f"{folder}/both: 8 utterances of 2 speakers" in said
    assert f"{folder}/both: valid; 8 utterances, 2 speakers (1 f, 1 m), 0.00 h" in said
    assert (folder / "both" / "cuts.jsonl.gz").stat().st_size > 0
    with pytest.raises(DataDirError, match="has no wav.scp"):
        script("utils/validate_data_dir.py")(folder)
