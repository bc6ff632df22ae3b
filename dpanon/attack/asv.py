"""Automatic speaker verification as an attacker: train back-ends, score trials, keep the strongest.

Conditions, by what the attacker and the victim use:

====  =========  ==========  =====================================================================
oo    original   original    how well the attacker does without any anonymization
oa    original   anonymized  ignorant attacker: enrols clear speech
aa    anonymized anonymized  lazy-informed attacker: enrols released speech, knows original speech only;
                             semi-informed attacker: runs the same system, and trains on its output
====  =========  ==========  =====================================================================
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from dpanon.attack.backends import BACKENDS, TRAINED, Backend, Cosine, LdaPlda, Wccn
from dpanon.attack.embeddings import embed_set
from dpanon.attack.trials import TrialList
from dpanon.config import save_config
from dpanon.data.data_dir import DataDir
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.detection import Tally, cllr, min_cllr, min_dcf, tally, tpr_at_fpr
from dpanon.evaluate.eer import eer, eer_and_threshold
from dpanon.evaluate.intervals import bootstrap_eer, bootstrap_trials, eer_upper_bound
from dpanon.evaluate.linkability import linkability_of
from dpanon.evaluate.metrics import write_json
from dpanon.evaluate.zebra import zebra
from dpanon.features.xvector import EXTRACTORS, Extractor, load_extractor

CONDITIONS = ("oo", "oa", "aa")


@dataclass(frozen=True)
class AsvConfig:
    """The attackers. Every key of conf/asv.yaml is a field here.

    The extractor ``trained`` is the one that steps/train_ecapa.sh leaves in the asv-dir itself.
    """

    extractors: tuple[str, ...] = ("campplus", "ge2e")
    backends: tuple[str, ...] = BACKENDS
    segment_seconds: float = 3.5  # training utterances are split into pieces of about this length; 0: not split
    lda_dim: int = 100  # at most; fewer when there are fewer speakers
    replicates: int = 1000  # of the bootstrap by speaker

    def __post_init__(self):
        for kind, names, known in (
            ("extractor", self.extractors, (*EXTRACTORS, "trained")),
            ("back-end", self.backends, BACKENDS),
        ):
            unknown = sorted(set(names) - set(known))
            if unknown or not names:
                raise ValueError(f"unknown {kind} {unknown}; choose some of {', '.join(known)}")
        if self.segment_seconds < 0 or 0 < self.segment_seconds < 0.5:
            raise ValueError(f"segment_seconds must be 0 or at least 0.5, got {self.segment_seconds}")


def knowledge(condition: str, attacker: str, training: Mapping) -> str:
    """What the challenges call an attacker: none, ignorant, lazy-informed or semi-informed.

    Args:
        attacker: ``<extractor>+<back-end>``; a shipped extractor with the cosine has heard no released speech.
        training: training.json of its directory.
    """
    if condition != "aa":
        return {"oo": "none", "oa": "ignorant"}[condition]
    extractor, _, backend = attacker.partition("+")
    trained = extractor not in EXTRACTORS or backend != "cosine"
    return "semi-informed" if trained and training.get("released") else "lazy-informed"


def all_released(sets: Sequence[DataDir]) -> bool:
    """Whether an attacker trained on these sets has heard released speech only."""
    return all((data.path / "privacy.json").is_file() for data in sets)


class Load(Protocol):
    def __call__(self, name: str) -> Extractor: ...


def train_asv(
    sets: Sequence[DataDir], out: Path, config: AsvConfig, cache: Path, load: Load | None = None
) -> dict[str, int]:
    """Train every back-end over every extractor on all sets together: ``<out>/<extractor>/<backend>.safetensors``.

    Several sets may hold the same speakers, e.g. one release of the training speech each: a speaker is known by
    name. An anonymizer that draws a target per utterance shows its variation only to an attacker who has several
    releases of each speaker.

    Returns:
        numbers of speakers, utterances and embeddings.
    """
    numbers: dict[str, int] = {}
    for name in config.extractors:
        extractor = (load or load_extractor)(name)
        embeddings: list[np.ndarray] = []
        speakers: list[str] = []
        num_utts = 0
        for data in sets:
            for utt, pieces in embed_set(
                data, extractor, cache / data.path.name, segment_seconds=config.segment_seconds
            ).items():
                embeddings.extend(pieces)
                speakers.extend([data.speaker(utt)] * len(pieces))
                num_utts += 1
        (out / name).mkdir(parents=True, exist_ok=True)
        for backend in config.backends:
            if backend == "wccn":
                Wccn.train(np.stack(embeddings), speakers).save(out / name / "wccn.safetensors")
            elif backend == "lda-plda":
                model = LdaPlda.train(np.stack(embeddings), speakers, config.lda_dim)
                model.save(out / name / "lda-plda.safetensors")
        numbers = {"num_speakers": len(set(speakers)), "num_utterances": num_utts, "num_embeddings": len(speakers)}
    save_config(config, out / "config.yaml")
    record = {"sets": [data.path.name for data in sets], "released": all_released(sets)}
    write_json(out / "training.json", numbers | record)
    return numbers


def _trained(asv: Path | None) -> Extractor:
    from dpanon.attack.ecapa import TrainedEcapa  # it imports AsvConfig

    if asv is None:
        raise EvaluationError("the extractor trained needs a directory made by steps/train_ecapa.sh")
    return TrainedEcapa(asv)


def load_backend(name: str, extractor: str, asv: Path | None) -> Backend:
    """A trained back-end, or the cosine, which needs no training."""
    if name == "cosine":
        return Cosine()
    if asv is None:
        raise EvaluationError(f"the back-end {name} has to be trained: give a directory made by steps/train_asv.sh")
    file = asv / extractor / f"{name}.safetensors"
    if not file.is_file():
        raise EvaluationError(f"{file}: no such file; train it with steps/train_asv.sh, or choose other back-ends")
    return TRAINED[name].load(file)


@dataclass(frozen=True)
class Attack:
    """Scores of one attacker on every trial, in the trials' order, and what follows from them."""

    attacker: str
    scores: np.ndarray
    metrics: dict


def score_asv(
    enrol: DataDir,
    trial: DataDir,
    trials: TrialList,
    config: AsvConfig,
    cache: Path,
    asv: Path | None = None,
    load: Load | None = None,
) -> list[Attack]:
    """Every back-end over every extractor on the trials, the strongest (lowest EER) first."""
    attacks = []
    for extractor_name in config.extractors:
        extractor = (load or load_extractor)(extractor_name) if extractor_name != "trained" else _trained(asv)
        enrol_utts = sorted({utt for utts in trials.models.values() for utt in utts})
        enrolment = embed_set(enrol, extractor, cache / enrol.path.name, enrol_utts)
        tested = embed_set(trial, extractor, cache / trial.path.name, trials.trial_utts)
        for backend_name in config.backends:
            backend = load_backend(backend_name, extractor_name, asv)
            scores = _scores(backend, trials, enrolment, tested)
            shown = getattr(extractor, "attacker", extractor_name)  # of a trained one: which
            attacks.append(measure(f"{shown}+{backend_name}", scores, trials, trial, config))
    attacks.sort(key=lambda attack: attack.metrics["eer"])
    return attacks


FIGURES: dict[str, Callable[[Tally], float]] = {
    "linkability": linkability_of,
    "linkability_monotone": lambda table: linkability_of(table, method="monotone"),
    "min_dcf": min_dcf,
    "cllr": cllr,
    "min_cllr": min_cllr,
    "tpr_at_fpr_1": tpr_at_fpr,
    "zebra_expected": lambda table: zebra(table).expected,
    "zebra_worst": lambda table: zebra(table).worst,
}


def measure(attacker: str, scores: np.ndarray, trials: TrialList, trial: DataDir, config: AsvConfig) -> Attack:
    """EER, linkability and the other figures of one attacker's scores, with intervals."""
    is_target = np.asarray([same for _, _, same in trials.trials])
    target, nontarget = scores[is_target], scores[~is_target]
    value, threshold = eer_and_threshold(target, nontarget)
    enrol_speakers = [trials.speakers[model] for model, _, _ in trials.trials]
    trial_speakers = [trial.speaker(utt) for _, utt, _ in trials.trials]
    interval = bootstrap_eer(scores, is_target, enrol_speakers, trial_speakers, config.replicates)
    others = bootstrap_trials(
        FIGURES, scores, is_target, enrol_speakers, trial_speakers, max(1, config.replicates // 5)
    )
    table = tally(target, nontarget)
    metrics = {
        "attacker": attacker,
        "eer": value,
        "eer_low": interval.low,
        "eer_high": interval.high,
        "eer_hull": eer(target, nontarget, "hull"),
        "eer_upper_bound": eer_upper_bound(scores, is_target, threshold),
        **{name: figure(table) for name, figure in FIGURES.items()},
        "zebra_category": zebra(table).category,
        "num_targets": int(is_target.sum()),
        "num_nontargets": int((~is_target).sum()),
        "num_speakers": len(set(trials.speakers.values())),
    }
    for name, bounds in others.items():
        metrics |= {f"{name}_low": bounds.low, f"{name}_high": bounds.high}
    return Attack(attacker, scores, metrics)


def below_floor(metrics: dict, floor: float | None) -> bool:
    """Whether the measured EER refutes the floor: both its upper bounds are below.

    The bootstrap knows that trials of a speaker go together but is blind when no error was seen; Clopper-Pearson
    is the reverse.
    """
    if floor is None:
        return False
    high = metrics["eer_high"]
    return max(high if high == high else metrics["eer"], metrics["eer_upper_bound"]) < floor


def write_scores(file: Path, trials: TrialList, scores: Iterable[float]) -> None:
    """``<model> <utt> <score> target|nontarget`` lines."""
    rows = (
        f"{model} {utt} {score:.6f} {'target' if same else 'nontarget'}\n"
        for (model, utt, same), score in zip(trials.trials, scores, strict=True)
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(rows), encoding="utf-8")


def read_scores(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Scores of target and of nontarget trials."""
    rows = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    kinds: dict[str, list[float]] = {"target": [], "nontarget": []}
    for row in rows:
        kinds[row[3]].append(float(row[2]))
    return np.asarray(kinds["target"]), np.asarray(kinds["nontarget"])


def _scores(backend: Backend, trials: TrialList, enrolment: dict, tested: dict) -> np.ndarray:
    names, utts = list(trials.models), trials.trial_utts
    row = {name: i for i, name in enumerate(names)}
    column = {utt: i for i, utt in enumerate(utts)}
    enrol = [np.concatenate([enrolment[utt] for utt in trials.models[name]]) for name in names]
    matrix = backend.score(enrol, np.concatenate([tested[utt] for utt in utts]))  # (models, U)
    scores = np.asarray([matrix[row[model], column[utt]] for model, utt, _ in trials.trials])
    if not np.isfinite(scores).all():
        raise EvaluationError(f"{backend.name} gives NaN or infinite scores: train it on more speech")
    return scores
