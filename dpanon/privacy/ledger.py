"""The budget ledger: what was released about whom, how often, and what it sums to. Append-only and crash-safe.

    with Ledger("budget.jsonl", caps=[Cap(2000)]) as ledger:
        receipt = ledger.reserve(samples, guarantee, speaker="spk1")  # synced to disk; CapError if it is too much
        value = draw_noise()                                          # only now
        ledger.commit(receipt)                                        # synced to disk
        publish(value)                                                # only now

A reservation counts at once, whatever becomes of it. So a crash between any two of these lines may count a release
that never was; it never forgets one. A reservation without a commit can be taken up again under the same ``release``
name, for the same recording and guarantee, and counts once: what was drawn for it never got a name.

A row is in the ledger when it is synced, end of line included. A line without an end is a write that was cut short
(kill, full disk): the next writer cuts it off. One writer at a time holds the lock (``flock``, of one machine: do not
share a ledger over a network file system).

The rows hold no speech, no path and no name. Recordings and speakers are HMAC-SHA256 under a random key in
``LEDGER.key`` beside the ledger, readable by its owner only. Who has the ledger without the key learns how often, when
and under which guarantee something was released, and which releases are of one recording or speaker; not whose, even
with the recording at hand. Who has both can look a recording up, as the owner must.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from dpanon.privacy.book import SCHEMA, Account, Book, Cap, CapError, LedgerError, parse
from dpanon.privacy.checks import shaped
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import KEYED, Guarantee

__all__ = [
    "Account",
    "Book",
    "Cap",
    "CapError",
    "Ledger",
    "LedgerError",
    "hash_source",
    "hash_speaker",
    "parse",
    "read",
    "read_key",
]

_KEY_BYTES = 32


class Ledger:
    """A ledger open for writing; made when there is none. Threads, forks and other processes may write, too.

    Args:
        path: the file; ``path.key`` beside it holds the key of the hashes.
        caps: refuse what would cost more.

    Raises:
        LedgerError: the file or its key cannot be read or written, or a row is wrong; says where.
    """

    def __init__(self, path: str | os.PathLike, caps: Iterable[Cap] = ()):
        self.path = Path(os.path.realpath(path))
        self.caps = tuple(caps)
        self._book, self._end = Book(), 0  # checked so far: rows and bytes
        self._file: tuple[int, int] | None = None
        self._closed = False
        self._mutex, self._pid = threading.Lock(), os.getpid()
        with self._locked() as fd:
            self._key = self._begin(fd) if self._book.num_rows == 0 else self._find_key(fd)

    def reserve(
        self, samples: Any, guarantee: Guarantee, speaker: str | None = None, release: str | None = None, name: str = ""
    ) -> str:
        """Count a release, before its noise is drawn.

        Args:
            samples: the decoded recording (L,), floats of full scale 1.0, 16 kHz. What is equal in 16 bits is the
                same recording, whatever file it came from.
            guarantee: what the release will promise: of the utterance, of the speaker, or of a frame with
                ``num_units``.
            speaker: who speaks; None if it is not known, and then no speaker's total has it.
            release: tells this release from others of the recording; random if None.
            name: kept as it is, for people. Empty unless they ask for it.

        Returns:
            The receipt that ``commit`` takes.

        Raises:
            CapError: the total would be over a cap. Nothing was written.
            PrivacyError: bad samples or guarantee, a closed ledger. Nothing was written.
            LedgerError: the row could not be written. It does not count, and nothing may be drawn.
        """
        guarantee = _countable(guarantee)
        if not isinstance(name, str) or not isinstance(speaker, str | None) or not isinstance(release, str | None):
            raise PrivacyError("speaker, release and name are strings")
        if speaker is None and any(cap.unit == "speaker" for cap in self.caps):
            raise CapError("a cap per speaker needs to know who speaks; nothing was drawn")
        source, who = hash_source(self._key, samples), None if speaker is None else hash_speaker(self._key, speaker)
        secret = os.urandom(_KEY_BYTES) if release is None else release.encode("utf-8", "surrogateescape")
        token = _hmac(self._key, "release", source.encode() + secret)
        with self._locked() as fd:
            book = self._book
            again = book.reserved.get(token)
            if again is not None and (again.source, again.speaker, again.guarantee) != (source, who, guarantee):
                raise LedgerError(f"{self.path}: the same release was reserved with another guarantee or speaker")
            for cap in self.caps:
                account = book.account(source if cap.unit == "utterance" else who or "", cap.unit)
                if again is None:
                    account.add(guarantee)
                cap.check(account)
            if again is None:
                about = {"release": token, "source": source, "speaker": who, "name": name}
                self._append(fd, "reserve", **about, guarantee=guarantee.to_dict())
        return token

    def commit(self, receipt: str) -> None:
        """Before what was reserved gets its name. LedgerError if it is not reserved, or cannot be written."""
        with self._locked() as fd:
            if receipt not in self._book.reserved:
                raise LedgerError(f"{self.path}: this release is not reserved, or was committed before")
            self._append(fd, "commit", release=receipt)

    def of_utterance(self, samples: Any) -> Account:
        """All releases of a recording so far."""
        source = hash_source(self._key, samples)
        with self._locked():
            return self._book.account(source)

    def of_speaker(self, name: str) -> Account:
        """All releases of a speaker so far."""
        who = hash_speaker(self._key, name)
        with self._locked():
            return self._book.account(who, "speaker")

    @property
    def head(self) -> str:
        """Hash of the last row. Kept elsewhere, it shows later whether rows are missing at the end."""
        with self._locked():
            return self._book.head

    def close(self) -> None:
        """From here on everything is a PrivacyError."""
        self._closed = True

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Alone with the file, open and read to its end. Opened anew each time: nothing is shared with a fork."""
        if self._closed:
            raise PrivacyError(f"{self.path}: the ledger is closed; nothing can be released under it")
        if self._pid != os.getpid():  # another thread may have held the lock when the process forked
            self._mutex, self._pid = threading.Lock(), os.getpid()
        with self._mutex, _opened(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, fcntl.LOCK_EX) as fd:
            self._catch_up(fd)
            yield fd

    def _catch_up(self, fd: int) -> None:
        """Check the rows that others wrote since; cut off what a write left that was cut short."""
        status, named = os.fstat(fd), os.stat(self.path)
        file = (status.st_dev, status.st_ino)
        if file != (named.st_dev, named.st_ino) or self._file not in (None, file) or status.st_size < self._end:
            raise LedgerError(f"{self.path}: was replaced or shortened while it was in use")
        self._file = file
        *lines, rest = _read(fd, self._end).split(b"\n")
        for line in lines:
            _checked(self.path, self._book.add, line)
            self._end += len(line) + 1
        if rest:
            _cut(fd, self._end)

    def _append(self, fd: int, kind: str, **values: Any) -> None:
        """Write a row and sync it; if that fails, it is as if nothing had been written."""
        line = self._book.encode(kind, time=int(time.time()), **values)
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(fd, left) :]
            os.fsync(fd)
        except BaseException as error:
            with suppress(OSError):
                _cut(fd, self._end)  # else the next writer does, if the line has no end
            if isinstance(error, OSError):
                said = f"{self.path}: cannot be written: {error.strerror}; nothing is released without it"
                raise LedgerError(said) from error
            raise
        self._book.add(line[:-1])
        self._end += len(line)

    def _begin(self, fd: int) -> bytes:
        """Header, then key: killed in between, it begins again."""
        if os.path.lexists(self._key_file):
            raise LedgerError(
                f"{self.path}: is empty or gone, but not its key {self._key_file.name}: restore the ledger, or remove "
                "the key if nothing was ever released under it"
            )
        key = os.urandom(_KEY_BYTES)
        self._append(fd, "header", schema=SCHEMA, key=_fingerprint(key))
        tmp = self._key_file.with_name(f".{self._key_file.name}.tmp")
        try:
            tmp.unlink(missing_ok=True)
            with open(os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
                stream.write(f"{key.hex()}\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(tmp, self._key_file)
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except OSError as error:
            with suppress(OSError):
                tmp.unlink(missing_ok=True)
            raise LedgerError(f"{self._key_file}: cannot be written: {error.strerror}") from error
        return key

    def _find_key(self, fd: int) -> bytes:
        if self._book.num_rows == 1 and not os.path.lexists(self._key_file):
            _cut(fd, 0)
            self._book, self._end = Book(), 0
            return self._begin(fd)
        return read_key(self.path, self._book)

    @property
    def _key_file(self) -> Path:
        return key_file(self.path)


def read(path: str | os.PathLike) -> Book:
    """All rows of a ledger, checked. Nothing is changed, no key is needed. LedgerError says where it is wrong."""
    path = Path(path)
    with _opened(path, os.O_RDONLY | os.O_NONBLOCK, fcntl.LOCK_SH) as fd:
        data = _read(fd, 0)
    book = _checked(path, parse, data)
    if book.num_rows == 0:
        raise LedgerError(f"{path}: is empty: it has not even a header")
    return book


def key_file(path: str | os.PathLike) -> Path:
    path = Path(os.path.realpath(path))
    return path.with_name(f"{path.name}.key")


def read_key(path: str | os.PathLike, book: Book) -> bytes:
    """The key of a ledger. LedgerError if it is missing, damaged or of another ledger."""
    file = key_file(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        said = "without its key no recording can be found again; restore it, or begin another ledger"
        raise LedgerError(f"{file}: {error.strerror}: {said}") from error
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES or _fingerprint(key) != book.key:
        raise LedgerError(f"{file}: is not the key of {Path(path).name}; restore it, or begin another ledger")
    return key


def hash_source(key: bytes, samples: Any) -> str:
    """The ledger's word for a recording (L,): keyed hash of its samples, rounded to 16 bits."""
    values = shaped("samples", samples, "(L,)", None)
    if not np.isfinite(values).all():
        raise PrivacyError("samples are NaN or infinite: no release of them can be counted")
    return _hmac(key, "source", np.clip(np.rint(values * 32768.0), -32768, 32767).astype("<i2").tobytes())


def hash_speaker(key: bytes, name: str) -> str:
    """The ledger's word for a speaker."""
    return _hmac(key, "speaker", name.encode("utf-8", "surrogateescape"))


def _countable(guarantee: Any) -> Guarantee:
    """As it will be read again, restated for the utterance or the speaker. PrivacyError for what cannot be counted."""
    if not isinstance(guarantee, Guarantee):
        raise PrivacyError(f"a ledger counts a Guarantee, got {type(guarantee).__name__}")
    if guarantee.sampler == KEYED:
        raise PrivacyError("keyed noise can be repeated by anyone: its output is no release, and is not recorded")
    if guarantee.unit == "frame":
        guarantee = guarantee.to_unit("utterance")
    try:
        return Guarantee.from_json(json.dumps(guarantee.to_dict(), allow_nan=False))
    except (ValueError, TypeError, OverflowError) as error:
        raise PrivacyError(f"a guarantee that cannot be written down cannot be counted: {error}") from error


def _fingerprint(key: bytes) -> str:
    return _hmac(key, "key", b"")


def _hmac(key: bytes, what: str, data: bytes) -> str:
    return hmac.new(key, f"dpanon ledger {what}\0".encode() + data, hashlib.sha256).hexdigest()


@contextmanager
def _opened(path: Path, flags: int, lock: int) -> Iterator[int]:
    """The file under its lock. What goes wrong with it, also in the body, is a LedgerError."""
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise LedgerError(f"{path}: not a regular file")
        fd = os.open(path, flags, 0o600)
        try:
            fcntl.flock(fd, lock)
            yield fd
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)  # a fork in between holds a copy of fd, and would keep the lock
            os.close(fd)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error


def _read(fd: int, start: int) -> bytes:
    parts = []
    while part := os.pread(fd, 1 << 20, start):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _cut(fd: int, end: int) -> None:
    os.ftruncate(fd, end)
    os.fsync(fd)


def _checked(path: Path, check: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return check(data)
    except LedgerError as error:
        raise LedgerError(f"{path}: {error}") from error
