"""dpanon protect-embeddings: what it writes, what it promises, what it refuses."""

import json

import numpy as np
import pytest
import torch

from dpanon.anonymize.embeddings import Protector
from dpanon.anonymize.pretrained import save_network
from dpanon.cli.protect_embeddings import main
from dpanon.data.data_dir import write_data_dir
from dpanon.data.embeddings import read_set, write_set
from dpanon.errors import UsageError
from dpanon.evaluate.claims import read_claim
from dpanon.models.gender_autoencoder import GenderAutoencoder, GenderAutoencoderConfig
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.privacy import ClippedLatent, KeyedNoise, PrivacyError
from dpanon.privacy.floors import auc_laplace, eer_laplace


def network():
    torch.manual_seed(1)
    made = GenderAutoencoder(GenderAutoencoderConfig(dim=8, latent=4)).eval()
    made.radius = torch.tensor(2.0)
    return made


@pytest.fixture
def gender(tmp_path):
    (tmp_path / "gender").mkdir()
    save_network(network(), tmp_path / "gender" / "gender.safetensors", {})
    return tmp_path / "gender"


@pytest.fixture
def speaker(tmp_path):
    torch.manual_seed(1)
    made = SpeakerVae(SpeakerVaeConfig(dim=8, latent=2, widths=(6,)))
    made.radius, made.clamp = torch.tensor(1.0), torch.tensor(2.0)
    (tmp_path / "speaker").mkdir()
    save_network(made, tmp_path / "speaker" / "speaker.safetensors", {})
    return tmp_path / "speaker"


@pytest.fixture
def source(tmp_path):
    utts = {f"{spk}-{k}": spk for spk in ("f1", "m1") for k in range(3)}
    tables = {"utt2spk": utts, "spk2gender": {"f1": "f", "m1": "m"}}
    data = write_data_dir(tmp_path / "labels", tables, enrolls=["f1-0"], audio=False)
    vectors = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    write_set(data, vectors, tmp_path / "in")
    return tmp_path / "in"


def test_a_release_says_what_it_promises(gender, source, tmp_path, capsys):
    main(["--model", str(gender), "--epsilon", "0.4", str(source), str(tmp_path / "out")])
    data, vectors = read_set(tmp_path / "out")
    said = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert said["guarantee"]["params"] == {"epsilon": 0.4} and said["unit"] == "utterance"
    assert said["eer_floor"] == eer_laplace(0.4) and said["auc_ceiling"] == auc_laplace(0.4)
    assert said["releasable"] is True and said["num_released"] == 6
    assert read_claim(tmp_path / "out", data.utts).eer_floor == eer_laplace(0.4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert data.enrolls == ("f1-0",) and data.sex("f1") == "f"
    assert str(tmp_path) not in "".join(p.read_text() for p in (tmp_path / "out").iterdir() if p.suffix != ".ark")
    assert "EER floor 40.9 %" in capsys.readouterr().out
    with pytest.raises(UsageError, match="a second time"):
        main(["--model", str(gender), "--epsilon", "0.4", str(source), str(tmp_path / "out")])


def test_plain_says_that_noise_in_training_promises_nothing(gender, source, tmp_path, capsys):
    main(["--model", str(gender), "--system", "plain", str(source), str(tmp_path / "out")])
    said = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert said["guarantee"]["kind"] == "none" and said["eer_floor"] is None and said["releasable"] is None
    assert "noise in training alone promises nothing" in said["sentence"]
    assert "noise in training alone promises nothing" in capsys.readouterr().out


def test_a_speaker_model_shows_both_values_of_mu(speaker, source, tmp_path, capsys):
    arguments = ["--model", str(speaker), "--noise-level", "1"]
    main([*arguments, "--sigma-rule", "as-published", str(source), str(tmp_path / "out")])
    said = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert said["mu"] == 2.0 and said["mu_as_published"] == pytest.approx(1.0)
    assert said["eer_floor"] == pytest.approx(0.1587, abs=1e-4)
    assert said["eer_floor_as_published"] == pytest.approx(0.3085, abs=1e-4)
    assert said["guarantee"]["unit"] == "utterance" and said["conditional_on"] == []
    assert "as published" in said["guarantee"]["mechanism"]


def test_keyed_noise_repeats_and_is_not_releasable(gender, source, tmp_path):
    for name in ("one", "two"):
        main(["--model", str(gender), "--epsilon", "1", "--keyed-noise", "7", str(source), str(tmp_path / name)])
    one, two = (read_set(tmp_path / name)[1] for name in ("one", "two"))
    assert np.array_equal(one, two)
    said = json.loads((tmp_path / "one" / "privacy.json").read_text())
    assert said["releasable"] is False and said["sentence"].startswith("NOT RELEASABLE")
    main(["--model", str(gender), "--epsilon", "1", str(source), str(tmp_path / "three")])
    assert not np.array_equal(one, read_set(tmp_path / "three")[1])


MISUSE = {
    "no size of the noise": ["--system", "dp"],
    "noise of another model": ["--mu", "1"],
    "noise of plain": ["--system", "plain", "--epsilon", "1"],
    "a rule for Laplace noise": ["--epsilon", "1", "--sigma-rule", "corrected"],
}


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_leaves_nothing(gender, source, tmp_path, case):
    with pytest.raises(UsageError):
        main(["--model", str(gender), *MISUSE[case], str(source), str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan"])
def test_an_epsilon_that_promises_nothing_is_refused(gender, source, tmp_path, epsilon):
    with pytest.raises(PrivacyError, match="epsilon"):
        main(["--model", str(gender), "--epsilon", epsilon, str(source), str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_vectors_of_another_extractor_and_untrained_models_are_refused(source, tmp_path):
    (tmp_path / "own").mkdir()
    made = GenderAutoencoder(GenderAutoencoderConfig(dim=8, latent=4))
    save_network(made, tmp_path / "own" / "gender.safetensors", {})
    with pytest.raises(UsageError, match="radius is nan"):
        main(["--model", str(tmp_path / "own"), "--epsilon", "1", str(source), str(tmp_path / "out")])
    other = GenderAutoencoder(GenderAutoencoderConfig(dim=9, latent=4))
    other.radius = torch.tensor(1.0)
    save_network(other, tmp_path / "own" / "gender.safetensors", {})
    with pytest.raises(UsageError, match="vectors of 8 entries; the model takes 9"):
        main(["--model", str(tmp_path / "own"), "--epsilon", "1", str(source), str(tmp_path / "out")])


def test_statistics_of_the_batch_are_refused():
    """When it is made, and when somebody turns them on later."""
    model = network()
    protector = Protector(model, ClippedLatent(1.0, 2.0, 4), 8)
    model.train()
    with pytest.raises(PrivacyError, match="normalises over the batch"):
        protector.protect(np.ones(8, dtype=np.float32))
    with pytest.raises(PrivacyError, match="normalises over the batch"):
        Protector(model, ClippedLatent(1.0, 2.0, 4), 8)


def test_only_the_released_latent_decides():
    """With the latent taken away before the noise, two people give the same vector bit by bit."""

    class Blind(KeyedNoise):
        def add_laplace(self, x, scale, bound):
            assert scale >= 2 * 2.0 / 0.7 and np.abs(x).sum() <= 2.0
            return super().add_laplace(np.zeros_like(x), scale, bound)

    protector = Protector(network(), ClippedLatent(0.7, 2.0, 4), 8)
    rng = np.random.default_rng(2)
    one, other = (protector.protect(rng.normal(size=8), Blind(1, "u", "release")).vector for _ in range(2))
    assert np.array_equal(one, other)
