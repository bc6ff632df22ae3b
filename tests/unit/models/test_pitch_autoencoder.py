import torch

from dpanon.models.losses import correlation_loss
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig


def net():
    torch.manual_seed(0)
    model = PitchAutoencoder(PitchAutoencoderConfig()).eval()
    model.gain_scales, model.gains = torch.tensor([0.0, 1.0, 100.0]), torch.tensor([0.9, 0.5, 0.0])
    return model


def test_latent_is_in_the_box():
    h = net().encode(50 * torch.randn(2, 300))
    assert h.shape == (2, 4, 300) and h.min() >= 0 and h.max() <= 1


def test_contour_has_no_mean_and_the_size_that_the_noise_allows():
    model = net()
    h = torch.rand(1, 4, 300)
    for scale, gain in ((0.0, 0.9), (1.0, 0.5), (1e6, 0.0)):
        contour = model.decode(h, scale)
        assert abs(contour.mean().item()) < 1e-4
        torch.testing.assert_close(contour.std(), torch.tensor(gain), atol=1e-3, rtol=1e-3)


def test_gain_falls_with_noise():
    gains = [net().gain(s) for s in (0.0, 0.1, 1.0, 10.0, 100.0, 1e4)]
    assert gains == sorted(gains, reverse=True)


def test_correlation_loss_ignores_mean_scale_and_unvoiced_frames():
    x = torch.randn(2, 50)
    weight = (torch.arange(50) < 40).float().expand(2, -1)
    noisy = torch.where(weight > 0, 3 * x + 7, 100 * torch.randn(2, 50))
    assert correlation_loss(noisy, x, weight).item() < 1e-4
    assert abs(correlation_loss(-x, x).item() - 2) < 1e-4
