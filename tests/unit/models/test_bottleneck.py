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
