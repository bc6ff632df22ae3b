"""Rank file, results zip and data archive of a submission, each written beside and named when it is complete.

The organisers' scripts leave out what is missing and say nothing; here nothing is packed until everything is there.
Times, owners and modes in the archives are constants: they say nothing about whoever made them.
"""

import csv
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpanon.data.data_dir import DataDir
from dpanon.evaluate.claims import NO_CLAIM, read_claim
from dpanon.evaluate.metrics import write_json
from dpanon.report.tables import text_table
from dpanon.submission import SubmissionError
from dpanon.submission.check import Summary, check_sets
from dpanon.submission.figures import FLOOR_HEADER, Figures, floor_rows, rank_text, ser_rows
from dpanon.submission.layouts import EMOTION, TRIALS, Layout, VpcSet

_EPOCH = (1980, 1, 1, 0, 0, 0)
SHOWN = 20  # problems in one error


@dataclass(frozen=True)
class Packed:
    rank: Path
    results: Path
    archive: Path
    floors: str


def inspect(
    root: Path, chosen: Layout, suffix: str, partial: bool = False, jobs: int = 2
) -> tuple[list[Summary], Figures]:
    """Look at everything; SubmissionError names all that is missing or wrong."""
    sets = check_sets(root / "data", chosen, suffix, partial, jobs)
    problems = [problem for found in sets for problem in found.problems]
    figures = Figures(root / "exp", root / "data", chosen, suffix)
    rank_text(figures)
    problems += list(dict.fromkeys(figures.missing))
    problems += [f"{path}: missing" for path in _transcripts(root, figures).values() if not path.is_file()]
    if problems:
        more = f" (and {len(problems) - SHOWN} more)" if len(problems) > SHOWN else ""
        raise SubmissionError(f"{len(problems)} problems: {'; '.join(problems[:SHOWN])}{more}")
    return sets, figures


def pack(root: Path, chosen: Layout, suffix: str, out: Path, partial: bool = False, jobs: int = 2) -> Packed:
    """Check everything, then write the three files.

    Args:
        root: the recipe's directory, with data/ and exp/.
        out: where the archive goes; the rank file and the zip go below ``root``, as the organisers' scripts put them.
    """
    _, figures = inspect(root, chosen, suffix, partial, jobs)
    rank, results = root / chosen.rank_file(suffix), root / chosen.results_zip(suffix)
    text = rank_text(figures)
    floors = text_table(FLOOR_HEADER, floor_rows(figures))
    report = privacy_report(root / "data", figures, suffix)
    _beside(rank, lambda path: path.write_text(text, encoding="utf-8"))
    summary = rank.parent
    write_json(summary / f"privacy{suffix}.json", report)
    _beside(summary / f"floors{suffix}.txt", lambda path: path.write_text(floors, encoding="utf-8"))
    members = {chosen.rank_file(suffix): text} | result_files(root, figures)
    for name in (f"privacy{suffix}.json", f"floors{suffix}.txt"):
        members[f"{chosen.summary}/{name}"] = (summary / name).read_text(encoding="utf-8")
    _beside(results, lambda path: _write_zip(path, members))
    archive = out / chosen.archive(suffix)
    _beside(archive, lambda path: _write_archive(path, root, chosen, suffix))
    problems = archive_problems(archive, root, chosen, suffix)
    if problems:
        raise SubmissionError(f"{archive}: {'; '.join(problems[:SHOWN])}")
    return Packed(rank, results, archive, floors)


def result_files(root: Path, figures: Figures) -> dict[str, str]:
    """What the organisers' zip holds beside the rank file. name -> content"""
    suffix, chosen = figures.suffix, figures.layout
    files = {name: path.read_text(encoding="utf-8") for name, path in _transcripts(root, figures).items()}
    rows: list[Sequence[object]] = []
    for _, item in figures.tests:
        for name, released in (("original", False), ("anon", True)):
            found = figures.one("asr", f"{item.name}{suffix}" if released else item.name, "steps/score_asr.sh")
            if found:
                row = found[1]
                rows.append((item.corpus, item.split, item.kind, name, 100 * row["wer"], row["num_words"]))
    files[f"exp/asr/results{suffix}.csv"] = _csv(("dataset", "split", "trials", "asr", "WER", "words"), rows)
    if figures.emotion:
        ser = ser_rows(figures)
        files[f"exp/ser/results{suffix}.csv"] = _csv(
            ("dataset", "split", "ser", "UAR"), [(*names, 100 * row["uar"]) for *names, row in ser]
        )
        files[f"exp/ser/results_folds{suffix}.csv"] = _csv(
            ("dataset", "split", "ser", "fold", "UAR"),
            [(*names, k, 100 * value) for *names, row in ser for k, value in enumerate(row["uar_folds"], 1)],
        )
    header = ("dataset", "split", "gender", "enrollment", "trial", "EER")
    words = {"o": "original", "a": "anon"}
    for folder, conditions, pretrained in (
        (chosen.pretrained, ("oo", "oa", "aa"), True),
        (f"exp/asv_anon{suffix}", ("aa",), False),
    ):
        rows = [
            (item.corpus, item.split, gender, words[condition[0]], words[condition[1]], value)
            for _, item in figures.tests
            for condition in conditions
            for gender, value in figures.eers(item, condition, pretrained).items()
        ]
        name = f"{folder}/results{suffix}.csv" if pretrained else f"{folder}/results.csv"
        files[name] = _csv(header, rows)
    return files


def privacy_report(data: Path, figures: Figures, suffix: str) -> dict:
    """What each released set promises, in the words of its privacy.json, and the floor beside each measured EER."""
    sets = {}
    for item in figures.layout.sets:
        path = data / f"{item.name}{suffix}"
        if path.is_dir():
            claim = read_claim(path, (), baseline=True)
            sets[path.name] = claim.details or {"sentence": f"This release states {NO_CLAIM}."}
    rows = [dict(zip(FLOOR_HEADER, row, strict=True)) for row in floor_rows(figures)]
    return {"suffix": suffix, "challenge": figures.layout.challenge, "sets": sets, "floors": rows}


def archive_problems(archive: Path, root: Path, chosen: Layout, suffix: str) -> list[str]:
    """What an archive lacks of what it should hold, and what it holds beyond."""
    expected = set(_members(root, chosen, suffix))
    try:
        with tarfile.open(archive) as tar:
            found = {member.name: member for member in tar}
            zipped = found.get(chosen.results_zip(suffix))
            stream = tar.extractfile(zipped) if zipped else None
            inside = set(zipfile.ZipFile(io.BytesIO(stream.read())).namelist()) if stream else set()
    except (tarfile.TarError, zipfile.BadZipFile, OSError, EOFError) as error:
        return [f"cannot be read: {error}"]
    problems = [f"has no {name}" for name in sorted(expected - found.keys())]
    problems += [f"has {name}, which does not belong there" for name in sorted(found.keys() - expected)]
    figures = Figures(root / "exp", root / "data", chosen, suffix)
    wanted = {chosen.rank_file(suffix), *result_files(root, figures)}
    problems += [f"{chosen.results_zip(suffix)} has no {name}" for name in sorted(wanted - inside)]
    problems += [f"{name} is no file" for name, member in sorted(found.items()) if not member.isfile()]
    return problems


def _transcripts(root: Path, figures: Figures) -> dict[str, Path]:
    """Recognised words of each released set of trials. name in the zip -> file"""
    files = {}
    for _, item in figures.tests:
        name = f"{item.name}{figures.suffix}"
        found = [file for file, row in figures.metrics if (row["kind"], row["set"]) == ("asr", name)]
        folder = found[0].parent if found else root / "exp" / "asr" / name
        files[f"exp/asr/{name}/text"] = folder / "hyp" / "text"
    return files


def _members(root: Path, chosen: Layout, suffix: str) -> dict[str, Path | str]:
    """Everything in the archive: name -> file, or text."""
    members: dict[str, Path | str] = {}
    for name in (chosen.rank_file(suffix), chosen.results_zip(suffix)):
        members[name] = root / name
    for item in chosen.sets:
        path = root / "data" / f"{item.name}{suffix}"
        if path.is_dir():
            members |= {f"data/{path.name}/{name}": value for name, value in organisers_form(path, root, item).items()}
    return members


def organisers_form(release: Path, root: Path, item: VpcSet) -> dict[str, Path | str]:
    """Tables and audio of a release under the organisers' names of utterances."""
    source, data = DataDir.read(root / "data" / item.name, allow_pipes=True), DataDir.read(release)
    name = source.table("utt2name") if source.has("utt2name") else {utt: utt for utt in data.utts}
    files: dict[str, Path | str] = {f"wav/{name[utt]}.wav": data.wav(utt) for utt in data.utts}
    tables: dict[str, Mapping[str, object]] = {
        "wav.scp": {name[utt]: f"data/{release.name}/wav/{name[utt]}.wav" for utt in data.utts},
        "utt2spk": {name[utt]: data.speaker(utt) for utt in data.utts},
        "spk2utt": {spk: " ".join(sorted(name[u] for u in data.utterances(spk))) for spk in data.speakers},
        "utt2dur": {name[utt]: f"{data.num_samples(utt) / 16000:.3f}" for utt in data.utts},
    }
    for table in ("text", "spk2gender", *(("utt2emo", "spk2fold") if item.role == EMOTION else ())):
        holder = source if table in ("utt2emo", "spk2fold") else data
        if holder.has(table):
            rows = holder.table(table)
            tables[table] = rows if table.startswith("spk2") else {name[utt]: value for utt, value in rows.items()}
    files |= {key: "".join(f"{k} {rows[k]}".rstrip() + "\n" for k in sorted(rows)) for key, rows in tables.items()}
    if item.role == TRIALS:
        lines = (f"{spk} {name[utt]} {'target' if same else 'nontarget'}\n" for spk, utt, same in data.trials())
        files["trials"] = "".join(lines)
    if data.enrolls:
        files["enrolls"] = "".join(f"{name[utt]}\n" for utt in data.enrolls)
    return files


def _beside(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(f".{path.name}.tmp{os.getpid()}")
    try:
        write(tmp)
        os.replace(tmp, path)
    finally:
        tmp.unlink(missing_ok=True)


def _write_zip(path: Path, members: Mapping[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in sorted(members):
            file.writestr(zipfile.ZipInfo(name, _EPOCH), members[name], zipfile.ZIP_DEFLATED)


def _write_archive(path: Path, root: Path, chosen: Layout, suffix: str) -> None:
    with tarfile.open(path, "w:gz", compresslevel=6) as tar:
        for name, value in _members(root, chosen, suffix).items():
            info = tarfile.TarInfo(name)
            info.mode = 0o644
            if isinstance(value, Path):
                info.size = value.stat().st_size
                with value.open("rb") as stream:
                    tar.addfile(info, stream)
            else:
                content = value.encode()
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([f"{value:.4f}" if isinstance(value, float) else value for value in row])
    return text.getvalue()
