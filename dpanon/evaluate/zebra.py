"""ZEBRA (Nautsch et al. 2020, "The Privacy ZEBRA"): what an attacker with any prior learns from calibrated scores.

Scores become likelihood ratios by the monotone calibration that fits them best. The attacker's empirical
cross-entropy at the prior ``p`` of a same-speaker trial is

    ECE(p) = p mean over targets of log2(1 + (1 - p) / (p L)) + (1 - p) mean over nontargets of log2(1 + p L / (1 - p))

and would be the entropy of the prior if the scores told nothing. **Expected disclosure** is the area between the two
over ``p`` in (0, 1): 0 bits when they tell nothing, 1 / (2 ln 2) = 0.72 bits when they tell all. **Worst-case
disclosure** is the largest ``|log10 L|`` that any trial meets, with a category for people.
"""

from dataclasses import dataclass

import numpy as np

from dpanon.evaluate.detection import Tally, calibrated_llr, mean_cost

MAX_EXPECTED = 1 / (2 * np.log(2))
CATEGORIES = (("0", 0.0), ("A", 1.0), ("B", 2.0), ("C", 4.0), ("D", 5.0), ("E", 6.0), ("F", np.inf))


@dataclass(frozen=True)
class Zebra:
    """``expected`` in bits, ``worst`` in decimal orders of the likelihood ratio (may be infinite), ``category``."""

    expected: float
    worst: float
    category: str


def zebra(table: Tally) -> Zebra:
    """Expected and worst-case disclosure of the scores.

    >>> from dpanon.evaluate.detection import tally
    >>> zebra(tally([1.0, 2.0], [1.0, 2.0]))
    Zebra(expected=0.0, worst=0.0, category='0')
    """
    same, different = table.shares
    llr = calibrated_llr(table)
    worst = float(np.abs(llr).max() / np.log(10))  # that of a score no trial has is its neighbour's
    worst = 0.0 if worst < 1e-9 else worst
    return Zebra(expected_disclosure(same, different, llr), worst, category(worst))


def expected_disclosure(same: np.ndarray, different: np.ndarray, llr: np.ndarray) -> float:
    """The area in bits for shares of both kinds at each log-likelihood ratio. (K,), (K,), (K,)

    The integral over the prior has a closed form: with ``T(L) = (1 / (L - 1) - ln L / (L - 1)^2) / (2 ln 2)``, a
    target costs ``T(L)`` and a nontarget ``T(1 / L)``; both are 1 / (4 ln 2) at L = 1, half of the prior's own area.
    """
    cost = mean_cost(same, llr, _area) + mean_cost(different, llr, lambda ratio: _area(-ratio))
    return float(np.clip(MAX_EXPECTED - cost, 0.0, MAX_EXPECTED))


def category(worst: float) -> str:
    """0: no trial tells anything; A: odds below 10; B: 100; C: 10^4; D: 10^5; E: 10^6; F: more."""
    return next(name for name, limit in CATEGORIES if worst <= 0 or (limit > 0 and worst < limit) or limit == np.inf)


def _area(llr: np.ndarray) -> np.ndarray:
    """T of the ratio exp(llr)."""
    out = np.empty(len(llr))
    small = np.abs(llr) < 1e-3
    d = np.expm1(llr[small])
    out[small] = 0.5 - d / 3 + d**2 / 4  # series of 1 / d - ln(1 + d) / d^2
    x = llr[~small]
    with np.errstate(over="ignore", invalid="ignore"):
        d = np.expm1(x)
        value = 1 / d - x / d / d
    value = np.where(x > 700, 0.0, value)
    out[~small] = np.where(np.isneginf(x), np.inf, value)  # an impossible target costs without bound
    return out / (2 * np.log(2))
