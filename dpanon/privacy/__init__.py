"""Mechanisms and what they promise. Nothing else in the project draws the noise of a release.

Names are loaded on first use, so that ``import dpanon.privacy`` costs neither torch nor the
accountant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpanon.privacy import accounting, audit, capacity, clip, floors, sampling
    from dpanon.privacy.discrete import CodebookChoice, IntegerLaplace, SubsetSelection, TokenResponse
    from dpanon.privacy.errors import PrivacyError
    from dpanon.privacy.guarantee import Guarantee
    from dpanon.privacy.latent import ClippedLatent
    from dpanon.privacy.layers import ReleaseNoise, TrainNoise, require_eval
    from dpanon.privacy.ledger import Cap, Ledger
    from dpanon.privacy.mechanisms import BottleneckFrames, PitchBox, Released, SpeakerGaussian
    from dpanon.privacy.pitch import LowRankPitch, PitchGaussian
    from dpanon.privacy.sampling import KeyedNoise, SystemNoise

__all__ = [
    "BottleneckFrames",
    "Cap",
    "ClippedLatent",
    "CodebookChoice",
    "Guarantee",
    "IntegerLaplace",
    "KeyedNoise",
    "Ledger",
    "LowRankPitch",
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
    "capacity",
    "clip",
    "floors",
    "require_eval",
    "sampling",
]

_HOMES = {
    "BottleneckFrames": "mechanisms",
    "Cap": "ledger",
    "ClippedLatent": "latent",
    "CodebookChoice": "discrete",
    "Guarantee": "guarantee",
    "IntegerLaplace": "discrete",
    "KeyedNoise": "sampling",
    "Ledger": "ledger",
    "LowRankPitch": "pitch",
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
