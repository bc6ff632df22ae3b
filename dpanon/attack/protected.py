"""Attacks on released embeddings: who is it (ASV by speaker models), which sex (paper C)? Nothing here needs audio."""

from dataclasses import dataclass, field

import numpy as np

from dpanon.attack.asv import AsvConfig, Attack, below_floor, measure
from dpanon.attack.backends import BACKENDS, Backend, Cosine, LdaPlda, Wccn
from dpanon.attack.gender import GenderAttackConfig, above_ceiling, attack_gender
from dpanon.attack.trials import TrialList, make_trials
from dpanon.data.data_dir import DataDir
from dpanon.data.embeddings import sexes
from dpanon.evaluate import EvaluationError

Vectors = tuple[DataDir, np.ndarray]  # a set and its embeddings (N, D)


@dataclass(frozen=True)
class ProtectedAttackConfig:
    """Every key of conf/attack.yaml is a field here."""

    gender: GenderAttackConfig = field(default_factory=GenderAttackConfig)
    backends: tuple[str, ...] = ("cosine",)  # wccn and lda-plda train on the released training set
    num_enrol: int = 3  # embeddings of a speaker's model; the others are trials
    lda_dim: int = 100
    replicates: int = 1000  # of the bootstrap by speaker

    def __post_init__(self):
        if unknown := sorted(set(self.backends) - set(BACKENDS)):
            raise ValueError(f"unknown back-end {unknown}; choose some of {', '.join(BACKENDS)}")
        if self.num_enrol < 1 or self.replicates < 1:
            raise ValueError("num_enrol and replicates must be at least 1")


def verify(train: Vectors, enrol: Vectors, trial: Vectors, config: ProtectedAttackConfig) -> list[Attack]:
    """Speaker models against trials by every back-end, the strongest first.

    Args:
        train: what trained back-ends learn from; unused by the cosine.
        enrol, trial: the same utterances, both released or one of them clean.
    """
    trials = make_trials(enrol[0], trial[0], num_enrol=config.num_enrol)
    attacks = []
    for name in config.backends:
        scores = _scores(_backend(name, train, config.lda_dim), trials, enrol, trial)
        settings = AsvConfig(extractors=("campplus",), backends=(name,), replicates=config.replicates)
        attacks.append(measure(name, scores, trials, trial[0], settings))
    return sorted(attacks, key=lambda attack: attack.metrics["eer"])


def infer_sex(clean: Vectors, released: Vectors, test: Vectors, config: ProtectedAttackConfig) -> list[dict]:
    """Ignorant attackers, trained on ``clean``, and informed ones, trained on ``released``, on the test set."""
    train = {
        "ignorant": (clean[1], sexes(clean[0])),
        "informed": (released[1], sexes(released[0])),
    }
    speakers = [test[0].speaker(utt) for utt in test[0].utts]
    return attack_gender(train, test[1], sexes(test[0]), speakers, config.gender)


def check_speakers(train: DataDir, test: DataDir) -> None:
    """EvaluationError when a speaker of the test also trains an attacker: it would be learnt by heart."""
    both = sorted(set(train.speakers) & set(test.speakers))
    if both:
        raise EvaluationError(f"{len(both)} speakers are in {train.path} and in {test.path} (e.g. {both[:3]})")


def refuted(
    attacks: list[tuple[str, Attack]], floor: float | None, genders: list[dict], ceiling: float | None
) -> list[str]:
    """What was measured beyond what can be: each as a phrase."""
    found = [
        f"{attack.attacker} ({condition}) has an EER of {100 * attack.metrics['eer']:.1f} %, the floor is "
        f"{100 * (floor or 0.0):.1f} %"
        for condition, attack in attacks
        if condition != "oo" and below_floor(attack.metrics, floor)
    ]
    found += [
        f"{row['knowledge']} {row['attacker']} tells the sex with an AUC of {row['auc']:.3f}, the ceiling is "
        f"{ceiling:.3f}"
        for row in genders
        if above_ceiling(row, ceiling)
    ]
    return found


def _backend(name: str, train: Vectors, lda_dim: int) -> Backend:
    if name == "cosine":
        return Cosine()
    speakers = [train[0].speaker(utt) for utt in train[0].utts]
    return Wccn.train(train[1], speakers) if name == "wccn" else LdaPlda.train(train[1], speakers, lda_dim)


def _scores(backend: Backend, trials: TrialList, enrol: Vectors, trial: Vectors) -> np.ndarray:
    row = {utt: i for i, utt in enumerate(enrol[0].utts)}
    column = {utt: i for i, utt in enumerate(trial[0].utts)}
    models = list(trials.models)
    place = {name: i for i, name in enumerate(models)}
    matrix = backend.score([enrol[1][[row[utt] for utt in trials.models[name]]] for name in models], trial[1])
    return np.asarray([matrix[place[model], column[utt]] for model, utt, _ in trials.trials])
