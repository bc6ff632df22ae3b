"""nsf and hifigan. The latter needs SpeechBrain."""

import dataclasses
import sys

import pytest
import torch

from dpanon.errors import MissingDependencyError
from dpanon.models.acoustic import AcousticConfig
from dpanon.synth.choose import SYNTHESIZERS, make_synthesizer, name_of
from dpanon.synth.discriminators import Discriminators, discriminator_loss, generator_loss
from dpanon.synth.hifigan import HifiganConfig, HifiganDiscriminators
from dpanon.synth.nsf import NsfConfig
from dpanon.synth.vocoder import HIGHEST, SineSource

SMALL = AcousticConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
CONFIGS = {
    "nsf": NsfConfig(SMALL, condition=8, condition_blocks=1, channels=4, blocks=2, layers=4),
    "hifigan": HifiganConfig(SMALL, channels=16, block_kernels=(3, 5)),
}


@pytest.fixture
def speechbrain():
    try:
        import speechbrain.lobes.models.HifiGAN  # noqa: F401
    except (ImportError, OSError) as error:
        pytest.skip(f"optional: {error}")


@pytest.fixture(params=CONFIGS)
def net(request):
    if request.param == "hifigan":
        request.getfixturevalue("speechbrain")
    torch.manual_seed(0)
    return make_synthesizer(CONFIGS[request.param]).eval()


@pytest.mark.parametrize("num", [1, 2, 9, 60])
def test_160_samples_for_every_frame(net, num):
    out = net(torch.randn(2, (num + 1) // 2, 8), torch.full((2, num), 120.0), torch.randn(2, 192))
    assert out.shape == (2, 160 * num) and out.isfinite().all() and out.std() > 0


def test_a_part_with_its_context_is_all_that_a_frame_depends_on(net):
    num = 2 * net.context + 41
    middle = num // 2
    content, f0, voice = torch.randn(1, (num + 1) // 2, 8), torch.full((1, num), 120.0), torch.randn(1, 192)

    def frame(content):
        torch.manual_seed(0)
        return net(content, f0, voice)[0, middle * 160 : (middle + 1) * 160]

    outside, inside = content.clone(), content.clone()
    near = slice((middle - net.context) // 2, (middle + net.context) // 2 + 1)
    outside[:, : near.start] = outside[:, near.stop :] = 9.0
    inside[:, middle // 2] += 1.0
    torch.testing.assert_close(frame(outside), frame(content), rtol=0, atol=0)
    assert (frame(inside) - frame(content)).abs().max() > 0


def test_the_context_is_not_much_larger_than_it_has_to_be(net):
    """Content enters by the acoustic model; the frames of log-mel that matter are found one by one."""
    num = 2 * net.reach + 21
    middle = num // 2
    mel, f0, voice = torch.randn(1, num, 80), torch.full((1, num), 120.0), torch.randn(1, 192)

    def frame(mel):
        torch.manual_seed(0)
        return net.wave(mel, f0, voice)[0, middle * 160 : (middle + 1) * 160]

    base, reached = frame(mel), 0
    for k in range(num):
        other = mel.clone()
        other[0, k] += 10.0
        if not torch.equal(frame(other), base):
            reached = max(reached, abs(k - middle))
    assert net.reach / 2 <= reached <= net.reach


def test_voice_depends_on_the_target(net):
    content, f0, voice = torch.randn(1, 10, 8), torch.full((1, 20), 120.0), torch.randn(1, 192)

    def speak(voice):
        torch.manual_seed(0)
        return net.wave(net.acoustic(content, f0, voice), f0, voice)

    for block in getattr(net, "condition", []):
        torch.nn.init.normal_(block.steer.weight)
    assert (speak(voice) - speak(-voice)).abs().max() > 1e-5


def test_a_source_has_f0_and_its_harmonics_and_nothing_that_folds_back():
    torch.manual_seed(0)
    source = SineSource(12)
    torch.nn.init.constant_(source.merge.weight, 0.3)
    torch.nn.init.zeros_(source.merge.bias)
    sines, noise = source(torch.full((1, 100), 700.0))[0].detach()
    spectrum = torch.fft.rfft(sines).abs()  # bins of 1 Hz
    peaks = [int(spectrum[h * 700 - 20 : h * 700 + 20].argmax()) for h in range(1, 11)]
    assert peaks == [20] * 10
    assert spectrum[round(HIGHEST) + 50 :].max() < 0.05 * spectrum.max()  # 11 and 12 times f0 are above
    flat = torch.fft.rfft(noise).abs()
    assert float(noise.std()) == pytest.approx(0.1 / 3, rel=0.05) and flat.max() < 5 * flat.mean()


def test_sines_run_on_from_part_to_part():
    source = SineSource(3)
    f0 = 100 + 50 * torch.rand(1, 40)
    cycles = torch.cumsum(f0.double() * 160 / 16000, 1)
    whole, part = source(f0)[0, 0], source(f0[:, 20:], (cycles[:, 19] % 1).float())[0, 0]
    assert (part[400:] - whole[3600:]).abs().mean() < 0.2 * whole.std()


def test_every_synthesizer_has_its_name():
    for name, config in CONFIGS.items():
        assert SYNTHESIZERS[name][1] is type(config)
    assert name_of(make_synthesizer(CONFIGS["nsf"])) == "nsf" and name_of(torch.nn.Linear(1, 1)) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"factors": (5, 4, 4)}, "give 80 samples"),
        ({"kernels": (11, 8, 8)}, "3 kernels for 4"),
        ({"kernels": (10, 8, 8, 4)}, "kernel 10 of factor 5"),
        ({"channels": 24}, "cannot be halved 4 times"),
        ({"block_dilations": (1, 3)}, "a residual block has 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIGS["hifigan"], **changes)


def test_without_speechbrain_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "speechbrain.lobes.models", None)
    monkeypatch.setitem(sys.modules, "speechbrain", None)
    for make in (lambda: make_synthesizer(CONFIGS["hifigan"]), HifiganDiscriminators):
        with pytest.raises(MissingDependencyError, match=r"pip install 'dpanon\[speechbrain\]'"):
            make()


def test_the_discriminators_of_hifigan_judge_as_ours_do(speechbrain):
    torch.manual_seed(0)
    real, fake = 0.1 * torch.randn(1, 3200), (0.1 * torch.randn(1, 3200)).requires_grad_()
    for judges, number in ((Discriminators(), 3), (HifiganDiscriminators(), 8)):
        assert len(judges(real)) == number
        assert discriminator_loss(judges, real, fake).isfinite()
        (slope,) = torch.autograd.grad(generator_loss(judges, real, fake), fake)
        assert slope.abs().max() > 0
        with torch.no_grad():  # against itself, only the wish to pass is left
            same = generator_loss(judges, real, real)
            wish = sum(((score - 1) ** 2).mean() for score, _ in judges(real)) / number
        assert float(same) == pytest.approx(float(wish), rel=1e-3)  # spectral norms move a little at each call
