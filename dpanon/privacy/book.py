"""What a ledger says: the form of its rows, their chain of hashes, and the totals that follow. No file is opened here.

A row is one line of canonical JSON (ASCII, no spaces, keys in the order of ``FIELDS``) that ends with the SHA-256 of
the rest of it; ``prev`` is the hash of the row before. A changed, removed, inserted or moved row breaks the chain.
Rows that are missing at the end do not: keep the ``head`` elsewhere to see that as well.

    header    first row: schema and a fingerprint of the key
    reserve   a release of ``guarantee`` about ``source``; it counts from here on, before its noise is drawn
    commit    what was reserved gets its name: the next draw for it is another release
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dpanon.privacy.checks import count, positive, probability
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import EXACT, Guarantee

SCHEMA = 1
FIELDS = {
    "header": ("n", "prev", "kind", "schema", "time", "key", "hash"),
    "reserve": ("n", "prev", "kind", "time", "release", "source", "speaker", "name", "guarantee", "hash"),
    "commit": ("n", "prev", "kind", "time", "release", "hash"),
}
DIGITS = 64  # of a hash in hexadecimal
UNITS = ("utterance", "speaker")
_HEX = frozenset("0123456789abcdef")


class LedgerError(PrivacyError):
    """The ledger cannot be read, written or believed; nothing may be released until that is mended."""


class CapError(PrivacyError):
    """A release would cost more than the cap allows. Nothing was drawn."""


class Account:
    """All releases about one recording or one speaker. The total is put together when it is asked for."""

    def __init__(self, unit: str = "utterance"):
        self.unit = unit
        self.releases = 0
        self._claims: dict[tuple[str, str], Guarantee] = {}  # (unit, adjacency): claims about others do not add
        self._words: set[str] = set()  # of the mechanisms in them
        self._new: list[Guarantee] = []  # not in them so far

    def add(self, guarantee: Guarantee) -> None:
        """One more release."""
        self._new.append(guarantee)
        self.releases += guarantee.n_releases

    def copy(self) -> Account:
        """One that later releases do not change."""
        copy = Account(self.unit)
        copy._claims, copy._words, copy._new = dict(self._claims), set(self._words), list(self._new)
        copy.releases = self.releases
        return copy

    @property
    def total(self) -> Guarantee:
        """One guarantee for all releases: parts add up, and with a release that claims nothing no claim is left.

        Where claims of several units or adjacencies came together, it has the largest unit and the parts of all.
        """
        while self._new:
            self._fold(self._new.pop())
        claims = sorted(self._claims.values(), key=lambda claim: UNITS.index(claim.unit), reverse=True)
        if not claims:
            raise PrivacyError("nothing was released: there is no total")
        total = claims[0]
        for claim in claims[1:]:
            total = total.compose(replace(claim, unit=total.unit, adjacency=total.adjacency))
        return replace(total, n_releases=self.releases)

    def _fold(self, guarantee: Guarantee) -> None:
        if self.unit == "speaker" and guarantee.unit == "utterance":
            guarantee = guarantee.repeat(1, "speaker")
        key, word = (guarantee.unit, guarantee.adjacency), guarantee.mechanism
        if (old := self._claims.get(key)) is not None:
            guarantee = old.compose(replace(guarantee, mechanism="") if word in self._words else guarantee)
        self._words.add(word)
        self._claims[key] = guarantee

    def epsilon(self, delta: float = 0.0) -> float:
        """Privacy loss of all releases together; infinite if one claims nothing or has noise that protects nothing."""
        total = self.total
        if not total.parts or total.sampler != EXACT:
            return math.inf
        try:
            basic = total.epsilon()
            return basic if delta == 0.0 else min(basic, total.epsilon(delta))
        except OverflowError:  # beyond floats
            return math.inf


@dataclass(frozen=True)
class Cap:
    """The most that all releases about one ``unit`` (utterance or speaker) may cost: epsilon at ``delta``."""

    epsilon: float
    unit: str = "utterance"
    delta: float = 0.0

    def __post_init__(self):
        positive("cap", self.epsilon)
        if self.unit not in UNITS:
            raise PrivacyError(f"a cap is per {' or '.join(UNITS)}, got {self.unit!r}")
        if isinstance(self.delta, bool) or self.delta != 0:
            probability("delta", self.delta)

    def check(self, account: Account) -> None:
        """CapError if ``account`` costs more than this; NaN would, too."""
        if account.releases == 0 or account.epsilon() <= self.epsilon:  # the tight one is never larger
            return
        cost = account.epsilon(self.delta)
        if not cost <= self.epsilon:
            at = f" at delta {self.delta:g}" if self.delta else ""
            raise CapError(
                f"over the cap: with this release all {account.releases} of the {self.unit} would cost epsilon "
                f"{cost:.6g}{at}, and {self.epsilon:g} is allowed; nothing was drawn"
            )


@dataclass(frozen=True)
class Reserved:
    """What is known of a release that was reserved and has not got its name."""

    source: str
    speaker: str | None
    guarantee: Guarantee


class Book:
    """The rows of a ledger up to some line, checked, and what they add up to."""

    def __init__(self) -> None:
        self.num_rows = 0
        self.head = ""
        self.heads: dict[str, int] = {}  # hash -> line
        self.key = ""
        self.utterances: dict[str, Account] = {}
        self.speakers: dict[str, Account] = {}
        self.owners: dict[str, str | None] = {}  # source -> speaker of the last release that named one
        self.names: dict[str, str] = {}
        self.reserved: dict[str, Reserved] = {}
        self.torn = 0  # bytes after the last row: a write that was cut short, which never counted

    def encode(self, kind: str, **values: Any) -> bytes:
        """The next row, ready to be appended to the file; ``add`` makes it part of the book."""
        row = {"n": self.num_rows, "prev": self.head, "kind": kind, **values}
        return _line({name: row[name] for name in FIELDS[kind][:-1]})

    def account(self, who: str, unit: str = "utterance") -> Account:
        """A copy of an utterance's or a speaker's account, by keyed hash; empty if there is none."""
        account = (self.utterances if unit == "utterance" else self.speakers).get(who)
        return Account(unit) if account is None else account.copy()

    def add(self, line: bytes) -> None:
        """Check one row, without its end of line, and count it. LedgerError says which line it is and what is wrong."""
        try:
            self._add(line)
        except LedgerError as error:
            raise LedgerError(f"line {self.num_rows + 1}: {error}") from error
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError) as error:
            said = str(error)[:200] if isinstance(error, PrivacyError) else "not a row of a ledger"
            raise LedgerError(f"line {self.num_rows + 1}: {said}") from error

    def _add(self, line: bytes) -> None:
        row = json.loads(line.decode("ascii"), parse_constant=_no_constant)
        if not isinstance(row, dict) or tuple(row) != FIELDS.get(str(row.get("kind"))):
            raise LedgerError("not a row of a ledger")
        said = row.pop("hash")
        if _line(row) != line + b"\n":
            raise LedgerError("its hash is not that of what it holds: the row was changed")
        if row["prev"] != self.head or row["n"] != self.num_rows or isinstance(row["n"], bool):
            raise LedgerError("does not follow the line before: rows were removed, inserted or moved")
        if (row["kind"] == "header") != (self.num_rows == 0):
            raise LedgerError("the header is the first row, and only that")
        count("time", row["time"], 0)
        getattr(self, f"_add_{row['kind']}")(row)
        self.num_rows, self.head = self.num_rows + 1, said
        self.heads[said] = self.num_rows

    def _add_header(self, row: Mapping[str, Any]) -> None:
        if row["schema"] != SCHEMA or isinstance(row["schema"], bool):
            raise LedgerError(f"schema {row['schema']!r} is not {SCHEMA}")
        self.key = _hash("key", row["key"])

    def _add_reserve(self, row: Mapping[str, Any]) -> None:
        token, source = _hash("release", row["release"]), _hash("source", row["source"])
        speaker = None if row["speaker"] is None else _hash("speaker", row["speaker"])
        if not isinstance(row["name"], str):
            raise LedgerError("name has the wrong type")
        if token in self.reserved:
            raise LedgerError("reserves a second time what is reserved")
        guarantee = _guarantee(json.dumps(row["guarantee"]))
        if guarantee.unit not in UNITS:
            raise LedgerError(f"a guarantee of one {guarantee.unit} does not say what the release costs")
        self.reserved[token] = Reserved(source, speaker, guarantee)
        self.utterances.setdefault(source, Account()).add(guarantee)
        self.owners[source] = speaker or self.owners.get(source)
        if speaker is not None:
            self.speakers.setdefault(speaker, Account("speaker")).add(guarantee)
        if row["name"]:
            self.names[source] = row["name"]

    def _add_commit(self, row: Mapping[str, Any]) -> None:
        if self.reserved.pop(_hash("release", row["release"]), None) is None:
            raise LedgerError("commits what is not reserved")


def parse(data: bytes) -> Book:
    """All rows of a ledger. What follows the last end of line is no row: its length is ``torn``."""
    book = Book()
    *lines, rest = data.split(b"\n")
    for line in lines:
        book.add(line)
    book.torn = len(rest)
    return book


@lru_cache(maxsize=4096)  # many rows promise the same
def _guarantee(text: str) -> Guarantee:
    return Guarantee.from_json(text)


def _line(row: Mapping[str, Any]) -> bytes:
    """Canonical JSON with the hash of the rest at the end."""
    text = json.dumps(row, separators=(",", ":"), allow_nan=False)
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return f'{text[:-1]},"hash":"{digest}"}}\n'.encode("ascii")


def _hash(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) != DIGITS or not _HEX.issuperset(value):
        raise LedgerError(f"{name} is not a hash")
    return value


def _no_constant(text: str) -> float:
    raise LedgerError(f"{text} is no number")
