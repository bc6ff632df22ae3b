"""Who is compared with whom: enrolment models and trials of a speaker verification test.

A test consists of an enrolment set and a trial set, which may be two directories or two parts of one. The trial
set's ``trials`` table is used when there is one, and the enrolment set's ``enrolls`` list; else every speaker is
compared with every trial utterance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dpanon.data.data_dir import DataDir
from dpanon.evaluate import EvaluationError

PROTOCOLS = ("speakers", "pairs")


@dataclass(frozen=True)
class TrialList:
    """``models``: name -> its enrolment utterances; ``speakers``: name -> the person, for resampling."""

    models: dict[str, tuple[str, ...]]
    speakers: dict[str, str]
    trials: tuple[tuple[str, str, bool], ...]  # model, trial utterance, same person

    @property
    def trial_utts(self) -> list[str]:
        return sorted({utt for _, utt, _ in self.trials})


def make_trials(enrol: DataDir, trial: DataDir, protocol: str = "speakers", num_enrol: int = 3) -> TrialList:
    """Trials of two sets.

    Args:
        protocol: ``speakers``: one model per speaker from all its enrolment utterances. ``pairs``: every utterance
            of the enrolment set is a model of its own and meets every trial utterance but itself.
        num_enrol: only when both sets hold the same utterances and no ``enrolls`` list: the first ``num_enrol``
            utterances of a speaker enrol, the others are trials.

    Raises:
        EvaluationError: a trial names a speaker who is not enrolled, an utterance is both enrolment and trial of one
            model, or there are no target or no nontarget trials.
    """
    if protocol not in PROTOCOLS:
        raise EvaluationError(f"unknown protocol {protocol!r}; choose one of {', '.join(PROTOCOLS)}")
    listed = trial.trials() if trial.has("trials") and protocol == "speakers" else None
    models: dict[str, tuple[str, ...]]
    if protocol == "pairs":
        models = {utt: (utt,) for utt in enrol.enrolls or enrol.utts}
        speakers = {utt: enrol.speaker(utt) for utt in models}
        trials = [(model, utt, speakers[model] == trial.speaker(utt)) for model in models for utt in trial.utts]
        trials = [row for row in trials if row[0] != row[1]]
        return _checked(TrialList(models, speakers, tuple(trials)), trial)
    chosen: Sequence[str] = enrol.enrolls or enrol.utts
    if listed is None and set(chosen) >= set(trial.utts):
        chosen = _first_utterances(enrol, num_enrol)
    by_speaker: dict[str, list[str]] = {}
    for utt in chosen:
        by_speaker.setdefault(enrol.speaker(utt), []).append(utt)
    if listed is None:
        rest = [utt for utt in trial.utts if utt not in set(chosen)]
        listed = [(speaker, utt, speaker == trial.speaker(utt)) for speaker in sorted(by_speaker) for utt in rest]
    unknown = sorted({speaker for speaker, _, _ in listed} - set(by_speaker))
    if unknown:
        raise EvaluationError(
            f"{trial.path}/trials: {len(unknown)} enrolment speakers are not in {enrol.path} (e.g. {unknown[:3]})"
        )
    models = {speaker: tuple(utts) for speaker, utts in by_speaker.items()}
    return _checked(TrialList(models, {name: name for name in models}, tuple(listed)), trial)


def _first_utterances(data: DataDir, num: int) -> list[str]:
    count: dict[str, int] = {}
    chosen = []
    for utt in data.utts:
        speaker = data.speaker(utt)
        count[speaker] = count.get(speaker, 0) + 1
        if count[speaker] <= num:
            chosen.append(utt)
    return chosen


def _checked(trials: TrialList, trial: DataDir) -> TrialList:
    both = sorted({utt for model, utt, _ in trials.trials if utt in trials.models[model]})
    if both:
        raise EvaluationError(
            f"{trial.path}: {len(both)} utterances are enrolment and trial of one speaker (e.g. {both[:3]}): "
            "equal words would be recognised, not the voice"
        )
    targets = sum(same for _, _, same in trials.trials)
    if not targets or targets == len(trials.trials):
        raise EvaluationError(
            f"{trial.path}: {targets} target and {len(trials.trials) - targets} nontarget trials: both kinds are "
            "needed; give at least two speakers, each with enrolment and trial utterances"
        )
    return trials
