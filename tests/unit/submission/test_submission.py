"""pack and check on a made release with made figures: what is written, and every refusal by name."""

import json
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import soundfile

from dpanon.cli import submission as cli
from dpanon.data.audio import read_audio, write_wav
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.evaluate.metrics import write_metrics
from dpanon.submission import SubmissionError
from dpanon.submission.check import audio_problems
from dpanon.submission.estimate import estimate
from dpanon.submission.layouts import LAYOUTS, layout
from dpanon.submission.pack import archive_problems

SUFFIX = "_mine"


def release(source, out, **privacy):
    """The same lengths, other samples, as `dpanon anonymize` writes a set."""
    data = DataDir.read(source)
    (out / "wav").mkdir(parents=True)
    rows = []
    for k, utt in enumerate(data.utts):
        samples = 0.2 * np.sin(np.arange(data.num_samples(utt)) * (0.05 + k / 999))
        write_wav(out / "wav" / f"{utt}.wav", samples.astype(np.float32))
        rows.append({"utt": utt, "epsilon_frame": None, "epsilon_utterance": None, "eer_floor": None})
    tables = {name: data.table(name) for name in ("utt2spk", "text", "spk2gender", "utt2num_samples")}
    tables["wav.scp"] = {utt: f"wav/{utt}.wav" for utt in data.utts}
    trials = data.trials() if data.has("trials") else None
    write_data_dir(out, tables, trials, data.enrolls or None, allow_existing=True)
    (out / "privacy.json").write_text(json.dumps({"system": "plain", "sentence": "No privacy guarantee.", **privacy}))
    (out / "privacy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def figures(root, chosen):
    """metrics.json, scores and transcripts as the scoring steps leave them."""
    rng = np.random.default_rng(0)
    for _, item in chosen.tests():
        trial = DataDir.read(root / "data" / item.name)
        for name, condition, attacker in (
            (item.name, "oo", "campplus+cosine"),
            (item.name + SUFFIX, "oa", "campplus+cosine"),
            (item.name + SUFFIX, "aa", "campplus+cosine"),
            (item.name + SUFFIX, "aa", "ge2e+wccn"),
        ):
            out = root / "exp" / f"asv_{condition}" / name / attacker
            eer = {"oo": 0.05, "oa": 0.45, "aa": 0.2 if attacker == "ge2e+wccn" else 0.3}[condition]
            row = {"condition": condition, "attacker": attacker, "eer": eer, "eer_low": eer, "eer_high": eer}
            write_metrics(out, "asv", "mine", name, row)
            lines = (
                f"{spk} {utt} {rng.normal(2.0 * same):.6f} {'target' if same else 'nontarget'}\n"
                for spk, utt, same in trial.trials()
            )
            (out / "scores").write_text("".join(lines))
        for name in (item.name, item.name + SUFFIX):
            out = root / "exp" / "asr" / name
            row = {"wer": 0.1, "wer_low": 0.1, "wer_high": 0.1, "num_errors": 10, "num_words": 100}
            write_metrics(out, "asr", "mine", name, row)
            (out / "hyp").mkdir()
            (out / "hyp" / "text").write_text("".join(f"{utt} WORD\n" for utt in trial.utts))
        write_metrics(
            root / "exp" / "f0" / item.name, "f0", "mine", item.name + SUFFIX, {"f0_correlation_challenge": 0.7}
        )
        values = {"g_vd": -3.0, "deid": 0.9}
        write_metrics(root / "exp" / "voices" / item.name, "voices", "mine", item.name + SUFFIX, values)
    for item in chosen.of("emotion"):
        for name in (item.name, item.name + SUFFIX):
            row = {"uar": 0.5, "uar_folds": [0.4, 0.6], "recall_ang": 0.5, "recall_sad": 0.5}
            write_metrics(root / "exp" / "ser" / name, "ser", "mine", name, row)


@pytest.fixture(scope="session")
def whole(scripts, librispeech, tmp_path_factory):
    """challenge -> a root in which all is there, made once."""
    made: dict = {}

    def root_of(challenge):
        if challenge not in made:
            folder = tmp_path_factory.mktemp("whole")
            options = ["--challenge", challenge, "--part", "test-other", "--per-speaker", "6"]
            scripts["make_tree"].main([*options, str(librispeech), str(folder / "tree")])
            options = ["--challenge", challenge, "--partial", "true", "--allow-pipes", "true"]
            scripts["prepare"].main([*options, str(folder / "tree" / "data"), str(folder / "root" / "data")])
            root, chosen = folder / "root", layout(challenge)
            for item in chosen.sets:
                release(root / "data" / item.name, root / "data" / f"{item.name}{SUFFIX}")
            figures(root, chosen)
            made[challenge] = root
        return made[challenge]

    return root_of


@pytest.fixture
def submit(whole, tmp_path):
    """challenge -> a copy of that root, and a function that calls `dpanon submission` there."""

    def made(challenge="2026"):
        root = shutil.copytree(whole(challenge), tmp_path / "root")

        def call(action, *options):
            places = ["--root", str(root), "--out", str(tmp_path / "out")]
            cli.main([action, "--challenge", challenge, "--suffix", SUFFIX, "--partial", "true", *places, *options])

        return root, call

    return made


# what is written


@pytest.mark.parametrize("challenge", LAYOUTS)
def test_each_challenge_gets_what_it_expects(challenge, submit, tmp_path, capsys):
    root, call = submit(challenge)
    chosen = layout(challenge)
    call("pack")
    call("check")
    assert "complete" in capsys.readouterr().out
    with tarfile.open(tmp_path / "out" / chosen.archive(SUFFIX)) as tar:
        names = tar.getnames()
        scp = tar.extractfile(f"data/libri_dev_enrolls{SUFFIX}/wav.scp").read().decode().splitlines()
        assert all(member.uid == 0 and member.mtime == 0 and not member.uname for member in tar.getmembers())
    assert chosen.rank_file(SUFFIX) in names and chosen.results_zip(SUFFIX) in names
    for item in chosen.sets:
        folder = f"data/{item.name}{SUFFIX}"
        assert {f"{folder}/{table}" for table in item.tables} <= set(names)
        wavs = [name for name in names if name.startswith(f"{folder}/wav/")]
        assert len(wavs) == len(DataDir.read(root / "data" / item.name))
    assert all(f"{path} " not in line and line.split()[1] in names for line in scp for path in (root,))
    inside = zipfile.ZipFile(root / chosen.results_zip(SUFFIX)).namelist()
    assert chosen.rank_file(SUFFIX) in inside and f"exp/asr/results{SUFFIX}.csv" in inside
    assert f"{chosen.pretrained}/results{SUFFIX}.csv" in inside and f"exp/asv_anon{SUFFIX}/results.csv" in inside
    assert (f"exp/ser/results_folds{SUFFIX}.csv" in inside) == (challenge != "2022")
    assert f"{chosen.summary}/privacy{SUFFIX}.json" in inside and f"{chosen.summary}/floors{SUFFIX}.txt" in inside


def test_rank_file_of_2026(submit):
    root, call = submit("2026")
    call("pack")
    text = (root / "exp/results_summary/track1/result_for_rank_mine").read_text()
    heads = [line for line in text.splitlines() if line.startswith("---- ") and "Time" not in line]
    names = ["SER", "ASV_eval", "ASR", "ASV_eval^anon"]
    assert heads == [f"---- {name} results ----" for name in names]
    blocks = dict(zip(names, text.split(" results ----\n")[1:], strict=True))
    assert blocks["ASV_eval"].split("\n\n")[0].split() == (
        "dataset split gender enrollment trial EER "
        "0 libri dev mixed anon anon 30.000 1 libri test mixed anon anon 30.000".split()
    )
    rows = [line.split() for line in blocks["ASV_eval^anon"].strip().splitlines()[1:]]
    assert [row[3] for row in rows] == ["f", "m", "mixed"] * 2 and rows[2][-1] == "20.000"
    assert blocks["ASR"].split("\n\n")[0].split()[-1] == "10.000"
    assert "50.0000" in blocks["SER"] and "ACC_sad" in blocks["SER"]


def test_rank_file_of_2024_has_the_clear_attack(submit):
    root, call = submit("2024")
    call("pack")
    text = (root / "exp/results_summary/result_for_rank_mine").read_text()
    assert text.count("original  original  5.000") == 4 and text.count("anon   anon  20.000") == 4


def test_rank_file_of_2022_has_every_corpus_and_its_own_figures(submit):
    root, call = submit("2022")
    values = {"g_vd": None, "deid": 0.9}  # -inf is no JSON
    write_metrics(root / "exp/voices/libri_dev_trials_f", "voices", "mine", f"libri_dev_trials_f{SUFFIX}", values)
    call("pack")
    rows = [line.split() for line in (root / "exp/results_summary/results_summary_mine.txt").read_text().splitlines()]
    eers = [row[1:4] for row in rows if row[-3:-1] == ["anon", "anon"]]
    kinds = {"libri": ["f", "m"], "vctk": ["f", "m", "f_common", "m_common"]}
    assert eers == [[corpus, split, kind] for split in ("dev", "test") for corpus in kinds for kind in kinds[corpus]]
    assert [row[1:3] for row in rows if row[3:] == ["anon", "10.000"]] == [
        [corpus, split] for split in ("dev", "test") for corpus in kinds
    ]
    own = {tuple(row[1:4]): row[4:] for row in rows if row[-1:] == ["0.900"]}
    assert own["libri", "dev", "f"] == ["0.700", "undefined", "0.900"] and len(own) == len(eers)
    assert own["vctk", "test", "m_common"] == ["0.700", "-3.000", "0.900"]


def test_an_attacker_trained_on_released_speech_is_no_pretrained_one(submit):
    root, call = submit("2026")
    for split in ("dev", "test"):
        name = f"libri_{split}_trials_mixed{SUFFIX}"
        out = root / "exp" / "ecapa" / name
        row = {"condition": "aa", "attacker": "trained+cosine", "eer": 0.1, "eer_low": 0.1, "eer_high": 0.1}
        write_metrics(out, "asv", "mine", name, row)
        shutil.copy(root / "exp" / "asv_aa" / name / "ge2e+wccn" / "scores", out)
    call("pack")
    text = (root / "exp/results_summary/track1/result_for_rank_mine").read_text()
    assert text.count("anon   anon  30.000") == 2 and text.count("anon   anon  10.000") == 2


def test_names_of_the_organisers_come_back(submit, tmp_path):
    _, call = submit("2026")
    call("pack")
    with tarfile.open(tmp_path / "out" / "submission_track1_mine.tar.gz") as tar:
        names = tar.getnames()
        spoken = tar.extractfile("data/IEMOCAP_dev_mine/utt2spk").read().decode()
        emotions = tar.extractfile("data/IEMOCAP_dev_mine/utt2emo").read().decode()
    assert "data/IEMOCAP_dev_mine/wav/Ses01F_iemocap_dev_M002.wav" in names
    assert "Ses01F_iemocap_dev_M002 Ses01M\n" in spoken and "Ses01F_iemocap_dev_M002 neu\n" in emotions


def test_the_privacy_report_speaks_of_every_set(submit):
    root, call = submit("2026")
    call("pack")
    report = json.loads((root / "exp/results_summary/track1/privacy_mine.json").read_text())
    assert len(report["sets"]) == 7 and all("guarantee" in one["sentence"] for one in report["sets"].values())
    assert {row["condition"] for row in report["floors"]} == {"oa", "aa"}
    assert report["floors"][0]["EER floor"] == "no claim"
    assert str(root) not in json.dumps(report)


# what is refused

TRIALS = "libri_test_trials_mixed"


def rewrite(root, change):
    wav = sorted((root / "data" / f"{TRIALS}{SUFFIX}" / "wav").iterdir())[0]
    change(root, wav)
    return wav


def clear_speech(root, wav):
    """The wav.scp points to the source."""
    scp = wav.parents[1] / "wav.scp"
    source = DataDir.read(root / "data" / TRIALS).wav(wav.stem)
    scp.write_text(scp.read_text().replace(f"wav/{wav.name}", str(source)))


def a_copy(root, wav):
    source = DataDir.read(root / "data" / TRIALS).wav(wav.stem)
    write_wav(wav, read_audio(source))


def a_link(root, wav):
    wav.unlink()
    wav.symlink_to(DataDir.read(root / "data" / TRIALS).wav(wav.stem))


def nan(root, wav):
    soundfile.write(wav, np.full(4800, np.nan), 16000, subtype="FLOAT")


def cut(root, wav):
    write_wav(wav, read_audio(wav)[:1700])


def tags(root, wav):
    samples = read_audio(wav)
    with soundfile.SoundFile(wav, "w", 16000, 1, "PCM_16") as sound:
        sound.title = "talk of Jane"
        sound.write(samples)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (clear_speech, "is the original recording"),
        (a_copy, "sounds like the original recording"),
        (a_link, "is the original recording"),
        (nan, "NaN or infinite samples"),
        (nan, "WAV FLOAT, 16000 Hz, 1 channels; expected WAV PCM_16"),
        (cut, "times as long as its original"),
        (tags, "has more in it than samples"),
        (lambda root, wav: wav.unlink(), "no such file"),
        (lambda root, wav: write_wav(wav, np.zeros(4800, np.float32)), "silence"),
        (lambda root, wav: wav.write_bytes(b"RIFF"), "cannot be read"),
        (lambda root, wav: soundfile.write(wav, np.full(9600, 0.1), 22050), "22050 Hz"),
        (lambda root, wav: soundfile.write(wav, np.full((4800, 2), 0.1), 16000), "2 channels"),
    ],
)
def test_a_recording_that_is_not_right_is_named(submit, tmp_path, change, what):
    root, call = submit("2026")
    wav = rewrite(root, change)
    with pytest.raises(SubmissionError) as caught:
        call("pack")
    assert what in str(caught.value) and wav.stem in str(caught.value)
    assert not (tmp_path / "out").exists() and not (root / "exp/results_summary").exists()


@pytest.mark.parametrize("table", ["trials", "text", "utt2spk", "spk2utt", "spk2gender", "wav.scp", "utt2num_samples"])
def test_a_table_that_is_missing_is_named(submit, table):
    root, call = submit("2026")
    (root / "data" / f"{TRIALS}{SUFFIX}" / table).unlink()
    with pytest.raises(SubmissionError, match=rf"{TRIALS}{SUFFIX}.*{table}"):
        call("check")


@pytest.mark.parametrize(
    "table", [f"libri_dev_enrolls{SUFFIX}/enrolls", "IEMOCAP_dev/utt2emo", "IEMOCAP_test/spk2fold"]
)
def test_a_table_of_some_sets_only_is_missed_as_well(submit, table):
    root, call = submit("2026")
    (root / "data" / table).unlink()
    with pytest.raises(SubmissionError, match=f"{table}: missing"):
        call("pack")


@pytest.mark.parametrize(
    ("path", "what"),
    [
        (f"exp/asr/{TRIALS}{SUFFIX}/metrics.json", rf"asr figures of {TRIALS}{SUFFIX} .* run steps/score_asr.sh"),
        (f"exp/asr/{TRIALS}/metrics.json", rf"asr figures of {TRIALS} "),
        (f"exp/asr/{TRIALS}{SUFFIX}/hyp/text", r"hyp/text: missing"),
        ("exp/ser/IEMOCAP_dev_mine/metrics.json", "ser figures of IEMOCAP_dev_mine"),
        (f"exp/asv_aa/{TRIALS}{SUFFIX}", f"asv figures of {TRIALS}{SUFFIX} .*condition aa"),
        (f"exp/asv_aa/{TRIALS}{SUFFIX}/ge2e+wccn/scores", "scores: run steps/score_asv.sh"),
    ],
)
def test_a_figure_that_is_missing_is_named(submit, path, what):
    root, call = submit("2026")
    shutil.rmtree(root / path) if (root / path).is_dir() else (root / path).unlink()
    with pytest.raises(SubmissionError, match=what):
        call("pack")


def test_a_set_that_is_missing_or_short_is_named(submit):
    root, call = submit("2026")
    folder = root / "data" / f"IEMOCAP_test{SUFFIX}"
    (folder / "wav.scp").write_text("".join((folder / "wav.scp").read_text().splitlines(keepends=True)[1:]))
    shutil.rmtree(root / "data" / f"libri_dev_enrolls{SUFFIX}")
    with pytest.raises(SubmissionError) as caught:
        call("pack")
    assert "libri_dev_enrolls_mine: no such data directory" in str(caught.value)
    assert "IEMOCAP_test_mine/wav.scp" in str(caught.value) and "have no row" in str(caught.value)


def test_texts_that_lead_to_the_source_are_named(submit):
    root, call = submit("2026")
    release_dir = root / "data" / f"{TRIALS}{SUFFIX}"
    (release_dir / "notes.txt").write_text("hello")
    (release_dir / "privacy.json").write_text(json.dumps({"from": str(root / "data" / TRIALS)}))
    with pytest.raises(SubmissionError) as caught:
        call("pack")
    assert "notes.txt: is no part of a submission" in str(caught.value)
    assert "privacy.json: names a source" in str(caught.value)


def test_a_changed_trial_list_and_noise_that_repeats_are_refused(submit):
    root, call = submit("2026")
    release_dir = root / "data" / f"{TRIALS}{SUFFIX}"
    lines = (release_dir / "trials").read_text().splitlines(keepends=True)
    (release_dir / "trials").write_text("".join(lines[1:]))
    (release_dir / "privacy.json").write_text(json.dumps({"system": "dp", "releasable": False}))
    with pytest.raises(SubmissionError) as caught:
        call("pack")
    assert "trials: differs from" in str(caught.value) and "can be repeated" in str(caught.value)


def test_documented_sizes_are_asked_for(submit):
    _, call = submit("2024")
    with pytest.raises(SubmissionError) as caught:
        call("check", "--partial", "false")
    assert "has 4 utterances, the challenge 343" in str(caught.value)
    assert "the organisers' upload takes 71101617 or more" in str(caught.value)


def test_an_archive_that_lost_a_piece_is_incomplete(submit, tmp_path):
    root, call = submit("2024")
    call("pack")
    archive = tmp_path / "out" / "submission_mine.tar.gz"
    lost = f"data/libri_test_enrolls{SUFFIX}/enrolls"
    with tarfile.open(archive) as old, tarfile.open(tmp_path / "new", "w:gz") as new:
        for member in old:
            if member.name != lost:
                new.addfile(member, old.extractfile(member))
    (tmp_path / "new").rename(archive)
    assert archive_problems(archive, root, layout("2024"), SUFFIX) == [f"has no {lost}"]
    with pytest.raises(SubmissionError, match="pack it again"):
        call("check")
    archive.write_bytes(archive.read_bytes()[:5000])
    with pytest.raises(SubmissionError, match="cannot be read"):
        call("check")


def test_audio_as_it_is_written_has_no_problem(tmp_path):
    write_wav(tmp_path / "a.wav", np.full(1600, 0.1, np.float32))
    what, samples = audio_problems(tmp_path / "a.wav")
    assert not what and len(samples) == 1600


def test_an_estimate_before_anything(submit, capsys, monkeypatch):
    root, call = submit("2026")
    call("estimate")
    out = capsys.readouterr().out
    assert "h of speech" in out and "0.00 GB to write" in out
    shutil.rmtree(root / "data" / f"train-clean-360{SUFFIX}")
    one, six = (estimate(root / "data", layout("2026"), SUFFIX, jobs, parts=parts) for jobs, parts in ((1, 1), (2, 3)))
    assert one.release == pytest.approx(6 * six.release) and one.release > 0
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Disk", (), {"free": 10})())
    with pytest.raises(SubmissionError, match="are free"):
        call("estimate")
