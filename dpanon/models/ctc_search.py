"""Labels from the frames of a CTC model (Graves et al. 2006): the best path, or the best prefixes; 0 is the blank."""

import math
from collections import defaultdict

import torch
from torch import Tensor

_NEVER = -math.inf


def greedy(logits: Tensor, lengths: Tensor) -> list[tuple[int, ...]]:
    """The best label of each frame, repetitions and blanks left out. ``(N, T, V)``, ``(N,)``"""
    found = []
    for path, length in zip(logits.argmax(-1), lengths.tolist(), strict=True):
        labels = torch.unique_consecutive(path[:length])
        found.append(tuple(labels[labels != 0].tolist()))
    return found


def prefixes(log_p: Tensor, beam: int) -> list[tuple[tuple[int, ...], float]]:
    """At most ``beam`` label sequences of one utterance with their log-probabilities, the best first.

    Prefix beam search (Hannun et al. 2014, without a language model): all paths of a sequence add up, as far as their
    prefixes stay in the beam. ``(T, V)``
    """
    kept: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, _NEVER)}  # ends in a blank, or in its last label
    num = min(beam + 1, log_p.shape[1])
    for frame in log_p.double():
        scores = frame.tolist()
        likely = [label for label in frame.topk(num).indices.tolist() if label]
        found: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [_NEVER, _NEVER])
        for labels, (blank, label) in kept.items():
            both = _add(blank, label)
            same = found[labels]
            same[0] = _add(same[0], both + scores[0])
            if labels:
                same[1] = _add(same[1], label + scores[labels[-1]])
            for new in likely:
                longer = found[(*labels, new)]
                before = blank if labels and labels[-1] == new else both  # a repetition needs a blank between
                longer[1] = _add(longer[1], before + scores[new])
        possible = [item for item in found.items() if max(item[1]) > _NEVER]
        best = sorted(possible, key=lambda item: -_add(item[1][0], item[1][1]))[:beam]
        kept = {labels: (ends[0], ends[1]) for labels, ends in best}
    return [(labels, _add(blank, label)) for labels, (blank, label) in kept.items()]


def _add(a: float, b: float) -> float:
    """log(exp(a) + exp(b))"""
    larger = max(a, b)
    return larger if min(a, b) == _NEVER else larger + math.log1p(math.exp(min(a, b) - larger))
