"""An utterance as few tokens: which code a segment of speech has, and about how long it is.

    codes of the columns -> segments, their number fixed by the length -> tokens [k-ary randomized response] -> columns

The number of tokens follows from the number of frames, so that it tells nothing more. A token that is not kept comes
out as any other; a hidden Markov model over all received tokens, which knows the public probability of that, says
what each probably was: post-processing, like the noise's removal in ``codes``.
(Segments by dynamic programming with a price on every border: Kamper and van Niekerk 2021.)
"""

import numpy as np
import torch
from torch import Tensor

from dpanon.models.codes import COLUMN, DURATIONS, Codebooks, forward_backward

LONGEST = 12  # columns of a segment
RATE = 25.0  # tokens a second


def num_symbols(codes: Codebooks) -> int:
    """Size of the alphabet."""
    return codes.vectors.shape[1] * len(DURATIONS)


def num_tokens(num_frames: int, rate: float = RATE) -> int:
    """How many tokens an utterance of so many frames of 10 ms has, whatever is said in it."""
    columns = -(-num_frames // COLUMN)
    return max(1, min(columns, round(rate * num_frames / 100)))


def segments(distance: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest ``num`` segments of one code each, none longer than need be.

    Args:
        distance: (C, K), of every column to every code vector.

    Returns:
        Codes (num,) and first columns (num,).
    """
    low, high = 0.0, float(distance.max() - distance.min()) * len(distance) + 1.0
    best = [(0, len(distance), int(distance.sum(0).argmin()))]
    for _ in range(24):  # the price at which there are as many as asked for, or just fewer
        price = 0.5 * (low + high) if low else high * 1e-3
        found = _halved(_at_price(distance, price), LONGEST)
        if len(found) <= num:
            best, high = found, price
            if len(found) == num:
                break
        else:
            low = price
    while len(best) < num:  # the longest are cut in two until there are enough
        longest = max(range(len(best)), key=lambda i: best[i][1] - best[i][0])
        best[longest : longest + 1] = _cut(best[longest])
    return np.array([code for _, _, code in best]), np.array([start for start, _, _ in best])


def duration_class(lengths: np.ndarray) -> np.ndarray:
    """(S,) columns -> (S,) the class whose duration is nearest, in ratio."""
    return np.abs(np.log(np.asarray(lengths, dtype=np.float64)[:, None] / np.array(DURATIONS))).argmin(1)


def to_tokens(distance: np.ndarray, num_frames: int, rate: float = RATE) -> np.ndarray:
    """Distances (C, K) -> tokens (S,) in [0, K D): code times D plus class of duration."""
    codes, starts = segments(distance, num_tokens(num_frames, rate))
    return codes * len(DURATIONS) + duration_class(np.diff(np.append(starts, len(distance))))


def read_tokens(received: np.ndarray, keep: float, chain: Tensor, durations: Tensor) -> tuple[Tensor, np.ndarray]:
    """What noisy tokens say: the probability of each code (S, K), and durations (S,) in columns.

    Args:
        received: (S,) tokens after randomized response.
        keep: probability that a token was kept.
        chain: (K, K) transitions between the codes of neighbouring segments.
        durations: (K, D) probability of each class, given the code.
    """
    size, classes = durations.shape
    code, length = np.divmod(received, classes)
    lost = (1.0 - keep) / max(1, size * classes - 1)
    likelihood = torch.full((len(received), size), lost)
    at = torch.arange(len(received))
    kept = durations[code, length] * (keep - lost)
    likelihood[at, code] += kept
    posterior = forward_backward(torch.log(likelihood)[None, :, None], chain[None])[0, :, 0]
    whole = posterior[at, code] * kept / (kept + lost)  # the token was kept, or came out right by chance
    nominal = torch.tensor(DURATIONS)
    typical = (posterior @ durations) @ nominal
    return posterior, torch.where(whole > 0.5, nominal[length], typical).numpy()


def spread(values: Tensor, durations: np.ndarray, num_columns: int) -> Tensor:
    """(S, D) -> (num_columns, D): each for its share of the length, which is public."""
    ends = np.rint(np.cumsum(durations) / durations.sum() * num_columns).astype(int)
    return values[np.searchsorted(ends, np.arange(num_columns), side="right").clip(max=len(values) - 1)]


def statistics(tokens: list[np.ndarray], size: int) -> tuple[Tensor, Tensor]:
    """Of public speech: transitions (K, K) between codes, and the classes of duration of each (K, D). None is 0."""
    chain, durations = torch.zeros(size, size), torch.zeros(size, len(DURATIONS))
    usual = torch.zeros(size)
    for row in tokens:
        code, length = (torch.from_numpy(x) for x in np.divmod(row, len(DURATIONS)))
        chain.index_put_((code[:-1], code[1:]), torch.ones(len(code) - 1), accumulate=True)
        durations.index_put_((code, length), torch.ones(len(code)), accumulate=True)
        usual += torch.bincount(code, minlength=size)
    chain += 10.0 * (usual + 0.1) / (usual + 0.1).sum()  # a code that follows none yet: as often as it is at all
    durations += 0.5
    return chain / chain.sum(1, keepdim=True), durations / durations.sum(1, keepdim=True)


def cheapest(distance: np.ndarray, price: float) -> np.ndarray:
    """Distances (C, K) -> the codes (C,) with the least sum, when each change costs ``price`` (Viterbi)."""
    num, size = distance.shape
    came = np.empty((num, size), dtype=np.int64)
    cost, stay = distance[0].copy(), np.arange(size)
    for t in range(1, num):
        best = int(cost.argmin())
        jump = cost[best] + price
        came[t] = np.where(cost <= jump, stay, best)
        cost = np.minimum(cost, jump) + distance[t]
    path = np.empty(num, dtype=np.int64)
    path[-1] = cost.argmin()
    for t in range(num - 1, 0, -1):
        path[t - 1] = came[t, path[t]]
    return path


def _at_price(distance: np.ndarray, price: float) -> list[tuple[int, int, int]]:
    """The cheapest segments (start, stop, code) when each border costs ``price``."""
    codes = cheapest(distance, price)
    starts = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])).tolist()
    return list(zip(starts, [*starts[1:], len(codes)], codes[starts].tolist(), strict=True))


def _halved(found: list[tuple[int, int, int]], longest: int) -> list[tuple[int, int, int]]:
    """The same without any longer than ``longest``."""
    done = []
    for start, stop, code in found:
        pieces = -(-(stop - start) // longest)
        edges = [start + (stop - start) * i // pieces for i in range(pieces + 1)]
        done += [(a, b, code) for a, b in zip(edges, edges[1:], strict=False)]
    return done


def _cut(segment: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    start, stop, code = segment
    middle = (start + stop + 1) // 2
    return [(start, middle, code), (middle, stop, code)]
