import math

import pytest
import torch

from dpanon.models.acoustic import FFT, FLOOR, NUM_MEL, AcousticConfig, AcousticModel, LogMel, mel_bank, normalised


@pytest.mark.parametrize("num", [1, 2, 9, 60])
def test_80_values_for_every_frame(num):
    net = AcousticModel(AcousticConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)).eval()
    mel = net(torch.randn(2, (num + 1) // 2, 16), torch.full((2, num), 120.0), torch.randn(2, 192))
    assert mel.shape == (2, num, NUM_MEL) and mel.isfinite().all()


def test_frames_are_centred_on_their_10_ms():
    x = torch.zeros(1, 160 * 30)
    x[0, 160 * 11 + 80] = 1.0
    mel = LogMel()(x)
    assert mel.shape == (1, 30, NUM_MEL)
    assert mel[0].sum(1).argmax() == 11
    torch.testing.assert_close(mel[0, 10], mel[0, 12])


def test_a_tone_is_in_its_band():
    t = torch.arange(16000) / 16000
    mel = LogMel()(torch.sin(2 * math.pi * 1000 * t)[None])[0, 50]
    edges = 1127 * math.log1p(20 / 700), 1127 * math.log1p(8000 / 700)
    band = (1127 * math.log1p(1000 / 700) - edges[0]) / (edges[1] - edges[0]) * (NUM_MEL + 1) - 1
    assert abs(int(mel.argmax()) - band) <= 1


def test_silence_is_the_floor_and_no_band_is_empty():
    torch.testing.assert_close(LogMel()(torch.zeros(1, 1600)).min(), torch.tensor(math.log(FLOOR)), atol=0.1, rtol=0)
    assert (mel_bank(FFT // 2 + 1, NUM_MEL).sum(1) > 0).all()


def test_speech_like_noise_is_normalised():
    loud = normalised(LogMel()(0.1 * torch.randn(1, 16000)))
    assert loud.abs().max() < 4


def test_mel_depends_on_pitch_and_on_the_target():
    torch.manual_seed(0)
    net = AcousticModel(AcousticConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)).eval()
    torch.nn.init.normal_(net.slow[0].steer.weight)
    content, f0, voice = torch.randn(1, 10, 16), torch.full((1, 20), 120.0), torch.randn(1, 192)
    mel = net(content, f0, voice)
    assert (net(content, 2 * f0, voice) - mel).abs().max() > 1e-3
    assert (net(content, f0, -voice) - mel).abs().max() > 1e-3
