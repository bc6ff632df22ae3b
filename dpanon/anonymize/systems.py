"""The systems by name: how each releases what is said and its f0, and which parameters its noise has."""

from collections.abc import Mapping

from dpanon.errors import UsageError

SYSTEMS: dict[str, tuple[str, str] | None] = {  # content and prosody
    "dp": ("frames", "box"),  # Anon+DP of paper A, table 2
    "plain": ("clear", "converted"),  # Anon+PC
    "anon": ("clear", "kept"),  # Anon
    "dp_bn": ("frames", "converted"),  # Anon+DP_BN
    "dp_pitch": ("clear", "box"),  # Anon+DP_Pitch
    "naive": ("clear", "naive"),  # the paper's baseline of DP pitch
    "dp_contour": ("frames", "contour"),
    "token": ("tokens", "contour"),
    "voxlet": None,  # with the noise that is asked for, or with none
}
PARAMETER = {  # of a part's noise
    "frames": "epsilon_bn",
    "tokens": "epsilon_token",
    "box": "epsilon_f0",
    "naive": "epsilon_f0",
    "contour": "mu_f0",
}
DEFAULTS = {"epsilon_bn": 10.0, "epsilon_token": 14.0, "epsilon_f0": 10.0, "mu_f0": 1.0}
_OF = {"epsilon_bn": "one frame", "epsilon_token": "one token", "epsilon_f0": "one utterance", "mu_f0": "one utterance"}


def parts_of(name: str, given: Mapping[str, float | None]) -> tuple[str, str]:
    """Content and prosody of a system; ``voxlet`` has those of the parameters ``given``. UsageError: unknown."""
    if name not in SYSTEMS:
        raise UsageError(f"unknown system {name!r}; choose one of {', '.join(SYSTEMS)}")
    if (parts := SYSTEMS[name]) is not None:
        return parts
    has = {parameter for parameter, value in given.items() if value is not None}
    for one, other in (("epsilon_bn", "epsilon_token"), ("epsilon_f0", "mu_f0")):
        if {one, other} <= has:
            raise UsageError(f"{option(one)} and {option(other)} are two noises for the same; leave one out")
    content = "tokens" if "epsilon_token" in has else "frames" if "epsilon_bn" in has else "clear"
    return content, "contour" if "mu_f0" in has else "box" if "epsilon_f0" in has else "converted"


def check_parameters(name: str, given: Mapping[str, float | None], defaults: bool = False) -> dict[str, float]:
    """The parameters of a system's noise.

    Args:
        given: parameter -> value, None where there is none.
        defaults: fill those that are missing.

    Raises:
        UsageError: a mechanism without a parameter, or a parameter without a mechanism.
    """
    needed = [PARAMETER[part] for part in parts_of(name, given) if part in PARAMETER]
    for parameter, value in given.items():
        if parameter not in needed and value is not None:
            raise UsageError(f"the system {name} has no such noise: leave out {option(parameter)}")
    values = {name: DEFAULTS[name] if defaults and given[name] is None else given[name] for name in needed}
    for parameter, value in values.items():
        if value is None:
            raise UsageError(f"the system {name} needs {option(parameter)} (of {_OF[parameter]})")
    return values  # type: ignore[return-value]  # as they are: the mechanisms say what is wrong with a value


def option(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"
