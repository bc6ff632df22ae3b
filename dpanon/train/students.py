"""Students: trained on public speech with the noisy labels; an ensemble with weights (paper D).

The weights are those of the weighted majority algorithm (Littlestone and Warmuth 1994), whose rounds are the released
labels that a student was not trained on. Nothing private is looked at: all of it is post-processing of the labels.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from dpanon.anonymize.statement import write_text
from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import require_apart
from dpanon.errors import DataDirError, UsageError
from dpanon.models.commands import Commands, load_commands, save_commands
from dpanon.train.commands import TrainCommandsConfig, Utterances, recognise, train_commands

PENALTY = 0.9  # factor on the weight of a student for each label that it gets wrong


@dataclass(frozen=True)
class Ensemble:
    """Models with weights that sum to 1."""

    models: tuple[Commands, ...]
    weights: tuple[float, ...]
    words: tuple[str, ...]

    def recognise(self, utterances: Utterances) -> Tensor:
        """Weighted mean of the posteriors, as log-probabilities ``(N, V)``."""
        total = sum(w * recognise(m, utterances).exp() for w, m in zip(self.weights, self.models, strict=True))
        return torch.as_tensor(total).clamp_min(1e-30).log()


def require_released(data: DataDir, private: DataDir) -> dict:
    """privacy.json of a set whose labels may be learned from; UsageError or PrivacyError for any other."""
    file = data.path / "privacy.json"
    if not file.is_file():
        raise UsageError(
            f"{file}: no such file: a student learns from released labels only; --baseline true trains on "
            "clear speech, without any privacy"
        )
    require_apart(private, data)
    statement = json.loads(file.read_text(encoding="utf-8"))
    if not statement.get("releasable"):
        raise UsageError(f"{file}: says that the labels may not leave")
    return statement


def train_students(
    out: Path,
    config: TrainCommandsConfig,
    utterances: Utterances,
    labels: Tensor,
    words: tuple[str, ...],
    count: int = 1,
    start: Commands | None = None,
    unlabelled: Utterances | None = None,
) -> Ensemble:
    """Train ``count`` students, weigh them, and write ``out/<k>/model.pt`` and ``out/weights.json``.

    With more than one, student k does not hear the labels k, k + count, ...; those judge it. ``unlabelled`` public
    speech is labelled by the ensemble and learned by a second round of students (self-training).
    """
    ensemble = _round(out, config, utterances, labels, words, count, start)
    if unlabelled is not None and len(unlabelled):
        guessed = ensemble.recognise(unlabelled).exp()
        both = utterances.join(unlabelled)
        first = ensemble.recognise(utterances).exp()  # their noisy labels, corrected by what all others say
        targets = torch.cat([(first + torch.eye(len(words))[labels]) / 2, guessed])
        ensemble = _round(out, config, both, targets, words, count, start)
    write_text(out / "weights.json", json.dumps({"weights": ensemble.weights}) + "\n")
    return ensemble


def adapt(
    out: Path, config: TrainCommandsConfig, known: Utterances, labels: Tensor, public: Utterances, start: Commands
) -> Commands:
    """``start`` goes on with known labels and its own guesses about public speech: the surer half of each word."""
    log_p = recognise(start, public)
    sure, guess = log_p.max(-1)
    chosen: list[int] = []
    for word in guess.unique().tolist():
        rows = (guess == word).nonzero()[:, 0]
        chosen += rows[sure[rows].argsort(descending=True)[: (len(rows) + 1) // 2]].tolist()
    both, targets = known.join(public.take(chosen)), torch.cat([labels, guess[chosen]])
    return train_commands(out, config, both, targets, log_p.shape[1], start, "adaptation")


def load_ensemble(path: Path) -> Ensemble:
    """A folder of ``train_students``, or one model.pt in a folder."""
    if (path / "model.pt").is_file():
        model, words = load_commands(path / "model.pt")
        return Ensemble((model,), (1.0,), words)
    try:
        weights = json.loads((path / "weights.json").read_text(encoding="utf-8"))["weights"]
    except (OSError, ValueError, KeyError) as error:
        raise DataDirError(f"{path}: neither model.pt nor weights.json of a recogniser ({error})") from error
    loaded = [load_commands(path / str(k) / "model.pt") for k in range(1, len(weights) + 1)]
    return Ensemble(tuple(model for model, _ in loaded), tuple(weights), loaded[0][1])


def majority_weights(wrong: Sequence[int]) -> tuple[float, ...]:
    """Weights of students with so many wrong guesses of as many rounds."""
    least = min(wrong)
    weights = [PENALTY ** (number - least) for number in wrong]
    return tuple(weight / sum(weights) for weight in weights)


def _round(
    out: Path,
    config: TrainCommandsConfig,
    utterances: Utterances,
    targets: Tensor,
    words: tuple[str, ...],
    count: int,
    start: Commands | None,
) -> Ensemble:
    models, wrong = [], []
    for k in range(count):
        held = list(range(k, len(utterances), count)) if count > 1 else []
        heard = [i for i in range(len(utterances)) if i not in set(held)]
        seeded = replace(config, loop=replace(config.loop, seed=config.loop.seed + k))
        folder = out / str(k + 1)
        model = train_commands(
            folder, seeded, utterances.take(heard), targets[heard], len(words), start, f"student {k + 1}"
        )
        save_commands(model, words, folder / "model.pt")
        models.append(model)
        said = targets[held] if targets.dim() == 1 else targets[held].argmax(-1)
        wrong.append(int((recognise(model, utterances.take(held)).argmax(-1) != said).sum()) if held else 0)
    return Ensemble(tuple(models), majority_weights(wrong), tuple(words))
