"""Letters as a target: whole utterances, padding that counts for nothing, and a loss that falls."""

import dataclasses

import numpy as np
import pytest
import soundfile
import torch

from dpanon.config import load_config, save_config
from dpanon.data.batches import Crop
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.errors import ConfigError, DataDirError
from dpanon.models.bottleneck import BottleneckConfig
from dpanon.train.bottleneck import Corpus, TrainBottleneckConfig, train_bottleneck, train_noise
from dpanon.train.letters import Letters, inside, whole_batches
from dpanon.train.loop import LoopConfig

SMALL = BottleneckConfig(
    mean="public", bottleneck=16, hidden=16, factor=4, content=8, encoder_dilations=(1,), decoder_dilations=(1,)
)
WORDS = {"a": "AB A", "b": "B", "c": "", "d": "A BA"}  # c has no text


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokens") / "characters.txt"
    path.write_text("_\nA\nB\n")
    return path


@pytest.fixture(scope="module")
def spoken(tmp_path_factory) -> DataDir:
    """Every letter is a tone of 0.3 s, a blank is silence; recordings of unequal length, and no other tables."""
    root = tmp_path_factory.mktemp("spoken")
    tables = {name: {} for name in ("wav.scp", "utt2spk", "utt2num_samples", "text")}
    pitch = {"A": 300.0, "B": 2000.0, " ": 0.0}
    for name, words in WORDS.items():
        t = np.arange(4800) / 16000
        parts = [0.3 * np.sin(2 * np.pi * pitch[letter] * t) for letter in f" {words} "]
        wave = np.concatenate(parts) + 1e-3 * np.random.default_rng(0).standard_normal(4800 * len(parts))
        soundfile.write(root / f"{name}.wav", wave, 16000)
        tables["wav.scp"][f"{name}-u"] = str(root / f"{name}.wav")
        tables["utt2spk"][f"{name}-u"] = name
        tables["utt2num_samples"][f"{name}-u"] = str(len(wave))
        tables["text"][f"{name}-u"] = words
    return write_data_dir(root / "data", tables)


def config(tokens, **changes):
    made = TrainBottleneckConfig(
        loop=LoopConfig(steps=2, warmup=1, lr=1e-2),
        epsilon=float("inf"), model=SMALL, batch=2, warp=0.0, tilt=0.0,
        teacher_weight=0.0, mel_weight=0.0, phone_weight=0.0, ctc_weight=1.0, tokens=tokens,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def test_letters_are_learned_from_recordings_and_text_alone(spoken, tokens, tmp_path):
    first = train_bottleneck(config(tokens), spoken, tmp_path / "first")
    longer = config(tokens, loop=LoopConfig(steps=25, warmup=3, lr=3e-2))
    last = train_bottleneck(longer, spoken, tmp_path / "last")
    assert last["ctc"] < 0.5 * first["ctc"]
    assert set(last) == {"loss", "ctc", "phone_accuracy", "epochs", "seconds"}  # no teacher, no mel
    saved = torch.load(tmp_path / "last/checkpoint.pt")["state"]["both"]
    assert saved["letters.out.weight"].shape == (4, 8, 1)  # the blank is the first
    assert not any(name.startswith(("heads.teacher", "heads.mel")) for name in saved)


def test_an_utterance_without_text_teaches_no_letters(spoken, tokens):
    letters = Letters(8, tokens, "torch", spoken)
    assert letters.said == {"a-u": (2, 3, 1, 2), "b-u": (3,), "c-u": (), "d-u": (2, 1, 3, 2)}
    content = torch.randn(2, 8, 90, requires_grad=True)
    letters.loss(content, [Crop("a-u", 0, 180), Crop("c-u", 0, 60)]).backward()
    assert content.grad[0].any() and not content.grad[1].any()


def test_other_targets_learn_from_every_frame_but_the_padding(data, tokens, spoken):
    crops = [Crop("a-u", 0, 180), Crop("c-u", 0, 60)]
    valid, batch = inside(crops), Corpus(spoken, ()).batch(crops)
    assert valid.shape == (2, 90) and valid.sum(1).tolist() == [90, 30] and inside(crops[:1]) is None
    alone = Corpus(spoken, ()).batch(crops[1:])
    torch.testing.assert_close(batch["fbank"][1, :60], alone["fbank"][0])
    torch.testing.assert_close(batch["fbank"][1, 60:], alone["fbank"][0, -1:].expand(120, -1))
    assert not {"teacher", "log_f0", "xvector"} & set(batch)


def test_all_targets_together_train_on_whole_utterances(data, tokens, tmp_path):
    text = {utt: "AB A" if i else "" for i, utt in enumerate(data.utts)}
    whole = write_data_dir(tmp_path / "data", {**data.tables(), "text": text})
    model = dataclasses.replace(SMALL, bottleneck=256)
    every = config(tokens, model=model, epsilon=10.0, teacher_weight=1.0, mel_weight=1.0, phone_weight=1.0)
    figures = train_bottleneck(every, whole, tmp_path / "bn")
    assert all(np.isfinite(figures[name]) for name in ("teacher", "cosine", "mel", "ctc", "loss"))


def test_batches_are_of_whole_utterances_of_like_length(spoken, data):
    batches = whole_batches(spoken, 2, seed=1, epoch=0)
    assert sorted(crop.utt for batch in batches for crop in batch) == sorted(spoken.utts)
    assert batches == whole_batches(spoken, 2, seed=1, epoch=0)
    assert {frozenset(crop.num_frames for crop in batch) for batch in batches} == {
        frozenset({60, 90}),
        frozenset({180}),
    }
    assert all(crop.start == 0 and crop.num_frames % 2 == 0 for batch in batches for crop in batch)
    assert [len(batch) for batch in whole_batches(spoken, 3, seed=1, epoch=5)] == [3]
    with pytest.raises(DataDirError, match="only 4 utterances"):
        whole_batches(spoken, 5, seed=1, epoch=0)


def test_no_noise_is_an_epsilon_that_is_written_and_read(tokens, tmp_path):
    assert train_noise(float("inf"), 4)[1] == 0.0 and train_noise(1.0, 4)[1] == pytest.approx(2.0)
    save_config(config(tokens), tmp_path / "config.yaml")
    assert load_config(TrainBottleneckConfig, tmp_path / "config.yaml") == config(tokens)
    assert load_config(TrainBottleneckConfig, tmp_path / "config.yaml", ["epsilon=1"]).epsilon == 1.0


def test_what_cannot_be_meant_is_refused(data, spoken, tokens, tmp_path):
    with pytest.raises(DataDirError, match="no utterance has text"):
        train_bottleneck(config(tokens), data, tmp_path / "bn")
    with pytest.raises(DataDirError, match=r"content\.scp"):
        train_bottleneck(config(tokens, teacher_weight=1.0), spoken, tmp_path / "bn")
    for changes, message in (
        ({"tokens": None}, "needs tokens"),
        ({"ctc_weight": 0.0}, "one of them is > 0"),
        ({"mel_weight": -1.0}, "are >= 0"),
        ({"epsilon": float("nan")}, "epsilon must be > 0"),
    ):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(config(tokens), **changes)
    (tmp_path / "bn.yaml").write_text("loop: {steps: 1}\nepsilon: 0\n")
    with pytest.raises(ConfigError, match="epsilon must be > 0"):
        load_config(TrainBottleneckConfig, tmp_path / "bn.yaml")
