import dataclasses

import pytest
import torch

from dpanon.models.bottleneck import Bottleneck, BottleneckConfig, to_l1_sphere

CONFIG = BottleneckConfig(hidden=32, factor=8, content=16, bottleneck=24)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Bottleneck(CONFIG).eval()


@pytest.mark.parametrize("num", [1, 2, 7, 100])
def test_shapes_for_even_and_odd_lengths(net, num):
    bn = net.encode(torch.randn(2, num, 80))
    assert bn.shape == (2, num, 24)
    assert net.decode(bn).shape == (2, (num + 1) // 2, 16)


def test_frames_lie_on_the_unit_l1_sphere(net):
    bn = net.encode(10 * torch.randn(1, 50, 80))
    torch.testing.assert_close(bn.abs().sum(-1), torch.ones(1, 50))


def test_zero_vector_stays_zero():
    assert not to_l1_sphere(torch.zeros(3, 4)).any()


def test_other_utterances_of_a_batch_do_not_matter(net):
    """No statistics across people: a guarantee about one utterance must not depend on the others."""
    a, b = torch.randn(1, 40, 80), torch.randn(1, 40, 80) * 30
    torch.testing.assert_close(net.encode(torch.cat([a, b]))[:1], net.encode(a), atol=1e-6, rtol=1e-5)
    assert not any("BatchNorm" in type(m).__name__ for m in net.modules())


def test_context_says_how_far_a_frame_sees(net):
    x = torch.randn(1, 2 * net.context + 41, 80)
    mean = x.mean(1, keepdim=True)
    middle = x.shape[1] // 4
    y = x.clone()
    y[:, : 2 * (middle - net.context // 2) - 2] += 5.0
    a, b = (net.decode(net.encode(z, mean))[:, middle] for z in (x, y))
    torch.testing.assert_close(a, b)


def test_a_public_mean_is_the_same_for_every_utterance_and_part_of_it(net):
    """With it, a frame depends on its neighbours only; the mean of an utterance tells every frame of all others."""
    torch.manual_seed(0)
    public = Bottleneck(dataclasses.replace(CONFIG, mean="public")).eval()
    public.load_state_dict(net.state_dict())  # the same weights: it is not learned
    x = 12.0 + torch.randn(1, 200, 80)
    far = x.clone()
    far[:, 150:] += 5.0
    torch.testing.assert_close(public.encode(x)[:, :50], public.encode(far)[:, :50], rtol=0, atol=0)
    assert (net.encode(x)[:, :50] - net.encode(far)[:, :50]).abs().max() > 1e-4
    torch.testing.assert_close(public.encode(x, x.mean(1, keepdim=True)), public.encode(x), rtol=0, atol=0)
    torch.testing.assert_close(net.encode(x, torch.full((1, 1, 80), 12.0)), public.encode(x), rtol=0, atol=0)
    with pytest.raises(ValueError, match="mean must be one of utterance, public"):
        Bottleneck(dataclasses.replace(CONFIG, mean="speaker"))


def test_a_configuration_of_before_means_the_mean_of_the_utterance(net):
    x = torch.randn(1, 30, 80)
    torch.testing.assert_close(net.encode(x), net.encode(x + 3.0), rtol=1e-4, atol=1e-5)
