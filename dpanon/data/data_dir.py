"""The Kaldi data directory, tightened: what a set of utterances is, on disk.

    wav.scp          <utt> <path>         one file each; absolute, or relative to the directory
    utt2spk          <utt> <spk>          a speaker is a person and the prefix of the utterance id
    spk2utt          <spk> <utt> ...      the same, turned round
    utt2num_samples  <utt> <number>       as decoded, at 16 kHz
    text             <utt> <words>        optional, as the tables of arrays (f0.scp, xvector.scp, ...)
    spk2gender       <spk> f|m|u          optional
    trials           <spk> <utt> target|nontarget    optional; the speaker may be enrolled elsewhere
    enrolls          <utt>                optional; the utterances for enrolment

Every table is UTF-8, sorted as by LC_ALL=C, unique, and has the ids of utt2spk, no more and no fewer. A line is
split once, at the first blank: a path may hold blanks and any letters. A relative path lets a set move as a whole.
All of this is checked on reading, for a table of arrays when it is asked for.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpanon.data.audio import num_samples
from dpanon.errors import DataDirError

REQUIRED = ("wav.scp", "utt2spk", "spk2utt", "utt2num_samples")
WITHOUT_AUDIO = ("utt2spk", "spk2utt")  # of a set that holds arrays alone, such as protected embeddings
SEXES = ("f", "m", "u")
Trial = tuple[str, str, bool]

_BLANK = re.compile(r"[ \t]+")


class DataDir:
    """A valid data directory, as read. Make one by ``DataDir.read`` or ``write_data_dir``."""

    def __init__(self, path: Path, tables: dict[str, dict[str, str]], trials: list[Trial], enrolls: tuple[str, ...]):
        self.path = path
        self.utts = tuple(tables["utt2spk"])
        self.speakers = tuple(tables["spk2utt"])
        self.enrolls = enrolls
        self._tables = tables
        self._trials = trials

    @classmethod
    def read(
        cls, path: str | Path, allow_pipes: bool = False, final: Path | None = None, audio: bool = True
    ) -> "DataDir":
        """Read and check every table; DataDirError says where the first mistake is.

        ``final`` is the place the directory is going to have, while it is written elsewhere. Without ``audio`` a
        set needs no recordings: its arrays are what it is about.
        """
        path = Path(path)
        if not path.is_dir():
            raise DataDirError(f"{path}: no such data directory")
        for name in REQUIRED if audio else WITHOUT_AUDIO:
            if not (path / name).is_file():
                raise DataDirError(f"{path}: has no {name}; is it a data directory made by a prepare script?")
        tables = {f.name: read_table(f) for f in sorted(path.iterdir()) if _is_table(f)}
        trials = _read_trials(path / "trials", tables["utt2spk"]) if (path / "trials").exists() else []
        enrolls = _read_enrolls(path / "enrolls", tables["utt2spk"]) if (path / "enrolls").exists() else ()
        _check_speakers(path, tables)
        _check_values(path, tables, allow_pipes)
        return cls(final or path, tables, trials, enrolls)

    def __len__(self) -> int:
        return len(self.utts)

    def has(self, name: str) -> bool:
        if name in ("trials", "enrolls"):
            return bool(self._trials if name == "trials" else self.enrolls)
        return name in self._tables or _is_array_table(self.path / name)

    def table(self, name: str) -> dict[str, str]:
        """A copy of one table: id -> the rest of its line. A table of arrays is read and checked here."""
        if name not in self._tables:
            if not _is_array_table(self.path / name):
                raise DataDirError(f"{self.path}: has no {name}")
            rows = read_table(self.path / name)
            if what := differences(self.utts, rows):
                raise DataDirError(f"{self.path}/{name}: against the utterances of utt2spk, {what}")
            return rows
        return dict(self._tables[name])

    def tables(self) -> dict[str, dict[str, str]]:
        """Copies of all tables, paths made absolute: what ``write_data_dir`` takes for another directory."""
        arrays = [file.name for file in self.path.iterdir() if _is_array_table(file)]
        tables = {name: self.table(name) for name in sorted([*self._tables, *arrays])}
        for name in tables:
            if name.endswith(".scp"):
                tables[name] = {utt: self._absolute(value) for utt, value in tables[name].items()}
        return tables

    def wav(self, utt: str) -> Path:
        """The audio file, absolute or from here."""
        value = self._tables["wav.scp"][self._known(utt)]
        if is_pipe(value):
            raise DataDirError(f"{self.path}/wav.scp: {utt!r} is a command, not a file; resolve it to a file first")
        return self.path / value

    def speaker(self, utt: str) -> str:
        return self._tables["utt2spk"][self._known(utt)]

    def utterances(self, speaker: str) -> tuple[str, ...]:
        if speaker not in self._tables["spk2utt"]:
            raise DataDirError(f"{self.path}: no speaker {speaker!r}")
        return tuple(self._tables["spk2utt"][speaker].split(" "))

    def num_samples(self, utt: str) -> int:
        return int(self._tables["utt2num_samples"][self._known(utt)])

    def text(self, utt: str) -> str:
        return self.table("text")[self._known(utt)]

    def sex(self, speaker: str) -> str | None:
        """'f', 'm', or None where it is unknown."""
        sex = self._tables.get("spk2gender", {}).get(speaker)
        return None if sex == "u" else sex

    def trials(self) -> list[Trial]:
        """(enrolled speaker, trial utterance, is it the same person)."""
        if not self._trials:
            raise DataDirError(f"{self.path}: has no trials")
        return list(self._trials)

    def check_audio(self, decode: bool = False) -> None:
        """Every file exists; with ``decode``, it also reads, and is as long as utt2num_samples says."""
        for row, utt in enumerate(self.utts, 1):
            if is_pipe(self._tables["wav.scp"][utt]):
                continue
            if not self.wav(utt).is_file():
                raise DataDirError(f"{self.path}/wav.scp:{row}: {utt!r}: no such file: {self.wav(utt)}")
            if decode and (found := num_samples(self.wav(utt))) != self.num_samples(utt):
                raise DataDirError(
                    f"{self.path}/utt2num_samples:{row}: {utt!r}: expected the {found} samples that "
                    f"{self.wav(utt)} decodes to, found {self.num_samples(utt)}; prepare the set again"
                )

    def _known(self, utt: str) -> str:
        if utt not in self._tables["utt2spk"]:
            raise DataDirError(f"{self.path}: no utterance {utt!r}")
        return utt

    def _absolute(self, value: str) -> str:
        return value if is_pipe(value) else os.path.abspath(self.path / value)


def write_data_dir(
    path: str | Path,
    tables: Mapping[str, Mapping[str, object]],
    trials: Iterable[Trial] | None = None,
    enrolls: Iterable[str] | None = None,
    allow_existing: bool = False,
    allow_pipes: bool = False,
    audio: bool = True,
) -> DataDir:
    """Write the tables beside, validate them, and only then give the directory its name.

    spk2utt is made from utt2spk. A directory that is there with the same content (tables of arrays aside) stays,
    so that an interrupted preparation can go on; with other content it is refused. With ``allow_existing`` the
    files move one by one into a directory that is there (it may hold the audio); wav.scp goes in last, so that an
    interrupted write does not read as a set. ``audio`` as of ``DataDir.read``.
    """
    path = Path(path) if Path(path).name not in ("", "..") else Path(os.path.abspath(path))
    rows: dict[str, dict[str, str]] = {
        name: {str(key): str(value) for key, value in table.items()} for name, table in tables.items()
    }
    rows["spk2utt"] = _turn_round(rows.get("utt2spk", {}))
    trials = None if trials is None else sorted(trials)
    enrolls = None if enrolls is None else sorted(enrolls)
    if path.exists() and not allow_existing:
        there = DataDir.read(path, allow_pipes) if (path / "wav.scp").exists() else None
        wanted = {name: table for name, table in rows.items() if name == "wav.scp" or not name.endswith(".scp")}
        if there is None or (there._tables, there._trials, list(there.enrolls)) != (
            wanted,
            trials or [],
            enrolls or [],
        ):
            raise DataDirError(f"{path} exists, with other content; remove it to prepare it again")
        return there
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    tmp.mkdir(parents=True)
    try:
        for name, table in rows.items():
            _write_lines(tmp / name, (f"{key} {table[key]}" if table[key] else key for key in sorted(table)))
        if trials is not None:
            lines = (f"{spk} {utt} {'target' if same else 'nontarget'}" for spk, utt, same in trials)
            _write_lines(tmp / "trials", lines)
        if enrolls is not None:
            _write_lines(tmp / "enrolls", enrolls)
        try:
            made = DataDir.read(tmp, allow_pipes, final=path, audio=audio)
            if audio:
                made.check_audio()
        except DataDirError as error:  # the user knows the directory by its own name
            raise DataDirError(str(error).replace(str(tmp), str(path))) from error
        if path.exists():
            (path / "wav.scp").unlink(missing_ok=True)  # from here to its return the directory is no set
            for name in sorted(os.listdir(tmp), key=lambda name: name == "wav.scp"):
                os.replace(tmp / name, path / name)
            tmp.rmdir()
        else:
            tmp.rename(path)
    except BaseException:
        shutil.rmtree(tmp, ignore_errors=True)
        raise
    return DataDir.read(path, allow_pipes, audio=audio)


def read_table(path: str | Path) -> dict[str, str]:
    """id -> rest of the line, of one table, which is sorted and unique."""
    table: dict[str, str] = {}
    last = ""
    for row, line in enumerate(read_lines(path), 1):
        key, *value = _BLANK.split(line, maxsplit=1)
        check_id(key, f"{path}:{row}")
        if row > 1 and key <= last:  # code points sort as their UTF-8 bytes do
            raise DataDirError(f"{path}:{row}: {key!r} after {last!r}: not sorted or not unique (sort with LC_ALL=C)")
        if not value and Path(path).name != "text":
            raise DataDirError(f"{path}:{row}: found {line!r}: nothing after the id")
        table[key] = value[0] if value else ""
        last = key
    return table


def read_lines(path: str | Path) -> list[str]:
    """Lines of a table file, without their ends."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataDirError(f"{path}: cannot be read: {error.strerror}") from error
    if not data:
        raise DataDirError(f"{path}: is empty")
    rows = data.split(b"\n")
    if rows.pop():
        raise DataDirError(f"{path}:{len(rows) + 1}: no end of line: the file was cut short, make it again")
    lines = []
    for row, raw in enumerate(rows, 1):
        try:
            lines.append(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise DataDirError(f"{path}:{row}: not UTF-8: found byte 0x{raw[error.start]:02x}") from error
        if raw.endswith(b"\r"):
            raise DataDirError(f"{path}:{row}: found a carriage return at the end: convert the file with dos2unix")
    return lines


def check_id(name: str, where: str) -> None:
    """An id is one word and a file name: no blank, no slash, no leading dot or dash."""
    if not name or name[0] in ".-" or "/" in name or any(c.isspace() or not c.isprintable() for c in name):
        raise DataDirError(f"{where}: found {name!r} as an id: it may have no blank or slash, nor start with . or -")


def is_pipe(value: str) -> bool:
    return value.rstrip().endswith("|")


def differences(expected: Iterable[str], found: Iterable[str]) -> str:
    """'' if both have the same ids, else the first five of each kind, in words."""
    expected, found = set(expected), set(found)
    parts = []
    if missing := sorted(expected - found):
        parts.append(f"{len(missing)} of {len(expected)} have no row (e.g. {missing[:5]})")
    if extra := sorted(found - expected):
        parts.append(f"{len(extra)} are not in utt2spk (e.g. {extra[:5]})")
    return "; ".join(parts)


def _is_table(file: Path) -> bool:
    name = file.name
    return file.is_file() and (name in ("text", "wav.scp") or name.startswith(("utt2", "spk2")))


def _is_array_table(file: Path) -> bool:
    return file.suffix == ".scp" and file.name != "wav.scp" and not file.name.startswith(".") and file.is_file()


def _turn_round(utt2spk: Mapping[str, str]) -> dict[str, str]:
    spk2utt: dict[str, list[str]] = {}
    for utt in sorted(utt2spk):
        spk2utt.setdefault(utt2spk[utt], []).append(utt)
    return {spk: " ".join(utts) for spk, utts in spk2utt.items()}


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    lines = list(lines)
    if bad := [line for line in lines if "\n" in line]:
        raise DataDirError(f"{path}: found a line feed within {bad[0]!r}")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _check_speakers(path: Path, tables: dict[str, dict[str, str]]) -> None:
    utt2spk = tables["utt2spk"]
    for row, (utt, spk) in enumerate(utt2spk.items(), 1):
        check_id(spk, f"{path}/utt2spk:{row}")
        if utt != spk and not utt.startswith((f"{spk}-", f"{spk}_")):
            raise DataDirError(
                f"{path}/utt2spk:{row}: speaker {spk!r} is not the prefix of {utt!r}; name it '{spk}-{utt}'"
            )
    expected, found = _turn_round(utt2spk), tables["spk2utt"]
    for row, (spk, utts) in enumerate(found.items(), 1):
        if expected.get(spk) != utts:
            has = expected.get(spk, "no such speaker")
            raise DataDirError(f"{path}/spk2utt:{row}: {spk!r}: utt2spk has {_short(has)}, found {_short(utts)}")
    for name, table in tables.items():
        want = expected if name.startswith("spk2") else utt2spk
        if what := differences(want, table):
            ids = "speakers" if name.startswith("spk2") else "utterances"
            raise DataDirError(f"{path}/{name}: against the {ids} of utt2spk, {what}")


def _check_values(path: Path, tables: dict[str, dict[str, str]], allow_pipes: bool) -> None:
    for row, (utt, value) in enumerate(tables.get("utt2num_samples", {}).items(), 1):
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            raise DataDirError(f"{path}/utt2num_samples:{row}: {utt!r}: expected a number of samples, found {value!r}")
    for row, (spk, value) in enumerate(tables.get("spk2gender", {}).items(), 1):
        if value not in SEXES:
            raise DataDirError(f"{path}/spk2gender:{row}: {spk!r}: expected f, m or u, found {value!r}")
    for row, (utt, value) in enumerate(tables.get("wav.scp", {}).items(), 1):
        if is_pipe(value) and not allow_pipes:
            raise DataDirError(
                f"{path}/wav.scp:{row}: {utt!r}: found the command {_short(value)}, which would run as you; "
                "if you trust it, import the set with --allow-pipes true"
            )


def _read_trials(path: Path, utt2spk: Mapping[str, str]) -> list[Trial]:
    trials: dict[tuple[str, str], bool] = {}
    for row, line in enumerate(read_lines(path), 1):
        fields = line.split(" ")
        if len(fields) != 3 or fields[2] not in ("target", "nontarget"):
            raise DataDirError(f"{path}:{row}: expected '<speaker> <utterance> target|nontarget', found {line!r}")
        spk, utt, same = fields[0], fields[1], fields[2] == "target"
        if utt not in utt2spk:
            raise DataDirError(f"{path}:{row}: {utt!r} is not in utt2spk")
        if same != (utt2spk[utt] == spk):
            raise DataDirError(f"{path}:{row}: found {fields[2]!r}, but {utt!r} is of speaker {utt2spk[utt]!r}")
        if (spk, utt) in trials:
            raise DataDirError(f"{path}:{row}: {spk!r} and {utt!r} are paired twice")
        trials[spk, utt] = same
    return [(spk, utt, same) for (spk, utt), same in trials.items()]


def _read_enrolls(path: Path, utt2spk: Mapping[str, str]) -> tuple[str, ...]:
    lines = read_lines(path)
    for row, utt in enumerate(lines, 1):
        if utt not in utt2spk:
            raise DataDirError(f"{path}:{row}: {utt!r} is not in utt2spk")
        if row > 1 and utt <= lines[row - 2]:
            raise DataDirError(f"{path}:{row}: {utt!r} after {lines[row - 2]!r}: not sorted or not unique")
    return tuple(lines)


def _short(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
