"""Transducers that are trained, asked token by token, and priced."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from dpanon.cli import score_transducer as score_cli
from dpanon.cli import train_transducer as train_cli
from dpanon.config import save_config
from dpanon.data.arrays import ArrayWriter
from dpanon.data.audio import write_wav
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.partitions import disjoint, write_partition
from dpanon.data.tokens import encode
from dpanon.errors import ConfigError, DataDirError, UsageError
from dpanon.models.transducer import (
    BLANK,
    Transducer,
    TransducerConfig,
    aishell_config,
    load_transducer,
    save_transducer,
)
from dpanon.privacy import accounting
from dpanon.train import plan, transducer
from dpanon.train.commands import Utterances
from dpanon.train.dpsgd import DpSgdSteps
from dpanon.train.loop import LoopConfig
from dpanon.train.queries import QueriesConfig, choose_queries, mechanism_for, release_labels
from dpanon.train.sequences import ask_candidates, at_positions, texts_of
from dpanon.train.transducer import TrainTransducerConfig

TOKENS = ("zh", "g", "-ong", "-uo")
TEXTS = ("zhong guo", "guo zhong", "zhong", "guo")
TINY = TransducerConfig(
    5, width=8, channels=2, layers=1, heads=2, kernel=3, embedding=4, prediction=8, joint=8, dropout=0.0
)
PLAIN = TrainTransducerConfig(LoopConfig(steps=2, warmup=1), TINY, 4, warp=0, stretch=0, mask_bands=0, mask_frames=0)


def make_set(folder, name, num, text):
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
        tables["text"] = {utt: TEXTS[i % 4] for i, utt in enumerate(utts)}
    data = write_data_dir(folder / name, tables)
    with ArrayWriter(data.path / "fbank.scp") as writer:
        for utt in utts:
            writer[utt] = rng.standard_normal((20, 80)).astype(np.float32)
    return DataDir.read(data.path)


@pytest.fixture
def sets(tmp_path):
    return make_set(tmp_path, "private", 12, True), make_set(tmp_path, "public", 6, False)


def test_training_starts_where_it_is_told_and_is_loaded_again(sets, tmp_path):
    private, _ = sets
    speech, labels = transducer.read_speech(private), transducer.labels_of(private, private.utts, TOKENS)
    assert labels[:2] == [(1, 3, 2, 4), (2, 4, 1, 3)]
    first = transducer.train_transducer(tmp_path / "a", PLAIN, speech, labels, len(TOKENS))
    save_transducer(first, TOKENS, tmp_path / "a" / "model.pt")
    again, tokens = load_transducer(tmp_path / "a" / "model.pt")
    assert tokens == TOKENS
    assert again.config == dataclasses.replace(TINY, vocabulary=len(TOKENS) + 1)
    still = dataclasses.replace(PLAIN, trained=("out",))
    later = transducer.train_transducer(tmp_path / "b", still, speech, labels, len(TOKENS), again)
    changed = {name for name, value in later.state_dict().items() if not torch.equal(value, again.state_dict()[name])}
    assert changed == {"out.weight", "out.bias"}
    with pytest.raises(DataDirError, match="11 texts of 12"):
        transducer.train_transducer(tmp_path / "c", PLAIN, speech, labels[1:], len(TOKENS))


def test_batches_have_every_utterance_once_and_lengths_that_are_alike():
    lengths = np.random.default_rng(0).integers(20, 200, 500).tolist()
    batches = transducer.batches_of_like_length(lengths, 16, np.random.default_rng(1))
    assert sorted(i for batch in batches for i in batch) == list(range(500))
    assert all(12 <= len(batch) <= 20 for batch in batches)
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert padded < 1.2 * sum(lengths)


def test_words_are_made_of_utterances_of_one_speaker():
    x = [torch.full((4 + i, 80), float(i)) for i in range(4)]
    labels, speakers = [(1,), (2,), (3,), (4,)], ["a", "b", "a", "b"]
    said = set()
    for seed in range(20):
        found = transducer.say_in_a_row(
            Utterances(list("wxyz"), x), labels, speakers, [2, 1], 3, np.random.default_rng(seed)
        )
        for i, first, others in ((0, 3, {1, 3}), (1, 2, {2, 4})):
            tokens = found[2][i]
            assert tokens[0] == first and set(tokens) <= others and len(tokens) <= 3
            expected = torch.cat([x[token - 1] for token in tokens])
            assert int(found[1][i]) == len(expected)
            assert torch.equal(found[0][i, : len(expected)], expected)
            said.add(len(tokens))
    assert said == {1, 2, 3}


def test_short_words_are_long_enough():
    x, num_frames = transducer.long_enough(torch.zeros(2, 5, 80), torch.tensor([5, 3]))
    assert x.shape == (2, 7, 80)
    assert num_frames.tolist() == [7, 7]
    assert len(transducer.recognise(Transducer(TINY).eval(), Utterances(["a"], [torch.zeros(4, 80)]))) == 1


def test_a_share_of_one_is_ctc_alone_and_content_is_what_whisper_hears(sets, tmp_path):
    private, public = sets
    model = dataclasses.replace(TINY, features="content", encoder="lstm")
    config = dataclasses.replace(PLAIN, ctc=1.0, model=model, mask_bands=40, mask_frames=4)
    with pytest.raises(DataDirError, match=r"steps/extract_content\.sh"):
        transducer.read_speech(private, features="content")
    rng = np.random.default_rng(0)
    with ArrayWriter(private.path / "content.scp") as writer:
        for utt in private.utts:
            writer[utt] = rng.normal(5.0, 2.0, (10, 384)).astype(np.float32)
    speech = transducer.read_speech(DataDir.read(private.path), features="content")
    x, _ = speech.batch([0])
    torch.testing.assert_close(x.mean(1), torch.zeros(1, 384), atol=1e-4, rtol=0)
    torch.testing.assert_close(x.std(1, correction=0), torch.ones(1, 384), atol=1e-2, rtol=0)
    labels = transducer.labels_of(private, private.utts, TOKENS)
    trained = transducer.train_transducer(tmp_path / "a", config, speech, labels, len(TOKENS))
    assert (trained.config.decoder, trained.config.features) == ("ctc", "content")
    assert not any(name.startswith(("prediction", "out")) for name in trained.state_dict())
    assert len(transducer.recognise(trained, speech, 3)) == len(private)
    save_config(config, tmp_path / "conf.yaml")
    (tmp_path / "tokens").write_text("\n".join(TOKENS))
    options = ["--baseline", "true"], [str(private.path), str(tmp_path / "b")]
    train_cli.main(["--config", str(tmp_path / "conf.yaml"), "--tokens", str(tmp_path / "tokens"), *sum(options, [])])
    score_cli.main(["--baseline", "true", "--system", "x", str(tmp_path / "b"), str(tmp_path / "s"), str(private.path)])
    assert json.loads((tmp_path / "s" / private.path.name / "metrics.json").read_text())["num"] == len(private)
    for wrong in ({"ctc": 1.1}, {"warp": 0.1}, {"level": 1.0}):
        with pytest.raises(ValueError, match="ctc must|features: content"):
            dataclasses.replace(config, **wrong)


def test_errors_are_counted_in_syllables_or_characters():
    said = [(1, 3, 2, 4), (1, 3), ()]
    assert transducer.error_counts(said, ["zhong guo", "guo zhong", "guo"], TOKENS) == ([0, 1, 1], [2, 2, 1])
    assert transducer.error_counts([(1, 2)], ["国中人"], ("国", "中")) == ([1], [3])


def test_answers_have_as_many_positions_whatever_was_said():
    assert at_positions([(1, 3), (1, 3, 2, 4, 1)], 4).tolist() == [1, 3, 0, 0, 1, 3, 2, 4]
    found = texts_of(np.array([1, 3, 0, 4, 1, -1, 0, 0, 0, 2, 3, 1, 2, 4, 2, 4]), ["a", "b", "c", "d"], TOKENS)
    assert found == {"a": "zhong"}, "not answered, nothing said, or no end: left out"


def test_every_position_is_paid_for(sets, tmp_path):
    private, public = sets
    partition = disjoint(private, 3)
    write_partition(partition, tmp_path / "t" / "partition.json")
    for k in range(1, 4):
        torch.manual_seed(k)
        model = Transducer(TINY)
        save_transducer(model, TOKENS, tmp_path / "t" / str(k) / "model.pt")
    config = QueriesConfig(queries=4, positions=5)
    mechanism = mechanism_for("gnmax", config, partition, 5, 8.0, 1e-5)
    assert mechanism.sigma == pytest.approx(math.sqrt(2 * 20) / accounting.gdp_mu(8.0, 1e-5))
    said = release_labels(tmp_path / "t", private, public, tmp_path / "out", "s", "gnmax", config, 8.0, 1e-5)
    assert said["options"]["queries"] == 20
    assert said["epsilon"] == pytest.approx(8.0, rel=1e-3)
    assert all(transducer.labels_of(DataDir.read(tmp_path / "out"), DataDir.read(tmp_path / "out").utts, TOKENS))


def test_teachers_choose_among_public_candidates(sets, tmp_path):
    private, public = sets
    torch.manual_seed(7)
    start = Transducer(TINY).eval()
    with torch.no_grad():
        start.out.bias[BLANK] -= 1.0  # it says much
    save_transducer(start, TOKENS, tmp_path / "start" / "model.pt")
    partition = disjoint(private, 3)
    write_partition(partition, tmp_path / "t" / "partition.json")
    for k in range(1, 4):
        torch.manual_seed(k)
        save_transducer(Transducer(TINY), TOKENS, tmp_path / "t" / str(k) / "model.pt")
    found, texts = ask_candidates(tmp_path / "t", public, public.utts[:4], tmp_path / "start", 6)
    assert found.shape == (3, 4, 6)
    np.testing.assert_allclose(found.sum(-1), 1.0)
    teacher, _ = load_transducer(tmp_path / "t" / "2" / "model.pt")
    speech = transducer.read_speech(public, public.utts[:1])
    losses = [
        teacher.loss(*speech.batch([0]), *transducer.pad_labels([encode(text, TOKENS)])).item() for text in texts[0]
    ]
    np.testing.assert_allclose(found[1, 0], torch.tensor(losses).neg().softmax(0).numpy(), rtol=1e-4)
    config = QueriesConfig(queries=4, candidates=6)
    assert config.asked == 4, "one query an utterance"
    arguments = tmp_path / "t", private, public, tmp_path / "out", "s", "gnmax", config, 8.0, 1e-5
    with pytest.raises(UsageError, match="public model"):
        release_labels(*arguments)
    assert not (tmp_path / "t" / "queries.jsonl").exists()
    said = release_labels(*arguments, start=tmp_path / "start")
    assert said["sigma"] == pytest.approx(math.sqrt(2 * 4) / accounting.gdp_mu(8.0, 1e-5))
    released = DataDir.read(tmp_path / "out").table("text")
    asked = choose_queries(public, 4)
    _, texts = ask_candidates(tmp_path / "t", public, asked, tmp_path / "start", 6)
    assert released and all(text in texts[asked.index(utt)] for utt, text in released.items())
    for wrong in ({"candidates": 1}, {"candidates": -2}, {"candidates": 4, "positions": 2}):
        with pytest.raises(ValueError, match="candidates"):
            QueriesConfig(**wrong)


def test_dp_sgd_trains_linear_layers_under_a_claim(sets):
    pytest.importorskip("opacus")
    private, _ = sets
    model = Transducer(TINY).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    arguments = transducer.read_speech(private), transducer.labels_of(private, private.utts, TOKENS), 8.0, 1e-2
    guarantee, _ = transducer.train_dpsgd(DpSgdSteps(3, batch=4, trained=("out",)), model, *arguments)
    assert guarantee.epsilon(1e-2) == pytest.approx(8.0, rel=1e-3)
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"out.weight", "out.bias"}
    for trained in ((), ("encoder",), ("prediction",)):
        with pytest.raises(ConfigError, match="linear"):
            transducer.train_dpsgd(DpSgdSteps(3, batch=4, trained=trained), model, *arguments)


def test_the_plan_is_of_the_papers_size_and_its_noise_of_the_reference():
    found = plan.plan_training(aishell_config(), plan.PlanConfig())
    assert found.parameters == pytest.approx(135e6, rel=0.05)
    assert found.memory_gib > found.parameters * 16 / 2**30
    more = plan.plan_training(aishell_config(), plan.PlanConfig(batch_seconds=640.0, epochs=120.0))
    assert more.memory_gib > found.memory_gib
    assert more.hours["no DP"] == pytest.approx(2 * found.hours["no DP"])
    frames = plan.price_answers(plan.PlanConfig(), 8.0, 1e-5)[0]
    assert frames.queries == 16_020_000
    assert frames.sigma_teacher == pytest.approx(1074, abs=1), "dp_reference 1.4"
    few = plan.affordable_queries(10, 8.0, 1e-5)
    assert math.sqrt(2 * few) / accounting.gdp_mu(8.0, 1e-5) / 10 <= plan.CLEAR
    assert math.sqrt(2 * (few + 1)) / accounting.gdp_mu(8.0, 1e-5) / 10 > plan.CLEAR
    for wrong in ({"hours": 0.0}, {"teraflops": math.nan}, {"teachers": -1}):
        with pytest.raises(ValueError, match="finite and > 0"):
            plan.PlanConfig(**wrong)
