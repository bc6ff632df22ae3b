"""The encoder in torch computes what the packaged recogniser computes, and can be differentiated."""

import numpy as np
import pytest
import torch

from dpanon.errors import DpanonError
from dpanon.features.content import WhisperEncoder
from dpanon.models.recogniser import RecogniserLoss, WhisperEncoderTorch, read_arrays

SECONDS = 2


def vowels(f0=120.0):
    """(1, L): harmonics under two moving formants, with a pause."""
    time = torch.arange(16000 * SECONDS) / 16000
    made = torch.zeros_like(time)
    for k in range(1, 30):
        first, second = 500 + 250 * torch.sin(6 * time), 1500 + 600 * torch.cos(4 * time)
        gain = torch.exp(-(((k * f0 - first) / 150) ** 2)) + 0.5 * torch.exp(-(((k * f0 - second) / 200) ** 2))
        made += gain * torch.sin(2 * torch.pi * k * f0 * time)
    return (0.1 * made * (torch.sin(5 * time) > -0.8))[None]


def test_it_is_the_packaged_encoder():
    samples = vowels()
    padded = torch.nn.functional.pad(samples, (0, 16000 * (30 - SECONDS)))
    ours = WhisperEncoderTorch()(padded)[0].numpy()
    packaged = WhisperEncoder().model
    theirs = np.array(packaged.encode(packaged.feature_extractor(padded[0].numpy(), padding=0)[:, :3000]))[0]
    assert ours.shape == theirs.shape == (1500, 384)
    cosine = (ours * theirs).sum(-1) / np.linalg.norm(ours, axis=-1) / np.linalg.norm(theirs, axis=-1)
    assert np.median(cosine[: 50 * SECONDS]) > 0.98  # the package computes in int8


def test_the_loss_hears_and_can_be_followed():
    loss, samples = RecogniserLoss(), vowels()
    torch.manual_seed(0)
    values = [
        loss(other, samples).item() for other in (samples, 0.7 * samples, vowels(150.0), torch.randn_like(samples))
    ]
    assert values[0] == 0.0
    assert values[1] < values[2] < values[3], "louder is nearer than another voice, and that nearer than noise"
    estimate = (samples + 0.01 * torch.randn_like(samples)).requires_grad_()
    loss(estimate, samples).backward()
    assert torch.isfinite(estimate.grad).all() and estimate.grad.abs().sum() > 0
    assert not list(loss.parameters()), "nothing of it is trained, or saved with what is"
    assert not loss.state_dict()


def test_a_file_of_another_kind_is_refused(tmp_path):
    kind = b"BertSpec\0"
    file = tmp_path / "model.bin"
    file.write_bytes((6).to_bytes(4, "little") + len(kind).to_bytes(2, "little") + kind)
    with pytest.raises(DpanonError, match="expected a Whisper model, found BertSpec"):
        read_arrays(file, "encoder/")
