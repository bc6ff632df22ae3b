"""Corpora of many voices: small trees in the layout of VoxCeleb and of Common Voice."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dpanon.data.data_dir import DataDir
from dpanon.errors import DataDirError

ROOT = Path(__file__).resolve().parents[3]


def prepare(name):
    spec = importlib.util.spec_from_file_location(f"{name}_prepare", ROOT / f"local/{name}/prepare.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return lambda *arguments: loaded.main([str(argument) for argument in arguments])


@pytest.fixture
def voxceleb(folder):
    root = folder / "VoxCeleb"
    for place in ("vox1/dev/wav/id10001/abc", "vox1/dev/wav/id10002/d-e", "vox2/dev/aac/id00012/xyz"):
        (root / place).mkdir(parents=True)
        for number in ("00001", "00002"):
            soundfile.write(root / place / f"{number}.wav", np.zeros(1600), 16000)
    (root / "vox1_meta.csv").write_text(
        "VoxCeleb1 ID\tVGGFace1 ID\tGender\tNationality\tSet\n"
        "id10001\tA.J._Buckley\tm\tIreland\tdev\nid10002\tA.R._Rahman\tf\tIndia\tdev\nid10003\tX\tm\tIndia\ttest\n"
    )
    (root / "vox2_meta.csv").write_text("VoxCeleb2 ID ,VGGFace2 ID ,Gender ,Set \nid00012 ,n000012 ,m ,dev\n")
    return root


def test_voxceleb_has_its_speakers_and_their_sex(voxceleb, folder):
    prepare("voxceleb")(voxceleb, "vox1/dev", folder / "attack")
    data = DataDir.read(folder / "attack")
    assert data.utts == tuple(f"{s}-{n}" for s in ("id10001-abc", "id10002-d-e") for n in ("00001", "00002"))
    assert [data.sex(speaker) for speaker in data.speakers] == ["m", "f"]
    prepare("voxceleb")(voxceleb, "vox2/dev", folder / "train")
    assert DataDir.read(folder / "train").speakers == ("id00012",)


def test_voxceleb_names_what_is_missing(voxceleb, folder):
    with pytest.raises(DataDirError, match="have to be converted"):
        prepare("voxceleb")(voxceleb, "vox1/test", folder / "out")
    (voxceleb / "vox1/dev/wav/id10002").rename(folder / "away")
    with pytest.raises(DataDirError, match=r"1 of 2 speakers are not there \(e.g. \['id10002'\]\)"):
        prepare("voxceleb")(voxceleb, "vox1/dev", folder / "out")
    prepare("voxceleb")("--partial", "true", voxceleb, "vox1/dev", folder / "out")
    assert len(DataDir.read(folder / "out")) == 2
    (voxceleb / "vox1_meta.csv").write_text("id10001\tA\tx\tIreland\tdev\n")
    with pytest.raises(DataDirError, match="vox1_meta.csv:1: expected"):
        prepare("voxceleb")("--partial", "true", voxceleb, "vox1/dev", folder / "other")


def test_common_voice_by_lhotse(folder):
    clips = folder / "cv" / "en" / "clips"
    clips.mkdir(parents=True)
    people = {"a" * 40: "male_masculine", "b" * 40: ""}
    lines = ["client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccents\tvariant\tlocale\tsegment"]
    for person, sex in people.items():
        for k in range(3):
            name = f"common_voice_en_{person[0]}{k}.wav"
            soundfile.write(clips / name, np.zeros(3200), 16000)
            lines.append(f"{person}\t{name}\tA sentence.\t2\t0\t\t{sex}\t\t\ten\t")
    (folder / "cv" / "en" / "train.tsv").write_text("\n".join(lines) + "\n")
    prepare("commonvoice")("--per-speaker", 2, folder / "cv", "train", folder / "public")
    data = DataDir.read(folder / "public")
    assert len(data) == 4 and data.speakers == ("a" * 16, "b" * 16)
    assert [data.sex(speaker) for speaker in data.speakers] == ["m", None]
    assert data.text(data.utts[0]) == "A sentence."
    with pytest.raises(DataDirError, match="no such file"):
        prepare("commonvoice")(folder / "cv", "dev", folder / "other")
