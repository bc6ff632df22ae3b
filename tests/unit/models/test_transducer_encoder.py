"""Encoders of the transducer: which one is built, and what ESPnet's has to keep to."""

import dataclasses
import sys
import types

import pytest
import torch

from dpanon.errors import MissingDependencyError
from dpanon.models.transducer import Transducer, TransducerConfig, aishell_config, load_transducer, save_transducer
from dpanon.models.transducer_encoder import ESPNET, ConformerEncoder, EspnetEncoder, choose_encoder, make_encoder

TINY = TransducerConfig(5, "auto", width=16, layers=1, heads=2, kernel=3, embedding=8, prediction=16, joint=16)


class FakeConformer(torch.nn.Module):
    """What of ESPnet's Conformer is used: sizes by name, (xs_pad, ilens) -> (xs_pad, olens, None)."""

    def __init__(self, input_size, output_size=256, attention_heads=4, linear_units=2048, num_blocks=6, **others):
        super().__init__()
        assert others["macaron_style"] and others["input_layer"] == "conv2d" and others["cnn_module_kernel"] == 3
        assert (attention_heads, linear_units, num_blocks) == (2, 64, 1)
        self.layer = torch.nn.Linear(input_size, output_size)

    def forward(self, xs_pad, ilens, prev_states=None):
        assert xs_pad.shape[1] == int(ilens.max()), "ESPnet's mask is as long as the longest utterance"
        assert self.training or len(ilens.unique()) == 1
        lengths = ((ilens - 1) // 2 - 1) // 2
        return self.layer(xs_pad[:, : 4 * int(lengths.max()) : 4]), lengths, None


@pytest.fixture
def fake(monkeypatch):
    module = types.ModuleType(ESPNET)
    module.ConformerEncoder = FakeConformer
    monkeypatch.setitem(sys.modules, ESPNET, module)


@pytest.fixture
def absent(monkeypatch):
    monkeypatch.setitem(sys.modules, ESPNET, None)


def test_auto_is_espnets_where_it_can_be_imported_and_a_model_remembers(fake, tmp_path, monkeypatch):
    model = Transducer(TINY).eval()
    assert model.config == dataclasses.replace(TINY, encoder="espnet")
    assert isinstance(model.encoder, EspnetEncoder)
    logits, frames = model(torch.randn(2, 50, 80), torch.tensor([40, 27]), torch.tensor([[1, 2], [3, 4]]))
    assert logits.shape == (2, 9, 3, 5)
    assert frames.tolist() == [9, 6]
    model.train()
    model.loss(torch.randn(2, 50, 80), torch.tensor([40, 27]), torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 2]))
    model.eval()
    save_transducer(model, ["a", "b"], tmp_path / "model.pt")
    again, _ = load_transducer(tmp_path / "model.pt")
    torch.testing.assert_close(again.encoder.state_dict(), model.encoder.state_dict())
    monkeypatch.setitem(sys.modules, ESPNET, None)
    with pytest.raises(MissingDependencyError, match=r"install_espnet\.sh"):
        load_transducer(tmp_path / "model.pt")


def test_without_espnet_auto_is_ours_and_espnet_says_what_to_install(absent):
    assert choose_encoder("auto") == "conformer"
    assert isinstance(make_encoder(TINY), ConformerEncoder)
    assert Transducer(TINY).config.encoder == "conformer"
    with pytest.raises(MissingDependencyError, match=r"tools/install_espnet\.sh.*encoder: conformer"):
        Transducer(dataclasses.replace(TINY, encoder="espnet"))
    with pytest.raises(ValueError, match="encoder must be one of"):
        TransducerConfig(encoder="zipformer")


def test_espnets_conformer_has_the_size_of_the_paper_and_hears_no_padding():
    pytest.importorskip(ESPNET)
    with torch.device("meta"):
        size = sum(p.numel() for p in Transducer(dataclasses.replace(aishell_config(), encoder="espnet")).parameters())
    assert size == pytest.approx(135e6, rel=0.05)
    torch.manual_seed(0)
    ours, model = ConformerEncoder(TINY), make_encoder(dataclasses.replace(TINY, encoder="espnet")).eval()
    x, lengths = torch.randn(2, 53, 80), torch.tensor([53, 30])
    found, frames = model(x, lengths)
    assert frames.tolist() == ours(x, lengths)[1].tolist() == [12, 6]
    alone, _ = model(x[1:, :30], lengths[1:])
    torch.testing.assert_close(alone, found[1:, :6], rtol=1e-4, atol=1e-5)
    model.train()
    found, frames = model(x, lengths)
    assert found.shape == (2, 12, 16) and int(frames.max()) == 12


HEARS = TransducerConfig(5, "lstm", width=16, kernel=3, dropout=0.0, features="content", decoder="ctc")


@pytest.mark.parametrize(("features", "size", "frames"), [("content", 384, [20, 14]), ("fbank", 80, [10, 7])])
def test_convolutions_and_lstm_hear_no_padding_and_no_other_utterance(features, size, frames):
    torch.manual_seed(0)
    encoder = make_encoder(dataclasses.replace(HEARS, features=features))
    x, lengths = torch.randn(2, 40, size), torch.tensor([40, 27])
    whole, num_frames = encoder(x, lengths)
    assert whole.shape == (2, frames[0], 16)
    assert num_frames.tolist() == frames
    alone, _ = encoder(x[1:, :27], lengths[1:])
    torch.testing.assert_close(alone[0], whole[1, : frames[1]])
    x[0], x[1, 27:] = 7.0, 7.0
    torch.testing.assert_close(encoder(x, lengths)[0][1, : frames[1]], whole[1, : frames[1]])


def test_content_is_heard_by_the_lstm_only():
    assert sum(p.numel() for p in Transducer(HEARS).parameters() if p.requires_grad) < 30_000, "no prediction network"
    for wrong in ({"encoder": "conformer"}, {"features": "mfcc"}, {"decoder": "attention"}):
        with pytest.raises(ValueError, match="features"):
            dataclasses.replace(HEARS, **wrong)
