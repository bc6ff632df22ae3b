"""Is the emotion still heard? Unweighted average recall (UAR) of a speech emotion classifier.

VoicePrivacy 2024 and 2026: IEMOCAP has 5 folds (``spk2fold``), the classifier of a fold is trained on *original* speech
of the others and tested on the anonymized speech of its own; UAR is the mean of the classes' recalls, and over folds.

``functionals`` needs no model hub: statistics of f0 and of log-mel energies and a logistic regression, trained here.
Its UAR is lower than that of the challenge's wav2vec2, so compare it only with itself. ``wav2vec2`` is the hub's.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from dpanon.errors import MissingDependencyError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import REPLICATES, bootstrap_speakers

CLASSIFIERS = ("functionals", "wav2vec2")


class EmotionClassifier(Protocol):
    """``fit`` on features and labels of original speech, ``predict`` labels of others; a pretrained one ignores fit."""

    name: str

    def features(self, samples: np.ndarray) -> np.ndarray: ...

    def fit(self, features: Sequence[np.ndarray], labels: Sequence[str]) -> None: ...

    def predict(self, features: Sequence[np.ndarray]) -> list[str]: ...


class Functionals:
    """Means, deviations and slopes of f0 and log-mel energies; standardised; balanced logistic regression."""

    name = "functionals"

    def features(self, samples: np.ndarray) -> np.ndarray:
        """16 kHz speech ``(L,)`` -> (166,)"""
        from dpanon.features.f0 import extract_f0
        from dpanon.features.fbank import fbank

        mel = fbank(samples)  # (T, 80)
        f0 = extract_f0(samples)
        voiced = np.log(f0[f0 > 0]) if (f0 > 0).any() else np.zeros(1)
        steps = np.abs(np.diff(voiced)) if len(voiced) > 1 else np.zeros(1)
        level = mel.mean(-1)
        pitch = [voiced.mean(), voiced.std(), steps.mean(), (f0 > 0).mean(), level.std(), np.abs(np.diff(level)).mean()]
        return np.concatenate([mel.mean(0), mel.std(0), pitch]).astype(np.float64)

    def fit(self, features, labels):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model = LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000)
        self._model = make_pipeline(StandardScaler(), model).fit(np.stack(features), list(labels))

    def predict(self, features):
        return [str(label) for label in self._model.predict(np.stack(features))]


class Wav2Vec2:
    """speechbrain/emotion-recognition-wav2vec2-IEMOCAP; needs SpeechBrain and a model hub or its cache.

    One model for all folds, which has heard some of IEMOCAP: its UAR flatters. ``fit`` does nothing.
    """

    name = "wav2vec2"

    def __init__(self):
        try:
            from speechbrain.inference.interfaces import foreign_class
        except (ImportError, OSError) as error:
            raise MissingDependencyError(
                f"emotions by wav2vec2 need SpeechBrain: pip install 'dpanon[speechbrain]' ({error})"
            ) from None
        source = "speechbrain/emotion-recognition-wav2vec2-IEMOCAP"
        try:
            self._net = foreign_class(
                source=source, pymodule_file="custom_interface.py", classname="CustomEncoderWav2vec2Classifier"
            )
        except Exception as error:  # the hub's client raises whatever its network layer does
            raise MissingDependencyError(f"{source} is neither in the cache nor can it be fetched: {error}") from error

    def features(self, samples: np.ndarray) -> np.ndarray:
        return np.asarray(samples, dtype=np.float32)

    def fit(self, features, labels):
        pass

    def predict(self, features):
        import torch

        return [str(self._net.classify_batch(torch.from_numpy(wave)[None])[3][0]) for wave in features]


def load_classifier(name: str = "functionals") -> EmotionClassifier:
    """The classifier of that name.

    Raises:
        EvaluationError: unknown name.
        MissingDependencyError: its package or model is absent.
    """
    classes: dict[str, type[EmotionClassifier]] = {"functionals": Functionals, "wav2vec2": Wav2Vec2}
    if name not in classes:
        raise EvaluationError(f"unknown emotion classifier {name!r}; choose one of {', '.join(CLASSIFIERS)}")
    return classes[name]()


def cross_validated(
    classifier: EmotionClassifier,
    trained: Mapping[str, np.ndarray],
    tested: Mapping[str, np.ndarray],
    emotions: Mapping[str, str],
    folds: Mapping[str, str],
) -> dict[str, str]:
    """Label of every tested utterance, by the classifier trained on the trained utterances of the other folds.

    Args:
        trained, tested: utterance -> features, of original speech and of what is judged (which may be the same).
        emotions, folds: of every utterance.
    """
    out: dict[str, str] = {}
    for fold in sorted({folds[utt] for utt in tested}):
        used = [utt for utt in sorted(trained) if folds[utt] != fold]
        if len({emotions[utt] for utt in used}) < 2:
            raise EvaluationError(
                f"fold {fold}: the others hold fewer than two emotions: a classifier cannot be trained"
            )
        classifier.fit([trained[utt] for utt in used], [emotions[utt] for utt in used])
        asked = [utt for utt in sorted(tested) if folds[utt] == fold]
        out |= dict(zip(asked, classifier.predict([tested[utt] for utt in asked]), strict=True))
    return out


def uar(truth: Sequence[str], predicted: Sequence[str], weights=None) -> float:
    """Mean over the classes of ``truth`` of the share recognised.

    Raises:
        EvaluationError: no utterances, lengths differ, or a single class: its recall says nothing.
    """
    if len(truth) != len(predicted) or not len(truth):
        raise EvaluationError(f"{len(truth)} labels and {len(predicted)} predictions: expected equal numbers, not none")
    labels, index = np.unique(np.asarray(truth, dtype=str), return_inverse=True)
    if len(labels) < 2:
        raise EvaluationError(f"all utterances have the emotion {labels[0]!r}: the recall of one class says nothing")
    weight = np.ones(len(index)) if weights is None else np.asarray(weights, dtype=np.float64)
    right = np.asarray(truth, dtype=str) == np.asarray(predicted, dtype=str)
    total = np.bincount(index, weight, len(labels))
    recall = np.bincount(index, weight * right, len(labels))[total > 0] / total[total > 0]
    return float(recall.mean()) if (total > 0).all() else float("nan")


def mean_uar(
    predicted: Mapping[str, str],
    emotions: Mapping[str, str],
    folds: Mapping[str, str],
    speakers: Mapping[str, str],
    replicates: int = REPLICATES,
) -> dict:
    """UAR averaged over folds with a bootstrap-by-speaker interval (of the pooled one), and recall of each emotion."""
    utts = sorted(predicted)
    truth, guess = [emotions[utt] for utt in utts], [predicted[utt] for utt in utts]
    names = {name: i for i, name in enumerate(sorted({speakers[utt] for utt in utts}))}
    index = np.asarray([names[speakers[utt]] for utt in utts])
    interval = bootstrap_speakers(lambda count: uar(truth, guess, count[index]), list(names), replicates)
    by_fold = []
    for fold in sorted({folds[utt] for utt in utts}):
        own = [utt for utt in utts if folds[utt] == fold]
        by_fold.append(uar([emotions[utt] for utt in own], [predicted[utt] for utt in own]))
    out: dict = {"uar": float(np.mean(by_fold)), "uar_low": interval.low, "uar_high": interval.high}
    for label in sorted(set(truth)):
        own = [utt for utt in utts if emotions[utt] == label]
        out[f"recall_{label}"] = float(np.mean([predicted[utt] == label for utt in own]))
    return out | {"num_utterances": len(utts), "num_folds": len(by_fold), "uar_folds": by_fold}
