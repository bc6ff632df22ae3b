"""Attackers that infer the speaker's sex from embeddings (paper C, section 4), and how well they do.

==============  ====================  ===========================================================================
attacker        trained on            what it is
==============  ====================  ===========================================================================
external        clean embeddings      the paper's classifier: two fully-connected layers, 100 hidden units
probe           clean embeddings      logistic regression
external        protected embeddings  the same two, by somebody who runs the same protection on speech of
probe           protected embeddings  known speakers: informed
==============  ====================  ===========================================================================

Whoever trains on clean embeddings is ignorant of the protection. That one fails says nothing about the others.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import bootstrap_speakers

ATTACKERS = ("external", "probe")
KNOWLEDGE = ("ignorant", "informed")  # trained on clean, on protected embeddings


@dataclass(frozen=True)
class GenderAttackConfig:
    """Every key of conf/attack.yaml is a field here."""

    hidden: int = 100  # units of the external classifier; 100 in the paper
    lr: float = 1e-3
    batch: int = 128
    epochs: int = 100  # at most
    stop_early_from: int = 2000  # so many embeddings: it stops when a tenth that is held out gets no better
    c: float = 1.0  # inverse strength of the probe's regularisation
    replicates: int = 1000  # of the bootstrap by speaker
    seed: int = 1


def train_classifier(name: str, vectors: np.ndarray, labels: np.ndarray, config: GenderAttackConfig):
    """A scikit-learn classifier of ``vectors`` (N, D) into ``labels`` (N,): 1 female, 0 male, NaN left out."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    known = ~np.isnan(labels)
    if set(labels[known].astype(int)) != {0, 1}:
        raise EvaluationError("an attack on the sex needs training speakers of both sexes, in spk2gender")
    if name == "external":
        learner: object = MLPClassifier(
            hidden_layer_sizes=(config.hidden,),
            learning_rate_init=config.lr,
            batch_size=min(config.batch, int(known.sum())),
            max_iter=config.epochs,
            early_stopping=int(known.sum()) >= config.stop_early_from,
            random_state=config.seed,
        )
    elif name == "probe":
        learner = LogisticRegression(C=config.c, class_weight="balanced", max_iter=2000)
    else:
        raise EvaluationError(f"unknown attacker {name!r}; choose one of {', '.join(ATTACKERS)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last epoch is as good a place to stop as any
        return make_pipeline(StandardScaler(), learner).fit(unit(vectors[known]), labels[known].astype(int))


def auc(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Area under the ROC curve; NaN when a sex is absent. (N,), (N,)"""
    from sklearn.metrics import roc_auc_score

    kept = ~np.isnan(labels) if weights is None else ~np.isnan(labels) & (weights > 0)
    if len(set(labels[kept])) < 2:
        return float("nan")
    return float(roc_auc_score(labels[kept], scores[kept], sample_weight=None if weights is None else weights[kept]))


def attack_gender(
    train: dict[str, tuple[np.ndarray, np.ndarray]],
    vectors: np.ndarray,
    labels: np.ndarray,
    speakers: Sequence[str],
    config: GenderAttackConfig,
) -> list[dict]:
    """Every attacker on the test embeddings, the strongest (AUC furthest from a half) first.

    Args:
        train: knowledge (``ignorant`` or ``informed``) -> its training embeddings ``(N, D)`` and labels ``(N,)``.
        vectors, labels, speakers: of the test; speakers are resampled for the interval.

    An AUC below a half tells as much as one above: ``advantage`` is ``max(AUC, 1 - AUC)``.
    """
    if np.isnan(auc(np.zeros(len(labels)), labels)):
        raise EvaluationError("an attack on the sex needs test speakers of both sexes, in spk2gender")
    names, index = np.unique(list(speakers), return_inverse=True)
    found = []
    for knowledge, (known_vectors, known_labels) in train.items():
        for name in ATTACKERS:
            model = train_classifier(name, known_vectors, known_labels, config)
            scores = model.predict_proba(unit(vectors))[:, 1]
            value = auc(scores, labels)
            interval = bootstrap_speakers(_resampled(scores, labels, index), speakers, config.replicates)
            found.append(
                {
                    "attacker": name,
                    "knowledge": knowledge,
                    "auc": value,
                    "auc_low": interval.low,
                    "auc_high": interval.high,
                    "advantage": max(value, 1.0 - value),
                    "num_speakers": len(names),
                    "num_embeddings": int((~np.isnan(labels)).sum()),
                }
            )
    return sorted(found, key=lambda row: -row["advantage"])


def _resampled(scores: np.ndarray, labels: np.ndarray, index: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda counts: auc(scores, labels, counts[index])


def above_ceiling(row: dict, ceiling: float | None) -> bool:
    """Whether a measured AUC refutes the ceiling: its interval lies above, on the side that the attacker takes."""
    if ceiling is None:
        return False
    low = row["auc_low"] if row["auc"] >= 0.5 else 1.0 - row["auc_high"]
    return bool(low > ceiling) if low == low else row["advantage"] > ceiling


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of unit norm; only the direction of an embedding is compared anywhere. (N, D) -> (N, D) float64"""
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(1e-9)
