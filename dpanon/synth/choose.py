"""The synthesizers by the names that configurations and files of weights give them."""

from typing import Any

from torch import nn

from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise
from dpanon.synth.hifigan import Hifigan, HifiganConfig
from dpanon.synth.nsf import Nsf, NsfConfig

SYNTHESIZERS: dict[str, tuple[Any, Any]] = {  # network and its configuration
    "harmonic": (HarmonicNoise, HarmonicConfig),  # runs on a CPU, learns together with an extractor
    "nsf": (Nsf, NsfConfig),
    "hifigan": (Hifigan, HifiganConfig),
}


def make_synthesizer(config: HarmonicConfig | NsfConfig | HifiganConfig) -> Any:
    """The network of a configuration. MissingDependencyError: hifigan without SpeechBrain."""
    return next(network for network, of in SYNTHESIZERS.values() if type(config) is of)(config)


def name_of(network: nn.Module) -> str | None:
    """What a synthesizer is called; None if ``network`` is none."""
    return next((name for name, (made, _) in SYNTHESIZERS.items() if type(network) is made), None)
