"""TrainNoise promises nothing, ReleaseNoise mints guarantees, and neither can be switched off."""

import copy
import pickle

import numpy as np
import pytest
import torch

from dpanon.privacy import (
    BottleneckFrames,
    KeyedNoise,
    PitchBox,
    PrivacyError,
    ReleaseNoise,
    SpeakerGaussian,
    TrainNoise,
    require_eval,
)

CASES = [
    (BottleneckFrames(2.0, dim=8), (3, 50, 8)),
    (PitchBox(3.0, channels=4), (3, 4, 50)),
    (SpeakerGaussian(1.5, radius=2.0, dim=400), (3, 400)),
]
NAMES = ["frames", "pitch", "speaker"]


@pytest.mark.parametrize("mechanism, shape", CASES, ids=NAMES)
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_noise_is_there_in_train_and_in_eval(mechanism, shape, mode):
    for layer in (TrainNoise(mechanism), ReleaseNoise(mechanism)):
        getattr(layer, mode)()
        first, second = layer(torch.ones(shape)), layer(torch.ones(shape))
        if isinstance(layer, ReleaseNoise):
            first, second = first.value, second.value
        assert first.shape == shape and first.dtype == torch.float32
        assert (first != second).float().mean() > 0.99


def test_only_release_noise_promises_anything():
    mechanism = BottleneckFrames(2.0, dim=8)
    train = mechanism.train_noise()
    assert train.guarantee.kind == "none" and train.guarantee.reason == "training regulariser"
    released = ReleaseNoise(mechanism)(torch.ones(2, 5, 8)).guarantee
    assert released.params == {"epsilon": 2.0} and released.num_units == 5 and released.releasable
    assert not isinstance(train, ReleaseNoise) and not hasattr(train, "release")


@pytest.mark.parametrize("shape", [(1, 1, 8), (1, 900, 8), (32, 50, 8)])
def test_frame_noise_scale_ignores_batch_and_length(shape):
    """A peer scaled by batch times length: 5.5 % is 7 sigma of the mean here."""
    mechanism = BottleneckFrames(4.0, dim=8)
    layer, repeat = TrainNoise(mechanism), max(1, 2_000 // (shape[0] * shape[1]))
    noise = torch.cat([layer(torch.zeros(shape)).flatten() for _ in range(repeat)])
    assert mechanism.scale == pytest.approx(0.5) and noise.abs().mean() == pytest.approx(0.5, rel=0.055)


def test_pitch_noise_scale_is_that_of_the_row_s_own_length():
    layer = TrainNoise(PitchBox(2.0, channels=4))
    whole = layer(torch.zeros(20, 4, 300)).abs().mean()
    assert whole == pytest.approx(4 * 300 / 2.0, rel=0.05)
    rows = layer(torch.zeros(2, 4, 3000), num_frames=torch.tensor([100, 3000])).abs().mean(dim=(1, 2))
    assert rows[0] == pytest.approx(200.0, rel=0.1) and rows[1] == pytest.approx(6000.0, rel=0.1)
    assert PitchBox(2.0, channels=4).scale(300) == pytest.approx(600.0)


def test_training_noise_is_that_of_the_release():
    x = torch.randn(1, 4000, 8)
    mechanism = BottleneckFrames(1.0, dim=8)
    train = TrainNoise(mechanism)(x)[0].abs().mean(0)
    release = ReleaseNoise(mechanism)(x).value[0].abs().mean(0)
    assert torch.allclose(train, release, rtol=0.2)


def test_gradient_passes_the_noise_and_a_zero_frame():
    x = torch.randn(2, 5, 8)
    x[0, 0] = 0
    x.requires_grad_()
    TrainNoise(BottleneckFrames(1.0, dim=8))(x).square().sum().backward()
    assert torch.isfinite(x.grad).all() and x.grad[1].abs().sum() > 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_and_half_inputs_neither_overflow_nor_lose_the_noise(dtype):
    layer = TrainNoise(PitchBox(0.001, channels=4))  # scale 4e6, beyond float16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(torch.full((1, 4, 1000), 0.5, dtype=dtype))
    assert y.dtype == torch.float32 and torch.isfinite(y).all() and y.abs().mean() > 1e6
    released = ReleaseNoise(BottleneckFrames(1.0, dim=8))(torch.ones(1, 3, 8, dtype=dtype)).value
    assert released.dtype == torch.float32 and torch.isfinite(released).all()


@pytest.mark.parametrize("mechanism, shape", CASES, ids=NAMES)
def test_a_wrong_shape_is_refused(mechanism, shape):
    for layer in (TrainNoise(mechanism), ReleaseNoise(mechanism)):
        for wrong in (shape[1:], (1, *shape), (*shape[:1], 3, 3)[: len(shape)]):
            with pytest.raises(PrivacyError):
                layer(torch.ones(wrong))
    with pytest.raises(PrivacyError):
        ReleaseNoise(mechanism)(torch.ones(0, *shape[1:]))


def test_release_noise_is_not_tied_to_the_graph_and_accepts_keyed_noise():
    layer = ReleaseNoise(BottleneckFrames(1.0, dim=8))
    x = torch.ones(2, 3, 8, requires_grad=True)
    first, second = (layer(x, KeyedNoise(1, "u", "bn")) for _ in range(2))
    assert not first.value.requires_grad and torch.equal(first.value, second.value)
    assert not torch.equal(first.value[0], first.value[1])  # each utterance has noise of its own
    assert not first.guarantee.releasable


def test_layers_hold_no_state_and_survive_copies():
    layer = ReleaseNoise(BottleneckFrames(1.0, dim=8))
    assert not layer.state_dict() and not list(layer.parameters())
    x = torch.ones(1, 3, 8)
    outputs = [l(x).value for l in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)))]  # noqa: E741
    assert len({tuple(y.flatten().tolist()) for y in outputs}) == 3


def test_batch_normalisation_in_training_mode_is_refused():
    model = torch.nn.Sequential(torch.nn.Conv1d(2, 2, 1), torch.nn.BatchNorm1d(2))
    with pytest.raises(PrivacyError, match="call .eval"):
        require_eval(model)
    require_eval(model.eval())
    with pytest.raises(PrivacyError):
        require_eval(torch.nn.BatchNorm1d(2, track_running_stats=False).eval())


@pytest.mark.parametrize("mechanism, shape", CASES, ids=NAMES)
def test_mechanisms_release_float32_and_leave_the_input_alone(mechanism, shape):
    x = np.full(shape[1:], 0.5)
    before = x.copy()
    released = mechanism.release(x)
    assert released.value.dtype == np.float32 and released.value.shape == x.shape
    assert np.array_equal(x, before) and np.isfinite(released.value).all()


def test_a_long_recording_is_released_in_parts_like_any_other():
    """The same clip, scale and claim beyond one block, and no noise twice."""
    num = 2 * 4096 + 5
    released = BottleneckFrames(1e3, 8).release(np.zeros((num, 8)))
    assert released.value.shape == (num, 8) and released.guarantee.num_units == num
    first, second = released.value[:4096].ravel(), released.value[4096:8192].ravel()
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(len(first))
    assert abs(np.abs(released.value).mean() / 2e-3 - 1) < 0.05
