"""Teachers asked with noise: every question is counted, its noise is that of the budget; students hear nothing else."""

import json
import math

import numpy as np
import pytest
import torch

from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.partitions import disjoint, poisson, write_partition
from dpanon.errors import DataDirError, UsageError
from dpanon.models.commands import Commands, CommandsConfig, save_commands
from dpanon.privacy import PrivacyError, accounting, psn
from dpanon.train.commands import TrainCommandsConfig, Utterances, labels_of
from dpanon.train.loop import LoopConfig
from dpanon.train.queries import METHODS, QueriesConfig, count_queries, mechanism_for, release_labels
from dpanon.train.students import load_ensemble, majority_weights, require_released, train_students

WORDS = ("no", "yes", "perhaps")
SMALL = CommandsConfig(hidden=4, layers=1, heads=2, bands=8)
DELTA = 1e-5


def make_set(folder, name, num, text):
    """Each word is a step in another band. Recordings of their own, so that no two sets share a file."""
    rng = np.random.default_rng(len(name))
    utts = [f"{name[:2]}-{i:02d}" for i in range(num)]
    for utt in utts:
        write_wav(folder / f"{utt}.wav", np.zeros(3200, dtype=np.float32))
    tables = {
        "wav.scp": {utt: folder / f"{utt}.wav" for utt in utts},
        "utt2spk": dict.fromkeys(utts, name[:2]),
        "utt2num_samples": dict.fromkeys(utts, 3200),
    }
    if text:
        tables["text"] = {utt: WORDS[i % 3] for i, utt in enumerate(utts)}
    data = write_data_dir(folder / name, tables)
    with ArrayWriter(data.path / "fbank.scp") as writer:
        for i, utt in enumerate(utts):
            fbank = rng.standard_normal((20, 80)).astype(np.float32) * 0.1
            fbank[10:, i % 3 :: 3] += 3
            writer[utt] = fbank
    return DataDir.read(data.path)


@pytest.fixture
def sets(tmp_path):
    return make_set(tmp_path, "private", 24, True), make_set(tmp_path, "public", 12, False)


def teachers_of(folder, partition):
    write_partition(partition, folder / "partition.json")
    for k in range(1, partition.teachers + 1):
        torch.manual_seed(k)
        save_commands(Commands(3, SMALL), WORDS, folder / str(k) / "model.pt")
    return folder


def ask(sets, folder, out, method="gnmax", queries=6, **options):
    private, public = sets
    config = QueriesConfig(queries=queries, threshold=0.01)
    return release_labels(folder, private, public, out, "s", method, config, 8.0, DELTA, **options)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_costs_what_was_asked_for(sets, method):
    private, _ = sets
    partition = poisson(private, 4, 0.25) if method.startswith("psn") else disjoint(private, 4)
    guarantee = mechanism_for(method, QueriesConfig(queries=40), partition, 3, 8.0, DELTA).guarantee()
    assert guarantee.unit == "utterance"
    if method == "psn-published":
        (part,) = guarantee.parts
        assert psn.published_epsilon(part.value, 4, 0.25, DELTA) == pytest.approx(8.0, rel=1e-6)
        assert guarantee.epsilon(DELTA) > 12, "the formula promises what it does not hold"
    else:
        assert 7.9 < guarantee.epsilon(DELTA) <= 8.0 * (1 + 1e-6)


def test_twice_the_queries_need_root_two_of_the_noise(sets):
    partition = disjoint(sets[0], 4)
    few, many = (mechanism_for("gnmax", QueriesConfig(queries=q), partition, 3, 8.0, DELTA).sigma for q in (50, 100))
    assert many / few == pytest.approx(math.sqrt(2))
    assert few == pytest.approx(math.sqrt(2 * 50) / accounting.gdp_mu(8.0, DELTA))


def test_the_method_has_to_fit_the_partition(sets):
    private, _ = sets
    with pytest.raises(PrivacyError, match="does not account for a poisson partition"):
        mechanism_for("gnmax", QueriesConfig(), poisson(private, 4, 0.25), 3, 8.0, DELTA)
    with pytest.raises(PrivacyError, match="does not account for a disjoint partition"):
        mechanism_for("psn", QueriesConfig(), disjoint(private, 4), 3, 8.0, DELTA)
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(PrivacyError):
            mechanism_for("gnmax", QueriesConfig(), disjoint(private, 4), 3, epsilon, DELTA)


def test_answers_are_words_of_public_speech_under_a_claim(sets, tmp_path):
    folder = teachers_of(tmp_path / "t", disjoint(sets[0], 4))
    said = ask(sets, folder, tmp_path / "out")
    data = DataDir.read(tmp_path / "out")
    assert len(data) == 6
    assert set(data.table("text").values()) <= set(WORDS)
    assert said == json.loads((data.path / "privacy.json").read_text())
    assert said["epsilon"] == pytest.approx(8.0, rel=1e-3)
    assert said["releasable"] is True
    assert said["sampler"] == "exact"
    assert "partition" in said["options"]
    assert not {utt for utt in sets[0].utts if utt in json.dumps(said)}, "no private name leaves"


def test_a_second_round_of_questions_is_added_and_capped(sets, tmp_path):
    folder = teachers_of(tmp_path / "t", disjoint(sets[0], 4))
    first = ask(sets, folder, tmp_path / "a")
    second = ask(sets, folder, tmp_path / "b", cap=20.0)
    assert first["epsilon_all_answers_of_these_teachers"] == pytest.approx(8.0, rel=1e-3)
    expected = accounting.gdp_epsilon(math.sqrt(2) * accounting.gdp_mu(8.0, DELTA), DELTA)
    assert second["epsilon_all_answers_of_these_teachers"] == pytest.approx(expected, rel=1e-2)
    with pytest.raises(PrivacyError, match="none is drawn"):
        ask(sets, folder, tmp_path / "c", cap=13.0)
    assert not (tmp_path / "c").exists()
    assert len((folder / "queries.jsonl").read_text().splitlines()) == 2


def test_psn_teachers_answer_once(sets, tmp_path):
    folder = teachers_of(tmp_path / "t", poisson(sets[0], 4, 0.25))
    ask(sets, folder, tmp_path / "a", "psn")
    with pytest.raises(PrivacyError, match="do not add up"):
        ask(sets, folder, tmp_path / "b", "psn")


def test_a_question_that_cannot_be_counted_is_not_asked(sets, tmp_path):
    folder = teachers_of(tmp_path / "t", disjoint(sets[0], 4))
    (folder / "queries.jsonl").write_text('{"time": 0}\n')
    with pytest.raises(PrivacyError, match="nothing is asked without it"):
        ask(sets, folder, tmp_path / "out")
    (folder / "queries.jsonl").unlink()
    (folder / "queries.jsonl").mkdir()
    with pytest.raises(OSError, match="queries.jsonl"):
        ask(sets, folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_private_or_known_speech_is_not_asked_about(sets, tmp_path):
    private, public = sets
    folder = teachers_of(tmp_path / "t", disjoint(private, 4))
    with pytest.raises(PrivacyError, match="private set"):
        ask((private, private), folder, tmp_path / "out")
    known = make_set(tmp_path, "known", 12, True)
    with pytest.raises(UsageError, match="whose words are known"):
        ask((private, known), folder, tmp_path / "out")
    with pytest.raises(UsageError, match="only 12 public"):
        ask(sets, folder, tmp_path / "out", queries=13)
    assert not (folder / "queries.jsonl").exists(), "what is refused is not paid for"


def test_counting_comes_before_noise(sets, tmp_path, monkeypatch):
    """Killed while the noise is drawn, the answer is paid for."""
    from dpanon.privacy import sampling

    def killed(*arguments):
        raise KeyboardInterrupt

    folder = teachers_of(tmp_path / "t", disjoint(sets[0], 4))
    monkeypatch.setattr(sampling.SystemNoise, "add_gaussian", killed)
    with pytest.raises(KeyboardInterrupt):
        ask(sets, folder, tmp_path / "out")
    assert len((folder / "queries.jsonl").read_text().splitlines()) == 1
    guarantee = mechanism_for("gnmax", QueriesConfig(queries=6), disjoint(sets[0], 4), 3, 8.0, DELTA).guarantee()
    assert count_queries(folder, "again", guarantee, DELTA, None) > 11


def test_a_student_hears_released_labels_only(sets, tmp_path):
    private, public = sets
    with pytest.raises(UsageError, match="learns from released labels only"):
        require_released(public, private)
    (private.path / "privacy.json").write_text('{"releasable": true}')
    with pytest.raises(PrivacyError, match="a student may not hear it"):
        require_released(private, private)
    (public.path / "privacy.json").write_text('{"releasable": false}')
    with pytest.raises(UsageError, match="may not leave"):
        require_released(public, private)


def test_students_learn_and_are_weighed(sets, tmp_path):
    private, _ = sets
    loop = LoopConfig(steps=60, lr=2e-2, warmup=5)
    config = TrainCommandsConfig(loop, SMALL, 8, warp=0, stretch=0, level=0, mask_bands=0, mask_frames=0)
    heard = Utterances.read(private, SMALL.bands)
    labels = labels_of(private, private.utts, WORDS)
    spare = heard.take(range(6))
    made = train_students(tmp_path / "s", config, heard.take(range(6, 24)), labels[6:], WORDS, 2, None, spare)
    assert sum(made.weights) == pytest.approx(1.0)
    again = load_ensemble(tmp_path / "s")
    assert again.weights == made.weights
    said = again.recognise(heard)
    torch.testing.assert_close(said.exp().sum(-1), torch.ones(24))
    assert (said.argmax(-1) == labels).double().mean() > 0.8
    with pytest.raises(DataDirError, match=r"neither model.pt nor weights.json"):
        load_ensemble(tmp_path)


def test_majority_weights():
    assert majority_weights([3, 3]) == (0.5, 0.5)
    better, worse = majority_weights([1, 4])
    assert worse / better == pytest.approx(0.9**3)
    assert majority_weights([100_000, 100_001])[0] > 0.5


def test_two_that_ask_at_once_are_both_counted(sets, tmp_path):
    """The second waits until the first is counted, and its total has both."""
    from concurrent.futures import ThreadPoolExecutor

    folder = teachers_of(tmp_path / "t", disjoint(sets[0], 4))
    guarantee = mechanism_for("gnmax", QueriesConfig(queries=6), disjoint(sets[0], 4), 3, 8.0, DELTA).guarantee()
    with ThreadPoolExecutor(4) as pool:
        totals = list(pool.map(lambda k: count_queries(folder, f"s{k}", guarantee, DELTA, None), range(4)))
    assert len((folder / "queries.jsonl").read_text().splitlines()) == 4
    assert len({round(total, 6) for total in totals}) == 4, "1, 2, 3 and 4 of them"
