"""Corpora of words: layouts are read as their scripts say, sets are apart, what no token can say is left out."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import require_apart
from dpanon.data.tokens import encode, read_tokens
from dpanon.errors import DataDirError, UsageError

ROOT = Path(__file__).resolve().parents[3]
TOKENS = read_tokens(ROOT / "local/mandarin/tokens.txt")


def module(name):
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), ROOT / f"local/{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def record(path, samples=1600, kind=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(samples), 16000, format=kind)
    return path


def test_fsdd_and_its_split(tmp_path):
    for digit in (3, 7):
        for spk in ("ann", "bob", "cy"):
            for take in range(4):
                record(tmp_path / "fsdd/recordings" / f"{digit}_{spk}_{take}.wav")
    module("fsdd/prepare").main([str(tmp_path / "fsdd"), str(tmp_path / "all")])
    options = ["--test-takes", "1", "--public-takes", "1", "--unseen-speakers", "1"]
    module("digits/split").main([*options, str(tmp_path / "all"), str(tmp_path / "sets")])
    sets = {name: DataDir.read(tmp_path / "sets" / name) for name in ("private", "public", "test", "test_speakers")}
    assert {name: len(data) for name, data in sets.items()} == {
        "private": 8,
        "public": 4,
        "test": 4,
        "test_speakers": 8,
    }
    assert not sets["public"].has("text")
    assert sets["test_speakers"].speakers == ("cy",)
    for name in ("public", "test", "test_speakers"):
        require_apart(sets["private"], sets[name])
    (tmp_path / "fsdd/recordings/x.wav").write_bytes(b"")
    with pytest.raises(DataDirError, match="such as 7_jackson_32.wav"):
        module("fsdd/prepare").main([str(tmp_path / "fsdd"), str(tmp_path / "again")])


@pytest.fixture
def manifest(tmp_path):
    pytest.importorskip("pypinyin")
    rows = [
        ("Y_1", "Y", "一下子"),
        ("Y_2", "Y", "一_就_"),
        ("Y_3", "Y", "旅行"),
        ("C_1", "C", "lü4"),
        ("C_2", "C", "_hm1"),
    ]
    lines = ["utt\tspeaker\ttext\tseconds\tpath\tcorpus"]
    for utt, speaker, text in rows:
        record(tmp_path / "m" / speaker / f"{utt}.wav")
        lines.append(f"{utt}\t{speaker}\t{text}\t0.1\t{speaker}/{utt}.wav\tx")
    (tmp_path / "m/manifest.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "m"


def test_characters_and_toned_syllables_become_syllables(manifest, tmp_path, capsys):
    prepare = module("mandarin/prepare").main
    prepare([str(manifest), "Y", str(tmp_path / "y")])
    assert DataDir.read(tmp_path / "y").table("text") == {"Y-1": "yi xia zi", "Y-3": "lv xing"}
    assert "1 left out" in capsys.readouterr().out
    prepare([str(manifest), "C", str(tmp_path / "c")])
    assert DataDir.read(tmp_path / "c").table("text") == {"C-1": "lv"}
    with pytest.raises(DataDirError, match="nothing of speaker"):
        prepare([str(manifest), "Z", str(tmp_path / "z")])
    with pytest.raises(DataDirError, match="no such file"):
        prepare([str(tmp_path), "Y", str(tmp_path / "z")])


def test_a_word_is_in_one_set_only(tmp_path):
    split = module("mandarin/split").split

    class Words:
        path = tmp_path

        def table(self, name):
            return {f"u{i}": f"w{i // 2}" for i in range(400)}

    sets = split(Words(), 0.1, 0.2, 0.1)
    words = {name: {Words().table("text")[utt] for utt in utts} for name, utts in sets.items()}
    assert sum(map(len, words.values())) == 200
    assert 20 < len(sets["test"]) < 70 < len(sets["public"]) < 120
    assert 20 < len(sets["dev"]) < 70 < len(sets["private"])
    for shares in ((0.0, 0.1, 0.1), (0.5, 0.3, 0.2), (0.1, -0.1, 0.1), (0.1, 0.1, 0.0)):
        with pytest.raises(UsageError, match="all together < 1"):
            split(Words(), *shares)


def test_gcin_voice_is_read_from_zhuyin(tmp_path):
    pytest.importorskip("pypinyin")
    for folder, speaker in (("ㄓㄨㄥ", 3), ("ㄊㄢ3", 5), ("ㄩㄝ4", 3), ("ㄏㄇ", 3)):
        record(tmp_path / "ogg" / folder / f"{speaker}.ogg", kind="OGG")
    tables, left_out = module("gcin_voice/prepare").read_tables(tmp_path / "ogg")
    assert tables["text"] == {"gcin3-zhong1": "zhong", "gcin5-tan3": "tan", "gcin3-yue4": "yue"}
    assert left_out == 1
    with pytest.raises(DataDirError, match="apt-get install gcin-voice"):
        module("gcin_voice/prepare").read_tables(tmp_path)


def test_commands_have_syllables_that_can_be_said(tmp_path):
    prepare = module("mandarin_commands/prepare")
    commands = prepare.read_commands()
    assert len(commands) == 19
    assert all(encode(said, TOKENS) for said in commands.values())
    record(tmp_path / "c/ann/left_3.wav")
    prepare.main([str(tmp_path / "c"), str(tmp_path / "d")])
    assert DataDir.read(tmp_path / "d").table("text") == {"ann-left-03": commands["left"]}
    record(tmp_path / "c/ann/jump_3.wav")
    with pytest.raises(DataDirError, match="such as left_3.wav"):
        prepare.main([str(tmp_path / "c"), str(tmp_path / "e")])


def test_aishell_by_lhotse_and_its_public_list_of_characters(tmp_path):
    root = tmp_path / "aishell"
    names = {"train": ["BAC009S0002W0122"], "dev": ["BAC009S0724W0121"], "test": ["BAC009S0764W0121"]}
    for part, utts in names.items():
        for utt in utts:
            record(root / "data_aishell/wav" / part / utt[6:11] / f"{utt}.wav")
    transcript = root / "data_aishell/transcript/aishell_transcript_v0.8.txt"
    transcript.parent.mkdir()
    transcript.write_text("".join(f"{utt} 而 对 楼市\n" for utts in names.values() for utt in utts), encoding="utf-8")
    prepare = module("aishell/prepare").main
    prepare([str(root), "train", str(tmp_path / "train")])
    data = DataDir.read(tmp_path / "train")
    assert data.table("text") == {"S0002-BAC009S0002W0122": "而对楼市"}
    with pytest.raises(DataDirError, match="data_aishell"):
        prepare([str(tmp_path), "train", str(tmp_path / "x")])
    (root / "resource_aishell").mkdir()
    (root / "resource_aishell/lexicon.txt").write_text("SIL sil\n楼市 l ou2 sh ix4\n对 d ui4\n", encoding="utf-8")
    module("aishell/make_tokens").main([str(root), str(tmp_path / "tokens.txt")])
    assert set(read_tokens(tmp_path / "tokens.txt")) == set("楼市对")
    keep = module("aishell/keep_known").keep
    with pytest.raises(DataDirError, match="no utterance is of characters"):
        keep(data, ("楼", "市"), True)
    assert keep(data, tuple("而对楼市"), True)["text"] == {"S0002-BAC009S0002W0122": "而对楼市"}
    assert "text" not in keep(data, tuple("而对楼市"), False)
