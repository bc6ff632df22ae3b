"""A folder of weights says itself which synthesizer it has."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from dpanon.anonymize.pretrained import load_network, load_system, save_network
from dpanon.errors import UsageError
from dpanon.models.acoustic import AcousticConfig
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.privacy import KeyedNoise
from dpanon.synth.choose import make_synthesizer, name_of
from dpanon.synth.harmonic import HarmonicConfig
from dpanon.synth.hifigan import HifiganConfig
from dpanon.synth.nsf import NsfConfig
from dpanon.synth.targets import Target, TargetPool

ACOUSTIC = AcousticConfig(content=16, channels=16, slow_blocks=1, fast_blocks=1)
CONFIGS = {
    "harmonic": HarmonicConfig(content=16, channels=32, slow_blocks=1, fast_blocks=1),
    "nsf": NsfConfig(ACOUSTIC, condition=8, condition_blocks=1, channels=4, blocks=1, layers=3),
    "hifigan": HifiganConfig(ACOUSTIC, channels=16, block_kernels=(3,)),
}


@pytest.fixture(params=CONFIGS)
def models(request, tmp_path):
    if request.param == "hifigan":
        try:
            import speechbrain.lobes.models.HifiGAN  # noqa: F401
        except (ImportError, OSError) as error:
            pytest.skip(f"optional: {error}")
    torch.manual_seed(0)
    extractor = Bottleneck(BottleneckConfig(hidden=32, factor=8, content=16))
    save_network(extractor, tmp_path / "bn_plain.safetensors", {})
    save_network(make_synthesizer(CONFIGS[request.param]), tmp_path / "synth_plain.safetensors", {})
    voices = [Target(f"f0{i}a", "f", np.full(192, 192**-0.5, np.float32), 5.0 + i / 9, 0.2) for i in range(2)]
    TargetPool(voices).save(tmp_path / "targets.safetensors")
    return tmp_path


def test_a_recording_is_anonymized_by_the_synthesizer_of_the_folder(models):
    system = load_system("plain", models=models)
    assert system.synthesizer.config == CONFIGS[name_of(system.synthesizer)]
    samples = (0.1 * np.sin(np.arange(8000) * 0.05)).astype(np.float32)
    target = system.pool.choose("f00a")
    first, again = (system.anonymize(samples, target, KeyedNoise(1, "a", "test")).samples for _ in range(2))
    assert first.shape == (8000,) and np.isfinite(first).all() and first.std() > 0
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, system.anonymize(samples, target, KeyedNoise(2, "a", "test")).samples)


def test_weights_that_say_nothing_are_of_harmonic(tmp_path):
    save_network(make_synthesizer(CONFIGS["harmonic"]), tmp_path / "new.safetensors", {})
    from safetensors import safe_open

    with safe_open(tmp_path / "new.safetensors", "pt") as file:
        facts = file.metadata()
    assert facts.pop("synthesizer") == "harmonic"
    save_file(load_file(tmp_path / "new.safetensors"), tmp_path / "old.safetensors", facts)
    assert name_of(load_network("synth", tmp_path / "old.safetensors")) == "harmonic"


def test_an_unknown_synthesizer_is_a_usage_error(tmp_path):
    save_network(make_synthesizer(CONFIGS["nsf"]), tmp_path / "a.safetensors", {})
    save_file(load_file(tmp_path / "a.safetensors"), tmp_path / "b.safetensors", {"synthesizer": "wav", "config": "{}"})
    with pytest.raises(UsageError, match="a synthesizer 'wav'; this version has harmonic, nsf, hifigan"):
        load_network("synth", tmp_path / "b.safetensors")
