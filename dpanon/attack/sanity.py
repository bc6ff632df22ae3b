"""Is a measured P_ASI or EER privacy, or a badly trained attacker? Checks of the figures of attacks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpanon.evaluate.intervals import clopper_pearson

ABLE = 0.9  # an attacker who errs more often than this on features without noise is a badly trained one
POOR_ACCURACY = 0.5  # of its own training crops: an attacker who tells fewer apart is a badly trained one
POOR_EER = 0.2  # of the same network on original speech


def flags(found: Mapping[str, Any], num_train: int, ended: bool) -> list[str]:
    """What makes the error of one attacker say little about a better one.

    Args:
        num_train: training pieces that were classified.
        ended: training was cut off by its limit of steps while the validation loss still fell.
    """
    said = []
    least = clopper_pearson(round((1 - found["train_error"]) * num_train), num_train).low
    if least <= 1 - found["chance"]:
        said.append("training pieces are told apart no better than by chance")
    if found["best_epoch"] == 0:
        said.append("the validation loss never fell after the first epoch")
    if ended:
        said.append("stopped by loop.steps while the validation loss still fell")
    return said


def sanity(rows: Sequence[Mapping[str, Any]], control: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """What is wrong with the attackers of one kind of feature, over all epsilons (``epsilon`` inf: no noise).

    Args:
        control: attacks of the same network on features that nothing was done to.

    An attacker who cannot tell speakers without noise proves nothing with noise. Less noise with a larger error, beyond
    both intervals, means that the attacker of the larger error was the worse trained.
    """
    said = []
    clear = [row for row in rows if np.isinf(row["epsilon"])]
    if not clear:
        said.append("no attack without noise: whether this attacker can tell speakers at all is not known")
    able = [row for row in control if row["error"] <= ABLE]
    for row in clear:
        if row["error"] > ABLE and able:
            said.append(
                f"{100 * row['error']:.1f} % errors without any noise, where the same network makes "
                f"{100 * able[0]['error']:.1f} % on the control: the feature tells little of the speaker to this "
                "attacker, and nothing follows about what its noise hides"
            )
        elif row["error"] > ABLE:
            said.append(f"badly trained attacker: {100 * row['error']:.1f} % errors without any noise")
        if any("by chance" in flag for flag in row["flags"]):
            said.append(
                "badly trained attacker: without noise, training pieces are told apart no better than by chance"
            )
    ordered = sorted(rows, key=lambda row: row["epsilon"])
    for weaker, stronger in zip(ordered[1:], ordered, strict=False):
        if weaker["error_low"] > stronger["error_high"]:
            said.append(
                f"badly trained attacker: epsilon {weaker['epsilon']:g} with more errors than {stronger['epsilon']:g}"
            )
    return said


def verification_flags(training: Mapping[str, Any]) -> list[str]:
    """What in its training.json makes the EER of a trained attacker say little about a better one.

    A back-end that is solved in closed form has no ``accuracy`` there, and no flag.
    """
    accuracy, chance = training.get("accuracy"), 1 / max(1, training.get("num_speakers", 1))
    if accuracy is None or accuracy >= POOR_ACCURACY:
        return []
    if accuracy <= 2 * chance:
        return ["badly trained attacker: its training crops are told apart no better than by chance"]
    return [f"badly trained attacker: it tells whose {100 * accuracy:.1f} % of its own training crops are"]


def control_flags(attacker: str, original: Mapping[str, float]) -> list[str]:
    """The same for the network of an attacker, by its EER on original speech.

    Args:
        attacker: ``<extractor>+<back-end>``; one that was fine-tuned (``-tuned``) has the control of its network.
        original: attacker -> EER, condition oo.
    """
    eer = original.get(attacker.replace("-tuned+", "-trained+"))
    if eer is None or eer <= POOR_EER:
        return []
    return [f"badly trained attacker: the same network makes {100 * eer:.1f} % errors on original speech"]
