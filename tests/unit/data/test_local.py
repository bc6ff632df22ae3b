"""The corpus library: a LibriSpeech of two readers, a folder of files, and some utterances of the made corpus."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dpanon.data.data_dir import DataDir
from dpanon.errors import DataDirError

ROOT = Path(__file__).resolve().parents[3]


def module(name):
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), ROOT / f"local/{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def corpus(folder):
    """Reader 14 with two chapters, reader 17 with one; one listed utterance has no audio."""
    root = folder / "LibriSpeech"
    for chapter, lengths in {"14/1": [1600, 1700], "14/2": [1800], "17/3": [2000, 2100, None]}.items():
        part = root / "dev-clean" / chapter
        part.mkdir(parents=True)
        name, lines = chapter.replace("/", "-"), []
        for k, length in enumerate(lengths):
            lines.append(f"{name}-{k:04d} SOME WORDS OF {name}\n")
            if length:
                soundfile.write(part / f"{name}-{k:04d}.flac", np.zeros(length), 16000)
        (part / f"{name}.trans.txt").write_text("".join(lines))
    (root / "SPEAKERS.TXT").write_text(
        "; comment | with bars\n14   | F | dev-clean | 25.03 | A | B\n17   | M | dev-clean | 1 | C\n"
    )
    return root


def test_the_speaker_is_the_reader_not_the_chapter(corpus, folder):
    module("librispeech/prepare").main(["--partial", "true", str(corpus), "dev-clean", str(folder / "d")])
    data = DataDir.read(folder / "d")
    assert data.speakers == ("14", "17") and [data.sex(spk) for spk in data.speakers] == ["f", "m"]
    assert data.utterances("14") == ("14-1-0000", "14-1-0001", "14-2-0000")
    assert [data.num_samples(utt) for utt in data.utts] == [1600, 1700, 1800, 2000, 2100]
    assert data.text("14-2-0000") == "SOME WORDS OF 14-2"
    data.check_audio(decode=True)


def test_a_part_with_gaps_is_refused(corpus, folder):
    prepare = module("librispeech/prepare").main
    with pytest.raises(DataDirError, match="dev-clean has 5 of 2703 utterances, 2 of 40 speakers, 1 utterances of the"):
        prepare([str(corpus), "dev-clean", str(folder / "d")])
    with pytest.raises(DataDirError, match="is it a part of LibriSpeech"):
        prepare([str(corpus), "dev-cleen", str(folder / "d")])
    (corpus / "SPEAKERS.TXT").write_text("14 | F | dev-clean | 1 | A\n")
    with pytest.raises(DataDirError, match=r"1 readers have no line \(e.g. \['17'\]\)"):
        prepare(["--partial", "true", str(corpus), "dev-clean", str(folder / "d")])
    (corpus / "SPEAKERS.TXT").write_text("14 F\n")
    with pytest.raises(DataDirError, match="SPEAKERS.TXT:1: expected"):
        prepare(["--partial", "true", str(corpus), "dev-clean", str(folder / "d")])
    assert not (folder / "d").exists()


def test_an_archive_is_checked(folder):
    check = module("librispeech/check_archive").main
    (folder / "dev-clean.tar.gz").write_bytes(b"half")
    with pytest.raises(DataDirError, match="expected 42e2234ba48799c1f50f24a7926300a1"):
        check([str(folder / "dev-clean.tar.gz")])


def test_files_of_unknown_speakers(folder):
    for name in ("b", "a"):
        soundfile.write(folder / f"{name}.flac", np.zeros(1600), 16000)
    module("speech_to_intent/prepare").main([str(folder), str(folder / "d")])
    data = DataDir.read(folder / "d")
    assert data.utts == data.speakers == ("a", "b") and data.sex("a") is None


def test_sentences_are_everyday_english_without_figures():
    sentences = (ROOT / "local/mini/sentences.txt").read_text(encoding="utf-8").splitlines()
    assert len(sentences) == len(set(sentences)) == 200
    for sentence in sentences:
        assert 6 <= len(sentence.split()) <= 14 and not any(c.isdigit() for c in sentence)


def test_the_made_corpus_is_large_enough_and_its_speakers_differ():
    speakers = module("mini/make_corpus").read_speakers()
    test, train = ([s for s in speakers if s.role == role] for role in ("test", "train"))
    assert len(test) >= 16 and all(s.utterances >= 10 for s in test) and len(train) >= 20
    for group in (test, train):
        assert sum(s.sex == "f" for s in group) == sum(s.sex == "m" for s in group)
    assert len({s[3:7] for s in speakers}) == len({s.id for s in speakers}) == len(speakers)


@pytest.mark.skipif(any(shutil.which(p) is None for p in ("flite", "espeak-ng", "sox")), reason="needs apt packages")
def test_made_speech_is_the_same_every_time_and_resumes(folder, monkeypatch):
    make = module("mini/make_corpus")
    two = [s._replace(utterances=2) for s in make.read_speakers() if s.role == "test"]
    two = [next(s for s in two if s.synthesizer == name) for name in ("flite", "espeak-ng")]
    assert make.make_corpus(folder / "one", two, 2) == make.make_corpus(folder / "two", two, 1) == 4
    files = sorted((folder / "one").glob("*/*.wav"))
    for file in files:
        assert file.read_bytes() == (folder / "two" / file.relative_to(folder / "one")).read_bytes()
    files[0].unlink()
    assert make.make_corpus(folder / "one", two, 2) == 1
    with pytest.raises(DataDirError, match="another version of the recipe; remove it"):
        make.make_corpus(folder / "one", two[:1], 1)
    module("mini/prepare").read_tables(folder / "one", "test")


def test_prepare_scripts_say_how_they_are_called():
    for script in ("librispeech/prepare.sh", "librispeech/download.sh", "mini/prepare.sh"):
        done = subprocess.run([ROOT / "local" / script], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "Usage:" in done.stderr
