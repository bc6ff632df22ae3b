import pytest
import torch

from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise, minimum_phase, pulse_train

CONFIG = HarmonicConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1)


@pytest.mark.parametrize("num", [1, 2, 9, 60])
def test_160_samples_for_every_frame(num):
    net = HarmonicNoise(CONFIG).eval()
    out = net(torch.randn(2, (num + 1) // 2, 16), torch.full((2, num), 120.0), torch.randn(2, 192))
    assert out.shape == (2, 160 * num) and out.isfinite().all()


def test_pulse_train_has_its_period_and_no_dc():
    pulses = pulse_train(torch.full((1, 200), 100.0))[0]
    torch.testing.assert_close(pulses[1600:3200], pulses[1760:3360], atol=2e-2, rtol=0)
    assert abs(pulses.mean()) < 1e-2 and abs(pulses.std() - 1) < 0.02
    spectrum = torch.fft.rfft(pulses[:16000]).abs()
    assert spectrum[7700:].max() < 0.05 * spectrum.max()  # band-limited: nothing folds back


def test_pulse_phase_continues_across_parts():
    f0 = 100 + 50 * torch.rand(1, 40)
    whole = pulse_train(f0)
    cycles = torch.cumsum(f0.double() * 160 / 16000, 1)
    part = pulse_train(f0[:, 20:], (cycles[:, 19] % 1).float())
    error = (part[0, 400:] - whole[0, 3600:]).abs().mean() / whole.std()
    assert error < 0.2


def test_filter_and_overlap_add_of_nothing_is_the_identity():
    net = HarmonicNoise(CONFIG)
    x = torch.randn(1, 160 * 30)
    torch.testing.assert_close(net._istft(net._stft(x), x.shape[1])[:, 300:-300], x[:, 300:-300], atol=1e-4, rtol=1e-3)


def test_minimum_phase_keeps_the_magnitude_and_is_causal():
    log_magnitude = torch.cumsum(torch.randn(1, 257, 1) * 0.02, 1)
    h = minimum_phase(log_magnitude)
    torch.testing.assert_close(h.abs(), torch.exp(log_magnitude), atol=1e-3, rtol=1e-2)
    response = torch.fft.irfft(h, dim=1)[0, :, 0]
    assert response[256:].pow(2).sum() < 0.05 * response[:256].pow(2).sum()


def test_voice_depends_on_the_target():
    torch.manual_seed(0)
    net = HarmonicNoise(CONFIG).eval()
    torch.nn.init.normal_(net.slow[0].steer.weight)
    content, f0 = torch.randn(1, 10, 16), torch.full((1, 20), 120.0)
    a, b = (net.envelopes(content, f0, torch.randn(1, 192))[0] for _ in range(2))
    assert (a - b).abs().max() > 1e-4
