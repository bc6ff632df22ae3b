"""DP-SGD on a private set: what a run of so many steps promises. The training is in dpanon.train.dpsgd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpanon.privacy.checks import count, positive
from dpanon.privacy.errors import PrivacyError
from dpanon.privacy.guarantee import CENTRAL, INSECURE, Guarantee, Part
from dpanon.privacy.votes import known_unit

POISSON = "poisson"
FALSE_ALARM = 1e-9  # of the test of batch sizes


@dataclass(frozen=True)
class DpSgd:
    """Clipped gradients with Gaussian noise on Poisson samples (Abadi et al. 2016), by its loss distribution.

    Every step takes each unit with probability ``rate``, independently; clips its gradient to C in L2;
    adds noise of sigma ``noise_multiplier * C`` to the sum; divides by the *expected* batch size. Adding
    or removing a unit moves the sum by at most C. Shuffled loaders and batches of fixed size are not
    Poisson samples: the claim does not hold for them, and is refused.

    Args:
        noise_multiplier: sigma / C; finite and > 0.
        rate: probability of a unit in a step, in (0, 1].
        steps: of the whole run, all epochs and restarts.
        sampling: how batches are drawn; only ``poisson`` is accounted for.
        unit: whose gradient is clipped as one: ``utterance``, or ``speaker`` if grouped by speaker.
    """

    noise_multiplier: float
    rate: float
    steps: int
    sampling: str = POISSON
    unit: str = "utterance"

    def __post_init__(self):
        positive("noise_multiplier", self.noise_multiplier)
        if positive("rate", self.rate) > 1.0:
            raise PrivacyError(f"rate must be in (0, 1], got {self.rate}")
        count("steps", self.steps)
        known_unit(self.unit)
        if self.sampling != POISSON:
            raise PrivacyError(
                f"sampling {self.sampling!r} is not accounted for: only batches drawn by independent coins are "
                "amplified; use a Poisson sampler, not shuffled or fixed-size batches"
            )

    def check_batch_sizes(self, sizes: Sequence[int], num_units: int) -> None:
        """Refuse a run whose batches do not vary as Poisson samples do (1e-9 false alarms).

        Sizes of the batches of a run, empty ones included. They have variance ``n q (1 - q)``; those of a
        fixed-size loader have none, and their mean must be ``n q``.
        """
        from scipy import stats

        num_units = count("num_units", num_units)
        sizes = [count("batch size", size, least=0) for size in sizes]
        if len(sizes) != self.steps:
            raise PrivacyError(f"{len(sizes)} batches in a run of {self.steps} steps: every step is accounted for")
        mean, steps = self.rate * num_units, self.steps
        if max(sizes) > num_units:
            raise PrivacyError(f"a batch of {max(sizes)} out of {num_units} units: a unit was taken twice")
        if stats.binom.sf(sum(sizes) - 1, num_units * steps, self.rate) < FALSE_ALARM:
            raise PrivacyError(f"batches of {sum(sizes) / steps:g} on average: rate {self.rate:g} makes {mean:g}")
        if self.rate == 1.0:
            return
        spread = sum((size - mean) ** 2 for size in sizes) / (mean * (1.0 - self.rate))
        if steps > 1 and mean >= 5.0 and stats.chi2.cdf(spread, steps) < FALSE_ALARM:
            raise PrivacyError(
                f"batch sizes vary by {spread / steps:.3g} of what Poisson samples of rate {self.rate:g} do: "
                "they look like shuffled or fixed-size batches, for which this claim does not hold"
            )

    def guarantee(self, sampler: str = INSECURE) -> Guarantee:
        """Of the model after the run. INSECURE unless said otherwise: other trainers draw floating-point noise."""
        return Guarantee(
            parts=(Part("sampled", 1.0 / self.noise_multiplier, self.steps, rate=self.rate),),
            unit=self.unit,
            adjacency=CENTRAL[self.unit],
            mechanism=f"model trained by DP-SGD, {self.steps} steps on Poisson samples of rate {self.rate:g}",
            public_side_info=("the expected batch size", "the number of steps"),
            not_covered=("settings and stopping chosen on private data", "batch normalisation, which mixes units"),
            sampler=sampler,
        )
