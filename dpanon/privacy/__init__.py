"""Mechanisms and what they promise. Nothing else in the project draws the noise of a release.

Names are loaded on first use, so that ``import dpanon.privacy`` costs neither torch nor the
accountant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpanon.privacy import accounting, audit, calibration, capacity, clip, floors, psn, sampling
    from dpanon.privacy.discrete import CodebookChoice, IntegerLaplace, SubsetSelection, TokenResponse
    from dpanon.privacy.dpsgd import DpSgd
    from dpanon.privacy.errors import PrivacyError
    from dpanon.privacy.guarantee import Guarantee
    from dpanon.privacy.latent import ClippedLatent
    from dpanon.privacy.layers import ReleaseNoise, TrainNoise, require_eval
    from dpanon.privacy.ledger import Cap, Ledger
    from dpanon.privacy.mechanisms import BottleneckFrames, PitchBox, Released, SpeakerGaussian
    from dpanon.privacy.pate import ConfidentGNMax, GNMax
    from dpanon.privacy.pitch import LowRankPitch, PitchGaussian
    from dpanon.privacy.sampling import KeyedNoise, SystemNoise
    from dpanon.privacy.votes import NoisyVotes

__all__ = [
    "BottleneckFrames",
    "Cap",
    "ClippedLatent",
    "CodebookChoice",
    "ConfidentGNMax",
    "DpSgd",
    "GNMax",
    "Guarantee",
    "IntegerLaplace",
    "KeyedNoise",
    "Ledger",
    "LowRankPitch",
    "NoisyVotes",
    "PitchBox",
    "PitchGaussian",
    "PrivacyError",
    "ReleaseNoise",
    "Released",
    "SpeakerGaussian",
    "SubsetSelection",
    "SystemNoise",
    "TokenResponse",
    "TrainNoise",
    "accounting",
    "audit",
    "calibration",
    "capacity",
    "clip",
    "floors",
    "psn",
    "require_eval",
    "sampling",
]

_HOMES = {
    "BottleneckFrames": "mechanisms",
    "Cap": "ledger",
    "ClippedLatent": "latent",
    "CodebookChoice": "discrete",
    "ConfidentGNMax": "pate",
    "DpSgd": "dpsgd",
    "GNMax": "pate",
    "Guarantee": "guarantee",
    "IntegerLaplace": "discrete",
    "KeyedNoise": "sampling",
    "Ledger": "ledger",
    "LowRankPitch": "pitch",
    "NoisyVotes": "votes",
    "PitchBox": "mechanisms",
    "PitchGaussian": "pitch",
    "PrivacyError": "errors",
    "ReleaseNoise": "layers",
    "Released": "mechanisms",
    "SpeakerGaussian": "mechanisms",
    "SubsetSelection": "discrete",
    "SystemNoise": "sampling",
    "TokenResponse": "discrete",
    "TrainNoise": "layers",
    "require_eval": "layers",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
