"""Which teacher is trained on which utterance: disjoint parts (PATE), or Poisson sub-samples that overlap (PSN).

The unit that is protected (an utterance with its augmented copies, or a speaker with all utterances) goes to teachers
as a whole. In a disjoint partition its teacher follows from its name alone, so to add or remove it moves no other; in
a Poisson one independent secret coins say which teachers have it. A part may be empty: to refuse it would tell about
the set. An augmented copy is tied to its parent by the optional table ``utt2parent`` (``<utt> <parent utt>``; a
parent is its own).
"""

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpanon.data.data_dir import DataDir
from dpanon.errors import DataDirError
from dpanon.privacy import PrivacyError
from dpanon.privacy.checks import count, positive

KINDS = ("disjoint", "poisson")
UNITS = ("utterance", "speaker")
PARENTS = "utt2parent"


@dataclass(frozen=True)
class Partition:
    """Parts of a private set, one for each teacher. Made by ``disjoint`` or ``poisson``; checked on making and reading.

    Attributes:
        unit: ``utterance`` or ``speaker``: what is protected.
        rate: gamma of the Poisson coins; None for disjoint parts.
        cap: most teachers that may hear one speaker; T when there is no cap.
        units: utterance -> its unit. parts: utterances of each teacher.
    """

    kind: str
    unit: str
    rate: float | None
    cap: int
    units: dict[str, str]
    parts: tuple[tuple[str, ...], ...]

    def __post_init__(self):
        if self.kind not in KINDS or self.unit not in UNITS or (self.kind == "poisson") != (self.rate is not None):
            raise PrivacyError(f"no such partition: {self.kind!r} by {self.unit!r} at rate {self.rate!r}")
        count("teachers", self.teachers)
        count("cap", self.cap)
        _check_parts(self.parts, self.units)
        most = self.most_teachers
        if self.kind == "disjoint" and most > 1:
            raise PrivacyError(f"the parts overlap: one {self.unit} is in {most} of them; PATE counts on one")
        if most > self.cap:
            raise PrivacyError(f"one {self.unit} is in {most} parts; the cap is {self.cap}")

    @property
    def teachers(self) -> int:
        return len(self.parts)

    @property
    def most_teachers(self) -> int:
        """Largest number of parts that one unit is in. A property of the private set: not for publication."""
        found = Counter(unit for part in self.parts for unit in {self.units[utt] for utt in part})
        return max(found.values(), default=0)

    def statement(self) -> dict:
        """What may be said in public: how it was made, not who is where."""
        return {"kind": self.kind, "unit": self.unit, "teachers": self.teachers, "rate": self.rate, "cap": self.cap}


def disjoint(data: DataDir, teachers: int, unit: str = "utterance") -> Partition:
    """Every unit in one part, by a hash of its name."""
    teachers, units = _enough(teachers, data, unit)
    parts: list[list[str]] = [[] for _ in range(teachers)]
    for utt, name in units.items():
        parts[_hash(name) % teachers].append(utt)
    return Partition("disjoint", unit, None, teachers, units, tuple(map(tuple, parts)))


def poisson(data: DataDir, teachers: int, rate: float, unit: str = "utterance", cap: int | None = None) -> Partition:
    """Every unit in every part with probability ``rate``, by coins of the operating system, drawn once.

    With ``cap``, only that many parts, chosen by secret lot for each speaker, may get anything of a speaker: it
    lowers the chance of a unit to be in many parts, so what is accounted for T teachers holds all the more.
    """
    teachers, units = _enough(teachers, data, unit)
    if positive("rate", rate) > 1.0:
        raise PrivacyError(f"rate must be in (0, 1], got {rate}")
    cap = teachers if cap is None else count("cap", cap)
    if cap > teachers:
        raise PrivacyError(f"cap must be at most the {teachers} teachers, got {cap}")
    coin = secrets.SystemRandom()
    speakers = dict.fromkeys(data.speaker(utt) for utt in units)
    allowed = {spk: frozenset(coin.sample(range(teachers), cap)) for spk in speakers}
    drawn: dict[str, frozenset[int]] = {}
    parts: list[list[str]] = [[] for _ in range(teachers)]
    for utt, name in units.items():
        if name not in drawn:
            chosen = [k for k in range(teachers) if coin.random() < rate]
            drawn[name] = allowed[data.speaker(utt)].intersection(chosen)
        for k in drawn[name]:
            parts[k].append(utt)
    return Partition("poisson", unit, float(rate), cap, units, tuple(map(tuple, parts)))


def units_of(data: DataDir, unit: str) -> dict[str, str]:
    """Utterance -> the unit that it is part of: its parent, or its speaker."""
    if unit not in UNITS:
        raise PrivacyError(f"the unit of a private set is one of {', '.join(UNITS)}, got {unit!r}")
    parents = parents_of(data)
    for utt, parent in parents.items():
        if data.speaker(utt) != data.speaker(parent):
            raise DataDirError(f"{data.path}/{PARENTS}: {utt!r} and its parent {parent!r} are of different speakers")
    return {utt: parents[utt] if unit == "utterance" else data.speaker(utt) for utt in data.utts}


def parents_of(data: DataDir) -> dict[str, str]:
    """Utterance -> the utterance it is a copy of; itself if it is none."""
    table = data.table(PARENTS) if data.has(PARENTS) else {}
    found = {utt: table.get(utt, utt) for utt in data.utts}
    for utt, parent in found.items():
        if found.get(parent) != parent:
            raise DataDirError(f"{data.path}/{PARENTS}: the parent of {utt!r} is {parent!r}, which is no parent here")
    return found


def require_apart(private: DataDir, other: DataDir) -> None:
    """PrivacyError if an utterance of ``other`` is one of ``private``: by name, by parent, or by its samples' file."""
    hidden = set(private.utts) | set(parents_of(private).values())
    files = {private.wav(utt).resolve() for utt in private.utts}
    parents = parents_of(other)
    for utt in other.utts:
        if utt in hidden or parents[utt] in hidden or other.wav(utt).resolve() in files:
            raise PrivacyError(
                f"{other.path}: {utt!r} is an utterance of the private set {private.path}: a student may not hear it, "
                "nor teachers be asked about it"
            )


def write_partition(partition: Partition, path: Path) -> None:
    """Beside, then renamed. The file is as private as the speech: it says who is where."""
    record = partition.statement() | {"units": partition.units, "parts": partition.parts}
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(f".{path.name}.tmp")
    tmp.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")
    tmp.chmod(0o600)
    tmp.replace(path)


def read_partition(path: Path, data: DataDir | None = None) -> Partition:
    """Read and check again; with ``data``, also that it is a partition of this set, units as they are there."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        parts = tuple(tuple(part) for part in record["parts"])
        partition = Partition(
            record["kind"], record["unit"], record["rate"], record["cap"], dict(record["units"]), parts
        )
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise DataDirError(f"{path}: not a partition of steps/partition_data.sh ({error!r})") from error
    if data is not None and units_of(data, partition.unit) != partition.units:
        raise PrivacyError(f"{path}: is not a partition of {data.path} by {partition.unit}; make it again")
    return partition


def _check_parts(parts: Sequence[Sequence[str]], units: dict[str, str]) -> None:
    members: dict[str, set[str]] = {}
    for utt, name in units.items():
        members.setdefault(name, set()).add(utt)
    for number, part in enumerate(parts, 1):
        have = set(part)
        if len(have) != len(part) or not have <= units.keys():
            raise PrivacyError(f"part {number} has an utterance twice, or one that is not in the private set")
        for name in {units[utt] for utt in part}:
            if not members[name] <= have:
                raise PrivacyError(f"part {number} has some, but not all utterances of {name!r}: units stay whole")


def _enough(teachers: int, data: DataDir, unit: str) -> tuple[int, dict[str, str]]:
    units = units_of(data, unit)
    if count("teachers", teachers) > (num := len(set(units.values()))):
        raise PrivacyError(f"{data.path}: {teachers} teachers for {num} units ({unit}): take fewer teachers")
    return teachers, units


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"dpanon partition {name}".encode()).digest()[:8], "big")
