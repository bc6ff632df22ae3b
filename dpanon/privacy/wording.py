"""A guarantee as an English paragraph, and the check of a guarantee read from JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.floors import VACUOUS

if TYPE_CHECKING:
    from dpanon.privacy.guarantee import Guarantee

SAMPLER_WORDS = {
    "exact": "ideal noise correctly rounded to a grid, keyed by the operating system",
    "keyed": "KEYED and repeatable: this output must NOT be released",
    "INSECURE": "INSECURE floating-point noise: the claim holds on paper only, do NOT release",
}


def sentence(guarantee: Guarantee, delta: float) -> str:
    """The statement of a guarantee; every clause is there on purpose."""
    if guarantee.kind == "none":
        return f"No privacy guarantee: {guarantee.reason}."
    conditions = f", given equal {' and '.join(guarantee.conditional_on)}" if guarantee.conditional_on else ""
    known = f" Public besides: {', '.join(guarantee.public_side_info)}." if guarantee.public_side_info else ""
    uncovered = f"; {'; '.join(guarantee.not_covered)}" if guarantee.not_covered else ""
    floor = "Membership EER floor" if guarantee.central else "Verification EER floor"
    silent = "" if guarantee.central else "; membership of training speakers"
    lines = [
        f"The release ({guarantee.mechanism or 'unnamed object'}) is {claim(guarantee, delta)} per {guarantee.unit}: "
        f"adjacent means {guarantee.adjacency}{conditions}.",
        f"{_releases(guarantee.n_releases)}.{known}",
        f"{floor}: {floor_words(guarantee)}.",
        f"Not covered: further releases ({_growth(guarantee)}){uncovered}{silent}.",
        f"Sampler: {SAMPLER_WORDS[guarantee.sampler]}.",
    ]
    if not guarantee.releasable:
        lines.insert(0, "INSECURE." if guarantee.sampler == "INSECURE" else "NOT RELEASABLE.")
    return " ".join(lines)


def claim(guarantee: Guarantee, delta: float = 1e-6) -> str:
    """``epsilon = 3 (pure DP)``, ``mu = 1 (GDP)``, ..."""
    params = guarantee.params
    if guarantee.kind == "gdp":
        return f"{params['mu']:.6g}-GDP (mu)"
    if guarantee.kind == "pure":
        return f"{params['epsilon']:.6g}-DP (epsilon)"
    if guarantee.kind == "approx":
        return f"({params['epsilon']:.6g}, {params['delta']:.3g})-DP (epsilon, delta)"
    return f"({guarantee.epsilon(delta):.6g}, {delta:.3g})-DP (epsilon, delta)"


def floor_words(guarantee: Guarantee) -> str:
    """The floor as a percentage, or ``vacuous``."""
    floor = guarantee.eer_floor()
    if floor < VACUOUS:
        what = "telling who was in the training set" if guarantee.central else "linking it to a voice"
        return f"vacuous (under 1 %: nothing is proved against {what})"
    if guarantee.central:
        return f"no test of who was in the training set errs less than {100 * floor:.2f} % both ways"
    return f"no attacker, whatever it was trained on or enrolled with, is below {100 * floor:.2f} % on this object"


def _releases(n: int) -> str:
    return "One release" if n == 1 else f"{n} releases added up"


def _growth(guarantee: Guarantee) -> str:
    if any(part.teachers > 1 for part in guarantee.parts):
        return "any further query of the same teachers"
    return "n of them cost mu times the root of n" if guarantee.kind == "gdp" else "n of them cost n times epsilon"


def checked_record(record: Any, names: list[str]) -> dict[str, Any]:
    """The fields of a guarantee from parsed JSON; every key present, known and of its type."""
    if not isinstance(record, dict):
        raise PrivacyError(f"a guarantee is a JSON object, got {type(record).__name__}")
    expected = {"schema", "kind", "params", *names}
    if set(record) != expected:
        raise PrivacyError(f"guarantee: unknown or missing keys {sorted(map(str, set(record) ^ expected))}")
    if record["schema"] != 1 or isinstance(record["schema"], bool):
        raise PrivacyError(f"guarantee: schema {record['schema']!r} is not 1")
    values = {name: record[name] for name in names}
    for name in ("unit", "adjacency", "mechanism", "sampler", "reason"):
        _need(name, values[name], str)
    for name in ("conditional_on", "public_side_info", "not_covered"):
        _need(name, values[name], list)
        for word in values[name]:
            _need(name, word, str)
        values[name] = tuple(values[name])
    _need("n_releases", values["n_releases"], int)
    if values["num_units"] is not None:
        _need("num_units", values["num_units"], int)
    _need("parts", values["parts"], list)
    for part in values["parts"]:
        _need("part", part, dict)
        sampled = ("rate", "teachers") if part.get("family") == "sampled" else ()
        keys = ("family", "value", "times", "delta", *sampled)
        if set(part) - {"mass"} != set(keys):
            raise PrivacyError(f"guarantee: a part has the keys {', '.join(keys)}; got {sorted(map(str, part))}")
        _need("family", part["family"], str)
        for name in ("times", *sampled[1:]):
            _need(name, part[name], int)
        for name in ("value", "delta", *sampled[:1], *({"mass"} & set(part))):
            _need(name, part[name], (int, float))
            if not math.isfinite(part[name]):
                raise PrivacyError(f"guarantee: {name} must be finite")
    return values


def _need(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PrivacyError(f"guarantee: {name} has the wrong type {type(value).__name__}")
