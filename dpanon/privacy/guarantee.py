"""What a release promises, in numbers, in JSON and in one English paragraph.

A guarantee is a list of parts (elementary mechanisms and how often each was used) under one unit
and one adjacency. Everything else - kind, epsilon, floors - follows from the parts, so that
composing guarantees never loses what a tight accountant needs later.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, replace
from typing import Any

from dpanon.privacy import floors
from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError

EXACT = "exact"  # rounded ideal noise, AES-256-CTR keyed by the operating system
KEYED = "keyed"  # the same sampler under a known key: repeatable, so it protects nothing
INSECURE = "INSECURE"  # torch floating point noise
UNITS = ("frame", "segment", "utterance", "speaker")  # from small to large
FAMILIES = ("pure", "response", "laplace", "gaussian", "approx", "sampled")
SAMPLERS = (EXACT, KEYED, INSECURE)  # from best to worst
ADJACENCY = {
    "frame": "replace one frame by any other, the rest of the utterance equal",
    "segment": "replace one segment of speech by any other, the rest of the utterance equal",
    "utterance": "replace the utterance by any other with the same number of frames",
    "speaker": "replace all utterances of the speaker by any others with the same numbers of frames",
}
CENTRAL = {  # of what is trained on, or answered from, a whole private set
    "utterance": "add or remove one utterance of the private training set",
    "speaker": "add or remove one speaker, with all utterances, of the private training set",
}
SCHEMA = 1


@dataclass(frozen=True)
class Part:
    """One elementary mechanism, used ``times`` times.

    ``value`` is epsilon (pure, response, approx), the loss Delta / scale (laplace) or mu (gaussian).
    ``mass`` (response only) is the probability of the outcomes that have the loss +epsilon; those of
    loss -epsilon have ``mass e^-epsilon``, all others the loss 0.
    Every use of a sampled part draws a fresh secret Poisson sample: the unit lands in
    Binomial(``teachers``, ``rate``) places and shifts unit Gaussian noise by ``value`` for each
    (DP-SGD: one place, ``times`` steps).
    """

    family: str
    value: float
    times: int = 1
    delta: float = 0.0
    mass: float = 0.0
    rate: float = 1.0
    teachers: int = 1

    def __post_init__(self):
        if self.family not in FAMILIES:
            raise PrivacyError(f"unknown mechanism family {self.family!r}; known are {', '.join(FAMILIES)}")
        positive("value", self.value)
        count("times", self.times)
        if self.family == "approx":
            probability("delta", self.delta)
        elif isinstance(self.delta, bool) or self.delta != 0.0:
            raise PrivacyError(f"a {self.family} part has delta 0, got {self.delta!r}")
        if self.family == "response":
            if positive("mass", self.mass) > (1.0 + 1e-12) / (1.0 + math.exp(-self.value)):
                raise PrivacyError(f"mass {self.mass} and mass e^-{self.value:g} are more than 1 together")
        elif isinstance(self.mass, bool) or self.mass != 0.0:
            raise PrivacyError(f"a {self.family} part has mass 0, got {self.mass!r}")
        count("teachers", self.teachers)
        if positive("rate", self.rate) > 1.0:
            raise PrivacyError(f"rate must be in (0, 1], got {self.rate}")
        if self.family != "sampled" and (self.rate, self.teachers) != (1.0, 1):
            raise PrivacyError(f"a {self.family} part is not sampled: it has neither rate nor teachers")


@dataclass(frozen=True)
class Guarantee:
    """A differential-privacy claim that says what it is about.

    Args:
        parts: the mechanisms; empty for "no guarantee", which then has a ``reason``.
        unit: ``frame``, ``utterance`` or ``speaker``: what is replaced in the adjacency.
        adjacency: the two inputs that cannot be told apart, in words.
        mechanism: the released objects, in words.
        conditional_on: what must be equal in both inputs, beyond the adjacency.
        public_side_info: what the release tells besides, e.g. the number of frames.
        not_covered: what the claim is silent about.
        n_releases: releases of the same unit added up so far.
        num_units: how many units the released object holds (T frames), None if just one.
        sampler: how the noise was drawn; only ``exact`` may leave.

    >>> frame = Guarantee.laplace(2.0, unit="frame", mechanism="bottleneck frames", num_units=100)
    >>> frame.to_unit("utterance").epsilon()
    200.0
    """

    parts: tuple[Part, ...]
    unit: str
    adjacency: str = ""
    mechanism: str = ""
    conditional_on: tuple[str, ...] = ()
    public_side_info: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    n_releases: int = 1
    num_units: int | None = None
    sampler: str = EXACT
    reason: str = ""

    def __post_init__(self):
        if self.unit not in UNITS:
            raise PrivacyError(f"unit must be one of {', '.join(UNITS)}, got {self.unit!r}")
        if self.sampler not in SAMPLERS:
            raise PrivacyError(f"sampler must be one of {', '.join(SAMPLERS)}, got {self.sampler!r}")
        if not self.parts and not self.reason:
            raise PrivacyError("a guarantee without parts needs a reason: use Guarantee.none(reason)")
        count("n_releases", self.n_releases)
        if self.num_units is not None:
            count("num_units", self.num_units)
        if not self.adjacency:
            object.__setattr__(self, "adjacency", ADJACENCY[self.unit])
        if self.central and self.adjacency != CENTRAL.get(self.unit):
            raise PrivacyError(f"a claim per {self.unit} cannot mean: {self.adjacency}")
        if any(part.family == "sampled" for part in self.parts) and not self.central:
            raise PrivacyError(
                "sub-sampling is accounted for add-or-remove adjacency only, "
                f"not for: {self.adjacency}; see CENTRAL in dpanon.privacy.guarantee"
            )
        if sum(part.times for part in self.parts if part.teachers > 1) > 1:
            raise PrivacyError(
                "answers of sub-sampled teachers do not add up: the same secret sub-samples gave them all. "
                "Declare all queries in one claim"
            )

    @classmethod
    def none(cls, reason: str, unit: str = "utterance") -> Guarantee:
        """No claim at all, and why."""
        return cls(parts=(), unit=unit, reason=reason)

    @classmethod
    def pure(cls, epsilon: float, unit: str, **words: Any) -> Guarantee:
        """epsilon-DP of unknown shape."""
        return cls(parts=(Part("pure", positive("epsilon", epsilon)),), unit=unit, **words)

    @classmethod
    def laplace(cls, epsilon: float, unit: str, **words: Any) -> Guarantee:
        """epsilon-DP by Laplace noise of scale Delta / epsilon, which also has the better Laplace floors."""
        return cls(parts=(Part("laplace", positive("epsilon", epsilon)),), unit=unit, **words)

    @classmethod
    def gdp(cls, mu: float, unit: str, **words: Any) -> Guarantee:
        """mu-GDP by Gaussian noise of sigma Delta / mu."""
        return cls(parts=(Part("gaussian", positive("mu", mu)),), unit=unit, **words)

    @classmethod
    def approx(cls, epsilon: float, delta: float, unit: str, **words: Any) -> Guarantee:
        """(epsilon, delta)-DP of unknown shape."""
        part = Part("approx", positive("epsilon", epsilon), 1, probability("delta", delta))
        return cls(parts=(part,), unit=unit, **words)

    @property
    def kind(self) -> str:
        """``none``, ``pure``, ``gdp``, ``approx``; ``pld`` when only a privacy-loss distribution holds it all."""
        families = {part.family for part in self.parts}
        if not families:
            return "none"
        if families <= {"pure", "response", "laplace"}:
            return "pure"
        if families == {"gaussian"}:
            return "gdp"
        return "pld" if families & {"gaussian", "sampled"} else "approx"

    @property
    def central(self) -> bool:
        """Whether the claim is about a record of a private set (add or remove), not about an input replaced."""
        return self.adjacency in CENTRAL.values()

    @property
    def params(self) -> dict[str, float]:
        """The numbers of the claim: epsilon | mu | epsilon and delta; empty for none and pld (see ``epsilon``)."""
        if self.kind == "gdp":
            return {"mu": self.mu()}
        if self.kind == "approx":
            delta = min(1.0, sum(part.times * part.delta for part in self.parts))
            return {"epsilon": self._basic_epsilon(), "delta": delta}
        return {"epsilon": self._basic_epsilon()} if self.kind == "pure" else {}

    @property
    def releasable(self) -> bool:
        """Whether the noise was drawn so that the value may leave."""
        return bool(self.parts) and self.sampler == EXACT

    def mu(self) -> float:
        """mu of a purely Gaussian claim: squares add."""
        if self.kind != "gdp":
            raise PrivacyError(f"a guarantee of kind {self.kind} has no mu")
        return math.hypot(*(math.sqrt(part.times) * part.value for part in self.parts))

    def epsilon(self, delta: float = 0.0) -> float:
        """Privacy loss: by basic composition for delta 0, else the least of basic and tight accounting."""
        if delta == 0.0 and not isinstance(delta, bool):
            return self._basic_epsilon() if self.kind == "pure" else math.inf
        probability("delta", delta)
        if not self.parts:
            return math.inf
        from dpanon.privacy import accounting

        return accounting.epsilon(self.parts, delta)

    def eer_floor(self) -> float:
        """No attacker's equal error rate on this object is below it; 0 if there is no claim.

        Exact for one mechanism; for many, from the composed loss distribution, unless the
        Bhattacharyya bound already shows that the exact value is vacuous (under 1 %).
        """
        if not self.parts:
            return 0.0
        if self.kind == "gdp":
            return floors.eer_gdp(self.mu())
        if self.kind == "approx":
            params = self.params
            return max(0.0, 1.0 - params["delta"]) * floors.eer_pure(params["epsilon"])
        if len(self.parts) == 1 and self.parts[0].times == 1 and self.kind == "pure":
            part = self.parts[0]
            if part.family == "response":
                return floors.eer_response(part.value, part.mass)
            return floors.eer_laplace(part.value) if part.family == "laplace" else floors.eer_pure(part.value)
        basic = floors.eer_pure(self._basic_epsilon()) if self.kind == "pure" else 0.0
        if 0.5 * math.exp(sum(part.times * _log_affinity(part) for part in self.parts)) < floors.VACUOUS:
            return basic
        from dpanon.privacy import accounting

        return max(basic, accounting.eer_floor(self.parts))

    def repeat(self, n: int, unit: str | None = None) -> Guarantee:
        """The claim of ``n`` units or releases together, restated for ``unit`` (same or larger)."""
        n = count("n", n)
        unit = self.unit if unit is None else unit
        if unit not in UNITS or UNITS.index(unit) < UNITS.index(self.unit):
            raise PrivacyError(f"cannot restate a {self.unit}-level claim for {unit!r}: a larger unit is needed")
        if self.central and unit != self.unit:
            raise PrivacyError(
                f"a claim about one {self.unit} of a training set does not add up for a {unit}: "
                f"group the partition or the sampling by {unit}"
            )
        lifted = self.unit in ("frame", "segment") and unit != self.unit
        return replace(
            self,
            parts=tuple(replace(part, times=part.times * n) for part in self.parts),
            unit=unit,
            adjacency=self.adjacency if unit == self.unit else ADJACENCY[unit],
            n_releases=self.n_releases if lifted else self.n_releases * n,
            num_units=None if unit != self.unit else self.num_units,
        )

    def to_unit(self, unit: str) -> Guarantee:
        """Restate for a larger unit, using the number of units the released object holds."""
        if unit == self.unit:
            return self
        if self.num_units is None:
            raise PrivacyError(f"how many {self.unit}s one {unit} has is not known: use .repeat(n, {unit!r})")
        return self.repeat(self.num_units, unit)

    def compose(self, other: Guarantee) -> Guarantee:
        """Both objects released together. Claims about different units or adjacencies do not add."""
        for what in ("unit", "adjacency"):
            if getattr(self, what) != getattr(other, what):
                raise PrivacyError(
                    f"cannot add claims of different {what}: {getattr(self, what)!r} and {getattr(other, what)!r}; "
                    "restate the first with .repeat(n, unit)"
                )
        if not (self.parts and other.parts):
            reason = self.reason if not self.parts else other.reason
            return replace(Guarantee.none(reason, self.unit), adjacency=self.adjacency)
        return replace(
            self,
            parts=_merge(self.parts + other.parts),
            mechanism=" and ".join(_union((self.mechanism,), (other.mechanism,))),
            conditional_on=_union(self.conditional_on, other.conditional_on),
            public_side_info=_union(self.public_side_info, other.public_side_info),
            not_covered=_union(self.not_covered, other.not_covered),
            n_releases=max(self.n_releases, other.n_releases),
            num_units=self.num_units if self.num_units == other.num_units else None,
            sampler=max(self.sampler, other.sampler, key=SAMPLERS.index),
        )

    def sentence(self, delta: float = 1e-6) -> str:
        """The claim in English; refuses to state a floor that is vacuous."""
        from dpanon.privacy import wording

        return wording.sentence(self, delta)

    def __str__(self) -> str:
        return self.sentence()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; ``kind`` and ``params`` are stated beside the parts they follow from."""
        record: dict[str, Any] = {"schema": SCHEMA, "kind": self.kind, "params": self.params}
        for field in fields(self):
            value = getattr(self, field.name)
            record[field.name] = list(value) if isinstance(value, tuple) else value
        record["parts"] = [_part_record(part) for part in self.parts]
        return record

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Guarantee:
        """Read and check what ``to_json`` wrote; anything else is a PrivacyError."""
        try:
            record = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise PrivacyError(f"not a guarantee in JSON: {error}") from error
        return cls.from_dict(record)

    @classmethod
    def from_dict(cls, record: Any) -> Guarantee:
        """As ``from_json``, of an object already parsed."""
        from dpanon.privacy import wording

        try:
            values = wording.checked_record(record, [field.name for field in fields(cls)])
            values["parts"] = tuple(Part(**part) for part in values["parts"])
            guarantee = cls(**values)
            said, found = (record["kind"], record["params"]), (guarantee.kind, guarantee.params)
        except PrivacyError:
            raise
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise PrivacyError(f"not a guarantee: {error}") from error
        if said != found:
            raise PrivacyError(f"a guarantee that says {said} has parts that give {found}")
        return guarantee

    def _basic_epsilon(self) -> float:
        return math.fsum(part.times * part.value for part in self.parts)


def _part_record(part: Part) -> dict[str, Any]:
    """``mass``, ``rate`` and ``teachers`` are there only where they say something."""
    record: dict[str, Any] = {f.name: getattr(part, f.name) for f in fields(part)}
    for name in [*(() if part.mass else ("mass",)), *(() if part.family == "sampled" else ("rate", "teachers"))]:
        del record[name]
    return record


def _log_affinity(part: Part) -> float:
    """ln of the Bhattacharyya coefficient of the dominating pair; products over compositions."""
    if part.family == "gaussian":
        return -part.value * part.value / 8.0
    if part.family == "sampled":
        return 0.0  # no shortcut: the loss distribution decides
    half = part.value / 2.0
    if part.family == "laplace":
        return math.log1p(half) - half
    if part.family == "response":
        return math.log(max(2.0 * part.mass * math.exp(-half), 1.0 - part.mass * math.expm1(-half) ** 2))
    return math.log(2.0) - half - math.log1p(math.exp(-2.0 * half))  # 1 / cosh


def _merge(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Equal mechanisms counted together."""
    times: dict[Part, int] = {}
    for part in parts:
        one = replace(part, times=1)
        times[one] = times.get(one, 0) + part.times
    return tuple(replace(one, times=n) for one, n in times.items())


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in dict.fromkeys(first + second) if word)
