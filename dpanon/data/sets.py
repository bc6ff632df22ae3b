"""Split, merge, choose, join and mend data directories. What the scripts of utils/ call."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from dpanon.data.audio import num_samples, read_pipe, write_wav
from dpanon.data.data_dir import DataDir, Trial, differences, is_pipe, read_lines, read_table, write_data_dir
from dpanon.errors import DataDirError, UsageError


def split(data: DataDir, num_shards: int, out: str | Path) -> list[Path]:
    """``out/1`` ... ``out/N``: runs of utterances in order, as equal as can be; the same on every call.

    A shard that is there with the same utterances is left alone, with what a job has put into it.
    """
    out = Path(out)
    if not 1 <= num_shards <= len(data):
        raise UsageError(f"{data.path}: cannot split {len(data)} utterances into {num_shards}; choose --nj accordingly")
    shards = []
    for k in range(num_shards):
        utts = data.utts[k * len(data) // num_shards : (k + 1) * len(data) // num_shards]
        shard, tables = out / str(k + 1), _rows_of(data, utts)
        if not shard.exists():
            write_data_dir(shard, tables)
        elif any(read_table(shard / name) != tables[name] for name in ("wav.scp", "utt2spk", "utt2num_samples")):
            raise DataDirError(f"{shard} was made from other data than {data.path}; remove {out} to start again")
        shards.append(shard)
    return shards


def merge(out: str | Path, utt2spk: str | Path, shards: Sequence[str | Path]) -> int:
    """Join tables of shards (or .jsonl with an "utt" in every row) into one sorted table of all utterances."""
    out, utts = Path(out), read_table(utt2spk)
    rows: dict[str, str] = {}
    for table in shards:
        if not Path(table).is_file():
            raise DataDirError(f"{table}: no such file: its job has not finished; see the log beside it")
        for row, (utt, line) in enumerate(_keyed_lines(Path(table)), 1):
            if utt in rows:
                raise DataDirError(f"{table}:{row}: {utt!r} is in another shard, too")
            rows[utt] = line
    if what := differences(utts, rows):
        missing = sorted(utts.keys() - rows.keys())
        near = next((t for t in shards if missing and _has_utt(Path(t).parent, missing[0])), shards[0])
        raise DataDirError(f"{out}: {what}; see the logs beside {near}")
    tmp = out.with_name(f".{out.name}.tmp{os.getpid()}")
    tmp.write_text("".join(f"{rows[utt]}\n" for utt in sorted(rows)), encoding="utf-8")
    os.replace(tmp, out)
    return len(rows)


def subset(
    data: DataDir,
    speakers: Iterable[str] | int | None = None,
    per_speaker: int | None = None,
    utts: Iterable[str] | None = None,
    first: int | None = None,
) -> tuple[str, ...]:
    """Utterances that pass every filter, which apply in this order; a number means the first ones in order."""
    if speakers is None or isinstance(speakers, int):
        chosen = data.speakers[:speakers]
    else:
        chosen = _all_known(speakers, data.speakers, f"speakers of {data.path}")
    of_speakers = {utt for spk in chosen for utt in data.utterances(spk)[:per_speaker]}
    wanted = data.utts if utts is None else _all_known(utts, data.utts, f"utterances of {data.path}")
    result = tuple(sorted(of_speakers.intersection(wanted)))[:first]
    if not result:
        raise UsageError(f"{data.path}: no utterance is left by these options")
    return result


def write_subset(data: DataDir, utts: Iterable[str], out: str | Path) -> DataDir:
    """Another data directory with some of the utterances; trials and enrolls shrink with them."""
    kept = set(utts)
    trials = [t for t in data.trials() if t[1] in kept] if data.has("trials") else []
    enrolls = [utt for utt in data.enrolls if utt in kept]
    return write_data_dir(out, _rows_of(data, kept), trials or None, enrolls or None)


def combine(sources: Sequence[DataDir], out: str | Path) -> tuple[DataDir, list[str]]:
    """One data directory of several, and the names of the tables left out since not all have them."""
    tables: dict[str, dict[str, str]] = {}
    names = set.intersection(*(set(data.tables()) for data in sources)) - {"spk2utt"}
    for name in ["utt2spk", *sorted(names - {"utt2spk"})]:
        tables[name] = {}
        for data in sources:
            for key, value in data.tables()[name].items():
                if key in tables[name] and (not name.startswith("spk2") or tables[name][key] != value):
                    raise DataDirError(f"{data.path}/{name}: {key!r} is in another source, too; ids must differ")
                tables[name][key] = value
    trials: list[Trial] = [trial for data in sources if data.has("trials") for trial in data.trials()]
    enrolls = [utt for data in sources for utt in data.enrolls]
    left_out = sorted({name for data in sources for name in data.tables()} - names - {"spk2utt"})
    return write_data_dir(out, tables, trials or None, enrolls or None), left_out


def make_trials(data: DataDir, enroll: int, enrolls: str | Path, trials: str | Path) -> list[DataDir]:
    """The first ``enroll`` utterances of every speaker -> ``enrolls``; the others -> ``<trials>_f``, ``<trials>_m``.

    Every trial utterance is paired with every speaker of the same sex. Speakers of unknown sex are not allowed:
    a pair of different sexes is too easy to tell, and would flatter every attack alike.
    """
    if short := [spk for spk in data.speakers if len(data.utterances(spk)) <= enroll]:
        raise UsageError(
            f"{data.path}: {len(short)} speakers have no more than the {enroll} utterances to enrol (e.g. {short[:5]})"
        )
    if unknown := [spk for spk in data.speakers if data.sex(spk) is None]:
        raise DataDirError(f"{data.path}/spk2gender: {len(unknown)} speakers have no f or m (e.g. {unknown[:5]})")
    chosen = subset(data, per_speaker=enroll)
    made = [write_data_dir(enrolls, _rows_of(data, chosen), enrolls=chosen)]
    for sex in ("f", "m"):
        speakers = [spk for spk in data.speakers if data.sex(spk) == sex]
        utts = [utt for spk in speakers for utt in data.utterances(spk)[enroll:]]
        pairs = [(spk, utt, spk == data.speaker(utt)) for spk in speakers for utt in utts]
        if pairs:
            made.append(write_data_dir(f"{trials}_{sex}", _rows_of(data, utts), pairs))
    return made


def fix(path: str | Path, allow_pipes: bool = False) -> DataDir:
    """Mend what can be mended without dropping or guessing anything.

    Sorts, removes repeated lines, puts the speaker before the utterance id where it is not, makes spk2utt,
    spk2gender from utt2gender, and utt2num_samples where it is absent. With ``allow_pipes`` commands of
    wav.scp run, and their output becomes files under ``wav/``.
    """
    path = Path(path)
    tables = {f.name: _loose_table(f) for f in sorted(path.iterdir()) if _is_id_table(f)}
    for name in ("wav.scp", "utt2spk"):
        if name not in tables:
            raise DataDirError(f"{path}: has no {name}, which nothing can be made from")
    utt2spk = tables["utt2spk"]
    if pipe := next((f"{utt} {value}" for utt, value in tables["wav.scp"].items() if is_pipe(value)), None):
        if not allow_pipes:
            raise DataDirError(f"{path}/wav.scp: found a command, {pipe!r}; if you trust it, add --allow-pipes true")
    if "spk2gender" not in tables and "utt2gender" in tables:
        sexes = tables["utt2gender"].items()
        tables["spk2gender"] = {utt2spk[utt]: sex[:1].lower() for utt, sex in sexes if utt in utt2spk}
    new = {u: u if u == s or u.startswith((f"{s}-", f"{s}_")) else f"{s}-{u}" for u, s in utt2spk.items()}
    for name in tables:
        if not name.startswith("spk2"):
            tables[name] = {new.get(utt, utt): value for utt, value in tables[name].items()}
    for utt, value in tables["wav.scp"].items():
        if is_pipe(value):
            (path / "wav").mkdir(exist_ok=True)
            write_wav(path / "wav" / f"{utt}.wav", read_pipe(value))
            tables["wav.scp"][utt] = f"wav/{utt}.wav"
    if "utt2num_samples" not in tables:
        tables["utt2num_samples"] = {u: str(num_samples(path / value)) for u, value in tables["wav.scp"].items()}
    trials = enrolls = None
    if (path / "trials").exists():
        fields = [line.split() for line in read_lines(path / "trials")]
        trials = [(spk, new.get(utt, utt), label == "target") for spk, utt, label in fields]
    if (path / "enrolls").exists():
        enrolls = sorted({new.get(utt.strip(), utt.strip()) for utt in read_lines(path / "enrolls")})
    return write_data_dir(path, tables, trials, enrolls, allow_existing=True)


def _rows_of(data: DataDir, utts: Iterable[str]) -> dict[str, dict[str, str]]:
    kept = set(utts)
    speakers = {data.speaker(utt) for utt in kept}
    tables = data.tables()
    del tables["spk2utt"]
    return {
        name: {key: value for key, value in table.items() if key in (speakers if name.startswith("spk2") else kept)}
        for name, table in tables.items()
    }


def _all_known(wanted: Iterable[str], known: Iterable[str], what: str) -> tuple[str, ...]:
    wanted = tuple(wanted)
    if unknown := sorted(set(wanted).difference(known)):
        raise UsageError(f"{len(unknown)} of {len(wanted)} are no {what} (e.g. {unknown[:5]})")
    return wanted


def _keyed_lines(table: Path) -> list[tuple[str, str]]:
    if table.suffix == ".jsonl":
        lines = read_lines(table)
        try:
            return [(json.loads(line)["utt"], line) for line in lines]
        except (ValueError, KeyError, TypeError) as error:
            raise DataDirError(f'{table}: expected JSON with an "utt" in every row ({error})') from error
    return [(utt, f"{utt} {value}" if value else utt) for utt, value in read_table(table).items()]


def _has_utt(shard: Path, utt: str) -> bool:
    return (shard / "utt2spk").is_file() and utt in read_table(shard / "utt2spk")


def _is_id_table(file: Path) -> bool:
    name = file.name
    return file.is_file() and (name in ("text", "wav.scp") or name.startswith(("utt2", "spk2"))) and name != "spk2utt"


def _loose_table(path: Path) -> dict[str, str]:
    """As ``read_table``, in any order, a repeated line counting once."""
    table: dict[str, str] = {}
    for row, line in enumerate(read_lines(path), 1):
        key, _, value = line.strip().replace("\t", " ").partition(" ")
        if table.setdefault(key, value.strip()) != value.strip():
            raise DataDirError(f"{path}:{row}: {key!r} has two values: {table[key]!r} and {value.strip()!r}")
    return table
