"""The two auto-encoders of embeddings: sizes of the papers, frozen statistics, a clamp behind the noise."""

import pytest
import torch
from torch import nn

from dpanon.models.gender_autoencoder import Discriminator, GenderAutoencoder, GenderAutoencoderConfig
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.privacy import PrivacyError, require_eval


def test_sizes_are_those_of_the_paper():
    model = GenderAutoencoder(GenderAutoencoderConfig())
    assert [type(layer) for layer in model.encoder] == [nn.Linear, nn.ReLU, nn.BatchNorm1d]
    assert [type(layer) for layer in model.decoder] == [nn.Linear, nn.Tanh]
    assert model.encoder[0].weight.shape == (64, 192)
    assert model.decoder[0].weight.shape == (192, 64)
    assert [layer.in_features for layer in Discriminator().layers if isinstance(layer, nn.Linear)] == [64, 32]


def test_in_training_mode_one_person_moves_the_others():
    torch.manual_seed(1)
    model = GenderAutoencoder(GenderAutoencoderConfig(dim=8, latent=4))
    batch, other = torch.randn(6, 8), torch.randn(6, 8)
    other[0] = batch[0]
    with torch.no_grad():
        assert not torch.equal(model.encode(batch)[0], model.encode(other)[0])
        with pytest.raises(PrivacyError, match="normalises over the batch"):
            require_eval(model)
        model.eval()
        require_eval(model)
        assert torch.equal(model.encode(batch)[0], model.encode(other)[0])


def test_only_the_direction_of_an_embedding_counts():
    model = GenderAutoencoder(GenderAutoencoderConfig(dim=8, latent=4)).eval()
    x = torch.randn(3, 8)
    assert torch.allclose(model.encode(x), model.encode(50.0 * x), atol=1e-5)
    assert model.decode(100 * torch.randn(3, 4)).abs().max() <= 1.0


def test_the_mean_is_deterministic_and_the_clamp_holds():
    torch.manual_seed(1)
    model = SpeakerVae(SpeakerVaeConfig(dim=8, latent=2, widths=(6, 5)))
    model.clamp = torch.tensor(1.5)
    x = torch.randn(4, 8)
    assert torch.equal(model.encode(x), model.encode(x))
    assert torch.equal(model.decode(torch.full((1, 2), 1e6)), model.decode_raw(torch.full((1, 2), 1.5)))
    assert torch.equal(model.decode(torch.full((1, 2), -1e6)), model.decode_raw(torch.full((1, 2), -1.5)))
    inside = torch.tensor([[0.5, -1.0]])
    assert torch.equal(model.decode(inside), model.decode_raw(inside))
