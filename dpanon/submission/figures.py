"""metrics.json of the scoring steps -> the figures that a challenge ranks by, in the organisers' tables.

The attacker of ``ASV_eval`` is the one that needs no anonymized speech (cosine over a pretrained extractor), that of
``ASV_eval^anon`` the strongest of all that were trained on the released train-clean-360.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from dpanon.data.data_dir import DataDir
from dpanon.evaluate.eer import eer
from dpanon.evaluate.metrics import read_metrics
from dpanon.features.xvector import EXTRACTORS
from dpanon.submission.layouts import EMOTION, Layout, VpcSet

Found = tuple[Path, dict]


class Figures:
    """All metrics below ``exp``; what is asked for and is not there goes into ``missing``, by name."""

    def __init__(self, exp: Path, data: Path, chosen: Layout, suffix: str):
        self.exp, self.data, self.layout, self.suffix = exp, data, chosen, suffix
        self.metrics = read_metrics(exp) if exp.is_dir() else []
        self.missing: list[str] = []
        self.tests = [(enrol, trial) for enrol, trial in chosen.tests() if self._there(trial)]
        self.emotion = [item for item in chosen.of(EMOTION) if self._there(item)]

    def _there(self, item: VpcSet) -> bool:
        return (self.data / item.name).is_dir()

    def one(self, kind: str, set_name: str, step: str, keep: Callable[[dict], bool] = lambda row: True) -> Found | None:
        """The figures of one set; of several attackers, those of the strongest."""
        rows = [
            (file, row) for file, row in self.metrics if (row["kind"], row["set"]) == (kind, set_name) and keep(row)
        ]
        if not rows:
            self.missing.append(f"{kind} figures of {set_name} below {self.exp}: run {step}")
            return None
        return min(rows, key=lambda pair: pair[1].get("eer", 0.0))

    def wer(self, corpus: str, split: str, released: bool) -> float | None:
        """Of all trial utterances of a corpus and split, in per cent."""
        errors = words = 0
        for item in (trial for _, trial in self.tests if (trial.corpus, trial.split) == (corpus, split)):
            found = self.one("asr", self._name(item, released), "steps/score_asr.sh")
            if found:
                errors, words = errors + found[1]["num_errors"], words + found[1]["num_words"]
        return 100 * errors / words if words else None

    def uar(self, item: VpcSet, released: bool) -> dict | None:
        found = self.one("ser", self._name(item, released), "steps/score_ser.sh")
        return found[1] if found else None

    def attack(self, item: VpcSet, condition: str, pretrained: bool = False) -> Found | None:
        """The strongest attacker of a trial set; ``pretrained``: of those that heard no anonymized speech."""

        def keep(row: dict) -> bool:
            if row.get("condition") != condition or "eer" not in row:
                return False
            extractor, _, backend = str(row["attacker"]).partition("+")
            return not pretrained or (backend == "cosine" and extractor in EXTRACTORS)

        return self.one("asv", self._name(item, condition != "oo"), f"steps/score_asv.sh, condition {condition}", keep)

    def eers(self, item: VpcSet, condition: str, pretrained: bool = False) -> dict[str, float]:
        """Per cent by gender: f and m, and mixed where the set has trials across."""
        found = self.attack(item, condition, pretrained)
        if found is None:
            return {}
        file, row = found
        if item.kind != "mixed":
            return {item.kind: 100 * row["eer"]}
        scores = file.parent / "scores"
        if not scores.is_file():
            scores = file.parent / str(row["attacker"]) / "scores"
        if not scores.is_file():
            self.missing.append(f"{scores}: run steps/score_asv.sh")
            return {"mixed": 100 * row["eer"]}
        return self._by_gender(item, scores) | {"mixed": 100 * row["eer"]}

    def _by_gender(self, item: VpcSet, scores: Path) -> dict[str, float]:
        trial = DataDir.read(self.data / item.name)
        (enrol,) = (DataDir.read(self.data / e.name) for e, t in self.tests if t == item)
        kinds: dict[str, tuple[list[float], list[float]]] = {"f": ([], []), "m": ([], [])}
        for line in scores.read_text(encoding="utf-8").splitlines():
            model, utt, score, label = line.split()
            sex = enrol.sex(model)
            if sex and sex == trial.sex(trial.speaker(utt)):
                kinds[sex][label == "nontarget"].append(float(score))
        return {sex: 100 * eer(*both) for sex, both in kinds.items() if all(both)}

    def _name(self, item: VpcSet, released: bool) -> str:
        return f"{item.name}{self.suffix}" if released else item.name


def rank_text(figures: Figures, now: float | None = None) -> str:
    """The rank file. What is missing is in ``figures.missing`` and must be looked at by the caller."""
    stamp = time.strftime("---- Time: %d-%m-%y_%H:%M ----", time.localtime(now))
    parts = [stamp, ""]
    if figures.emotion:
        parts += ["---- SER results ----", _ser_table(figures), ""]
    condition = "aa" if figures.layout.challenge == "2026" else "oo"
    rows = []
    for _, item in figures.tests:
        found = figures.eers(item, condition, pretrained=True)
        who = "anon" if condition == "aa" else "original"
        rows.append((item.corpus, item.split, item.kind, who, who, _number(found.get(item.kind), 3)))
    parts += ["---- ASV_eval results ----", _table(ASV_HEADER, rows), ""]
    words = [
        (corpus, split, name, _number(figures.wer(corpus, split, released), 3))
        for corpus, split in dict.fromkeys((item.corpus, item.split) for _, item in figures.tests)
        for name, released in (("original", False), ("anon", True))
    ]
    parts += ["---- ASR results ----", _table(("dataset", "split", "asr", "WER"), words), ""]
    if figures.layout.challenge == "2022":
        parts += _of_2022(figures)
    parts += [stamp, "", "---- ASV_eval^anon results ----"]
    rows = []
    for _, item in figures.tests:
        found = figures.eers(item, "aa")
        for kind in found or (item.kind,):
            rows.append((item.corpus, item.split, kind, "anon", "anon", _number(found.get(kind), 3)))
    parts += [_table(ASV_HEADER, rows)]
    return "\n".join(parts) + "\n"


ASV_HEADER = ("dataset", "split", "gender", "enrollment", "trial", "EER")


def ser_rows(figures: Figures) -> list[tuple[str, str, str, dict]]:
    rows = []
    for item in figures.emotion:
        for name, released in (("anon", True), ("original", False)):
            found = figures.uar(item, released)
            if found:
                rows.append((item.corpus, item.split, name, found))
    return rows


def floor_rows(figures: Figures) -> list[tuple[str, ...]]:
    """Set, epsilons, promised floor and measured EER of each attack on released speech."""
    rows = []
    for _, item in figures.tests:
        for condition in ("oa", "aa"):
            found = figures.attack(item, condition)
            if found:
                row = found[1]
                claims = (row.get("epsilon_frame"), row.get("epsilon_utterance"), row.get("eer_floor"))
                measured = f"{100 * row['eer']:.2f} [{100 * row['eer_low']:.2f}, {100 * row['eer_high']:.2f}]"
                shown = ["no claim" if value is None else f"{value:.4g}" for value in claims]
                name, knows = f"{item.name}{figures.suffix}", row.get("knowledge", "-")
                rows.append((name, condition, *shown, measured, str(row["attacker"]), knows))
    return rows


FLOOR_HEADER = (
    *("set", "condition", "eps/frame", "eps/utt (median)", "EER floor"),
    *("measured EER % [95 %]", "attacker", "which is"),
)


def _ser_table(figures: Figures) -> str:
    rows = ser_rows(figures)
    labels = sorted({key for *_, row in rows for key in row if key.startswith("recall_")})
    header = ("dataset", "split", "ser", "UAR", *(f"ACC_{label.removeprefix('recall_')}" for label in labels))
    means = ("", "", "", *["mean"] * (1 + len(labels)))
    lines = [
        (*names, _number(100 * row["uar"], 4), *(_number(100 * row.get(label, np.nan), 4) for label in labels))
        for *names, row in rows
    ]
    return _table(header, lines, means)


def _of_2022(figures: Figures) -> list[str]:
    """Pitch correlation, G_VD and DeID, which only 2022 ranks by."""
    rows = []
    for _, item in figures.tests:
        name = f"{item.name}{figures.suffix}"
        f0 = figures.one("f0", name, "steps/score_f0.sh")
        voices = figures.one("voices", name, "steps/score_voices.sh")
        if f0 and voices:
            values = (f0[1]["f0_correlation_challenge"], voices[1]["g_vd"], voices[1]["deid"])
            rows.append((item.corpus, item.split, item.kind, *(_number(value, 3, "undefined") for value in values)))
    header = ("dataset", "split", "gender", "Pitch_correlation", "G_VD", "DeID")
    return ["---- Utility and distinctiveness results ----", _table(header, rows), ""]


def _number(value: float | None, digits: int, none: str = "missing") -> str:
    return none if value is None else f"{value:.{digits}f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], second: Sequence[str] | None = None) -> str:
    """Columns to the right, as the organisers' own."""
    lines = [("", *header), *([("", *second)] if second else []), *((str(i), *row) for i, row in enumerate(rows))]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header) + 1)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
