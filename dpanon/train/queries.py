"""Teachers are asked about public speech, and answer with noise: the only way from private speech to a student.

Every question is counted in ``<teachers>/queries.jsonl``, synced before any noise is drawn. What the answers cost is
accounted in ``dpanon.privacy``; here a budget (epsilon, delta) for all questions together becomes a mechanism.
"""

import fcntl
import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import dpanon
from dpanon.anonymize.statement import write_text
from dpanon.data.data_dir import DataDir, write_data_dir
from dpanon.data.partitions import Partition, read_partition, require_apart
from dpanon.errors import DataDirError, UsageError
from dpanon.models.commands import load_commands
from dpanon.privacy import Guarantee, PrivacyError, accounting, psn
from dpanon.privacy.book import Account
from dpanon.privacy.calibration import frame_epsilon, psn_mu
from dpanon.privacy.pate import NO_ANSWER, ConfidentGNMax, GNMax
from dpanon.privacy.votes import NoisyVotes
from dpanon.train.commands import Utterances, recognise
from dpanon.train.sequences import ask_candidates, ask_tokens, texts_of

METHODS = ("gnmax", "confident", "gaussian", "laplace", "psn", "psn-published")
LABELS = ("gnmax", "confident")  # votes; the others: posteriors
Mechanism = GNMax | NoisyVotes


@dataclass(frozen=True)
class QueriesConfig:
    """Every key of conf/queries.yaml is a field here."""

    queries: int = 250  # utterances asked about; all of them share the budget
    positions: int = 0  # transducers: tokens of an utterance that are asked about, each of them a query; 0: one word
    candidates: int = 0  # transducers: texts that the public start finds in an utterance, of which teachers choose one
    answers: float = 0.7  # confident: most answers, of the queries
    check: float = 0.3  # confident: share of the squared budget that the checks get
    threshold: float = 0.5  # confident: least part of the teachers behind a label

    def __post_init__(self):
        if self.queries < 1 or self.positions < 0 or self.candidates < 0 or self.candidates == 1:
            raise ValueError("queries must be >= 1, positions >= 0, candidates 0 or >= 2")
        if self.positions and self.candidates:
            raise ValueError("teachers are asked about positions, or about candidates")
        if not all(0 < getattr(self, n) < 1 for n in ("answers", "check", "threshold")):
            raise ValueError("answers, check and threshold must be in (0, 1)")

    @property
    def asked(self) -> int:
        """Answers that are accounted for: all of them, used or not."""
        return self.queries * max(1, self.positions)


def mechanism_for(
    method: str, config: QueriesConfig, partition: Partition, classes: int, epsilon: float, delta: float
) -> Mechanism:
    """The mechanism whose declared queries together are (epsilon, delta)-DP; PrivacyError if it does not fit."""
    if method not in METHODS:
        raise UsageError(f"--method takes one of {', '.join(METHODS)}, not {method!r}")
    if (partition.kind == "poisson") != method.startswith("psn"):
        raise PrivacyError(f"{method} does not account for a {partition.kind} partition; psn needs a poisson one")
    teachers, queries, unit = partition.teachers, config.asked, partition.unit
    if partition.rate is not None:
        published = method == "psn-published"
        mu = (published_mu if published else psn_mu)(epsilon, delta, teachers, partition.rate)
        return NoisyVotes(teachers, queries, mu=mu, unit=unit, rate=partition.rate)
    if method == "laplace":
        return NoisyVotes(teachers, queries, epsilon=queries * frame_epsilon(epsilon, delta, queries), unit=unit)
    mu = accounting.gdp_mu(epsilon, delta)
    if method == "gaussian":
        return NoisyVotes(teachers, queries, mu=mu, unit=unit)
    if method == "gnmax":
        return GNMax(teachers, classes, _sigma(math.sqrt(2 * queries), mu), queries, unit)
    answers = max(1, round(config.answers * queries))
    return ConfidentGNMax(
        teachers,
        classes,
        _sigma(math.sqrt(2 * answers), mu * math.sqrt(1 - config.check)),
        queries,
        threshold=config.threshold * teachers,
        sigma_check=_sigma(math.sqrt(queries), mu * math.sqrt(config.check)),
        answers=answers,
        unit=unit,
    )


def published_mu(epsilon: float, delta: float, teachers: int, rate: float) -> float:
    """mu for which paper D's formula gives ``epsilon``: the inverse of ``psn.published_epsilon``. Too little noise."""
    return accounting.gdp_mu(math.log1p(math.expm1(epsilon) / rate), min(delta / rate, 0.5))


def published_epsilon(mechanism: Mechanism, delta: float) -> float | None:
    """What the formula of paper D gives for the noise of a PSN mechanism; no guarantee. None for the others."""
    if not isinstance(mechanism, NoisyVotes) or mechanism.rate is None or mechanism.mu is None:
        return None
    return psn.published_epsilon(mechanism.mu, mechanism.teachers, mechanism.rate, delta)


def choose_queries(public: DataDir, queries: int) -> tuple[str, ...]:
    """So many utterances, evenly from the sorted list: a public choice, the same for every method."""
    if queries > len(public):
        raise UsageError(f"{public.path}: {queries} queries, but only {len(public)} public utterances")
    return tuple(public.utts[i * len(public) // queries] for i in range(queries))


def ask(folder: Path, public: DataDir, utts: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Posteriors (T, Q, V) of all teachers, without noise: private. And the words."""
    found, words = [], None
    for number in range(1, read_partition(folder / "partition.json").teachers + 1):
        model, known = load_commands(folder / str(number) / "model.pt")
        if words is not None and known != words:
            raise DataDirError(f"{folder}/{number}: was trained with another vocabulary")
        words = known
        found.append(recognise(model, Utterances.read(public, model.config.bands, utts)).exp().double().numpy())
    assert words is not None
    return np.stack(found), words


def release_labels(
    folder: Path,
    private: DataDir,
    public: DataDir,
    out: Path,
    system: str,
    method: str,
    config: QueriesConfig,
    epsilon: float,
    delta: float,
    cap: float | None = None,
    start: Path | None = None,
) -> dict:
    """Noisy labels of public utterances -> a data directory with ``text`` and privacy.json; returns the latter.

    Args:
        folder: teachers, with partition.json; queries.jsonl is there afterwards.
        cap: PrivacyError, before anything is drawn, if all that these teachers ever answered would cost more.
        start: the public model that finds candidates.
    """
    require_apart(private, public)
    if public.has("text"):
        raise UsageError(f"{public.path}: has text: a student needs no answers about speech whose words are known")
    if out.exists():
        raise UsageError(f"{out} exists; to ask again costs privacy again: remove it if that is meant")
    partition = read_partition(folder / "partition.json", private)
    utts, texts = choose_queries(public, config.queries), None
    if config.candidates:
        if start is None:
            raise UsageError("candidates: need the public model that finds them")
        posteriors, texts = ask_candidates(folder, public, utts, start, config.candidates)
    elif config.positions:
        posteriors, words = ask_tokens(folder, public, utts, config.positions)
    else:
        posteriors, words = ask(folder, public, utts)
    mechanism = mechanism_for(method, config, partition, posteriors.shape[-1], epsilon, delta)
    total = count_queries(folder, system, mechanism.guarantee(), delta, cap)
    released = mechanism.release(posteriors.argmax(-1) if method in LABELS else posteriors)
    labels = released.value if method in LABELS else released.value.argmax(-1)
    if texts is not None:
        said = {utt: row[label] for utt, row, label in zip(utts, texts, labels.tolist(), strict=True) if label >= 0}
        answered = {utt: text for utt, text in said.items() if text}
    elif config.positions:
        answered = texts_of(labels, utts, words)
    else:
        answered = {utt: words[label] for utt, label in zip(utts, labels.tolist(), strict=True) if label != NO_ANSWER}
    if not answered:
        raise PrivacyError(f"{out}: no query was answered (and all are paid for); lower the threshold next time")
    statement = statement_of(system, released.guarantee, delta) | {
        "options": {
            "method": method,
            "queries": config.asked,
            "partition": partition.statement(),
            "epsilon": epsilon,
        },
        "epsilon_as_published": published_epsilon(mechanism, delta),
        "epsilon_all_answers_of_these_teachers": total,
        "sigma": float(mechanism.sigma),
        "num_answered": len(answered),
    }
    _write(public, answered, statement, out)
    return statement


def statement_of(system: str, guarantee: Guarantee, delta: float) -> dict:
    """What privacy.json says of a central release: labels, or a model."""
    return {
        "schema": 1,
        "dpanon": dpanon.__version__,
        "system": system,
        "guarantee": guarantee.to_dict(),
        "sentence": guarantee.sentence(delta),
        "unit": guarantee.unit,
        "adjacency": guarantee.adjacency,
        "epsilon": guarantee.epsilon(delta),
        "delta": delta,
        "not_covered": [*guarantee.not_covered, "other answers or models from the same private set: costs add up"],
        "sampler": guarantee.sampler,
        "eer_floor": guarantee.eer_floor(),
        "releasable": guarantee.releasable,
    }


def count_queries(folder: Path, system: str, guarantee: Guarantee, delta: float, cap: float | None) -> float | None:
    """Count answers before they are drawn; epsilon of all that these teachers ever gave, None where no bound holds."""
    file = folder / "queries.jsonl"
    account = Account("utterance")
    with file.open("a+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # two that ask at once are counted one after the other
        stream.seek(0)
        try:
            for line in stream:
                account.add(Guarantee.from_dict(json.loads(line)["guarantee"]))
        except (KeyError, TypeError, ValueError) as error:
            raise PrivacyError(f"{file}: line is not a counted query ({error}): nothing is asked without it") from error
        account.add(guarantee)
        total: float = account.total.epsilon(delta)  # PrivacyError: PSN teachers answer once
        if cap is not None and not total <= cap:
            raise PrivacyError(
                f"{file}: all answers would cost epsilon {total:.4g}, and {cap:g} is allowed: none is drawn"
            )
        row = {"time": int(time.time()), "system": system, "delta": delta, "guarantee": guarantee.to_dict()}
        stream.write(json.dumps(row, allow_nan=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    return total if math.isfinite(total) else None


def _write(public: DataDir, text: dict[str, str], statement: dict, out: Path) -> None:
    tables = {name: table for name, table in public.tables().items() if name not in ("spk2utt", "fbank.scp")}
    speakers = {public.speaker(utt) for utt in text}
    kept = {
        name: {key: value for key, value in table.items() if key in (speakers if name.startswith("spk2") else text)}
        for name, table in tables.items()
    }
    data = write_data_dir(out, kept | {"text": text})
    write_text(data.path / "privacy.json", json.dumps(statement, allow_nan=False, indent=1) + "\n")


def _sigma(sensitivity: float, mu: float) -> float:
    return math.nextafter(sensitivity / mu, math.inf) * (1 + 1e-12)
