"""What is to be anonymized and under which names: of a file, a folder or a data directory.

No name of a source file gets into a folder's release unless asked for: the names are ``a-`` and 8 random
hexadecimal digits. A data directory keeps its utterance ids, since its tables speak of them.
"""

import glob
import hashlib
import os
import secrets
import stat
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from dpanon.data.data_dir import DataDir
from dpanon.errors import UsageError

READ = "wav wave wavex rf64 w64 flac ogg oga opus mp3 aif aiff aifc au snd caf nist sph sphere".split()
REFUSED = "m4a m4b aac wma amr awb mp2 mp4 m4v mov avi mkv webm 3gp ac3 ape wv spx gsm voc raw pcm sd2".split()
EXTENSIONS = frozenset(f".{name}" for name in READ + REFUSED)  # the others hold no audio and are passed over
PARTIAL = ".partial"  # beside OUT: where a release grows until it is complete


@dataclass(frozen=True)
class Source:
    """One recording. ``key`` tells it from the others; ``utt`` is its public name, '' for a random one."""

    key: str
    path: Path
    utt: str


@dataclass(frozen=True)
class Plan:
    """``kind`` is file, folder or data; ``troubles`` are (path, reason) of what cannot even be tried.

    ``part`` is (K, N) for every Nth recording of a data directory from the Kth on: one job of an array.
    """

    kind: str
    source: Path
    out: Path
    sources: tuple[Source, ...]
    troubles: tuple[tuple[Path, str], ...] = ()
    passed_over: tuple[Path, ...] = ()
    data: DataDir | None = None
    part: tuple[int, int] | None = None

    @property
    def partial(self) -> Path:
        middle = "" if self.part is None else ".part{}of{}".format(*self.part)
        return self.out.with_name(f"{self.out.name}{middle}{PARTIAL}")

    @property
    def whole(self) -> "Plan":
        """That of which this is a part."""
        return replace(self, part=None)

    def parts_begun(self) -> list[Path]:
        """Unfinished releases of parts, beside OUT."""
        found = self.out.parent.glob(f"{glob.escape(self.out.name)}.part*of*{PARTIAL}")
        return sorted(path for path in found if (path / "run.json").is_file())


def make_plan(source: Path, out: Path, keep_names: bool = False, part: tuple[int, int] | None = None) -> Plan:
    """Look at IN and OUT; UsageError for what cannot be meant. Nothing is written, no audio is read."""
    if not source.exists():
        raise UsageError(f"{source}: no such file or directory")
    out = Path(os.path.abspath(out))
    if not out.name:
        raise UsageError(f"{out}: choose a directory or file for the output that does not exist yet")
    _check_places(source, out)
    if source.is_file():
        return _plan_file(source, out)
    if not source.is_dir():
        raise UsageError(f"{source}: is neither a file nor a directory")
    if (source / "wav.scp").exists():
        plan = _plan_data(source, out)
    else:
        plan = _plan_folder(source, out, keep_names)
    for item in plan.sources:
        if _within(_real(item.path), _real(out)) or _within(_real(item.path), _real(plan.partial)):
            raise UsageError(f"{item.path} lies where the output would go; choose another OUT")
    if part is not None:
        if plan.kind != "data":
            raise UsageError(f"--part is of a data directory, and {source} has no wav.scp")
        mine = slice(part[0] - 1, None, part[1])
        plan = replace(plan, sources=plan.sources[mine], troubles=plan.troubles[mine], part=part)
    return plan


def random_name(key: str, taken: set[str], seed: int | None = None) -> str:
    """A public name that says nothing of ``key``; with a ``seed``, for tests, always the same one."""
    tries = 0
    while True:
        name = f"a-{secrets.token_hex(4)}"
        if seed is not None:
            name = f"a-{hashlib.sha256(f'{seed}|{tries}|{key}'.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
        if name not in taken:
            return name
        tries += 1


def printable(path: str | Path) -> str:
    """A path on one line, whatever is in its name."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(path))


def regular(path: Path) -> str:
    """'' for a file that can be opened without waiting, else what it is (a pipe would block for ever)."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if stat.S_ISREG(mode) else "not a regular file"


def _plan_file(source: Path, out: Path) -> Plan:
    if out.suffix.lower() == ".wav":
        return Plan("file", source, out, (Source(source.name, source, out.name[: -len(".wav")]),))
    if out.suffix.lower() in EXTENSIONS:
        raise UsageError(f"{out}: only WAV is written; name it {out.with_suffix('.wav').name}")
    return Plan("folder", source, out, (Source(source.name, source, ""),))


def _plan_data(source: Path, out: Path) -> Plan:
    data = DataDir.read(source)
    troubles, sources = _without_repeats([Source(utt, data.wav(utt), utt) for utt in data.utts])
    return Plan("data", source, out, sources, tuple(troubles), (), data)


def _plan_folder(source: Path, out: Path, keep_names: bool) -> Plan:
    troubles: list[tuple[Path, str]] = []
    found: list[Path] = []
    other: list[Path] = []
    seen: set[str] = set()

    def unlisted(error: OSError) -> None:
        troubles.append((Path(error.filename), f"cannot be listed: {error.strerror}"))

    for folder, below, names in os.walk(source, onerror=unlisted, followlinks=True):
        if (real := os.path.realpath(folder)) in seen:  # a link to a folder above
            below.clear()
            continue
        seen.add(real)
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith("."):
                (found if path.suffix.lower() in EXTENSIONS else other).append(path)
    items = [Source(path.relative_to(source).as_posix(), path, "") for path in found]
    if keep_names:
        items = _named(items)
    repeats, sources = _without_repeats(items)
    if not sources and not troubles and not repeats:
        raise UsageError(
            f"{source}: no audio file in it ({len(other)} others); known are *.wav, *.flac, *.ogg, *.mp3 ..."
        )
    return Plan("folder", source, out, sources, (*troubles, *repeats), tuple(other))


def _named(items: list[Source]) -> list[Source]:
    """Relative names without extension; with it where two would become one."""
    stems = [item.key[: -len(item.path.suffix)] for item in items]
    shared = Counter(stem.casefold() for stem in stems)
    taken = set(shared)
    named = []
    for item, stem in zip(items, stems, strict=True):
        name = stem
        if shared[stem.casefold()] > 1:
            name = item.key
            while name.casefold() in taken:
                name += "_"
            taken.add(name.casefold())
        named.append(Source(item.key, item.path, name))
    return named


def _without_repeats(items: list[Source]) -> tuple[list[tuple[Path, str]], tuple[Source, ...]]:
    """The same file under two names would be released twice, which costs its privacy twice."""
    first: dict[tuple[int, int], Path] = {}
    kept, repeats = [], []
    for item in items:
        try:
            status = item.path.stat()
        except OSError:  # refused later, with its reason
            kept.append(item)
            continue
        same = first.setdefault((status.st_dev, status.st_ino), item.path)
        if same is item.path:
            kept.append(item)
        else:
            repeats.append((item.path, f"is the same file as {same}, and a second release would cost privacy twice"))
    return repeats, tuple(kept)


def _check_places(source: Path, out: Path) -> None:
    inside, outside = _real(source), _real(out)
    if inside == outside or (out.exists() and out.samefile(source)):
        raise UsageError(f"{out}: IN and OUT are the same")
    if source.is_dir() and _within(outside, inside):
        raise UsageError(f"{out} is inside of {source}; choose an OUT elsewhere")
    if _within(inside, outside) or _within(inside, _real(out.with_name(out.name + PARTIAL))):
        raise UsageError(f"{source} lies where the output would go; choose another OUT")


def _real(path: Path) -> Path:
    """Links resolved; the path need not exist."""
    return Path(os.path.realpath(path))


def _within(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
