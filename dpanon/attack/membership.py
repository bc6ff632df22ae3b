"""Membership inference: was this utterance in the private set? The attacker has the published model (Yeom et al. 2018).

His score is the log-probability that the model gives to the true word: members are fitted better. One attack among
many: what holds for all of them is the floor of the guarantee.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dpanon.evaluate.detection import eer_of, tally


@dataclass(frozen=True)
class Membership:
    """auc: 0.5 is a coin. eer: likewise. Of so many members and others."""

    auc: float
    eer: float
    members: int
    others: int


def membership(log_p: Tensor, labels: Tensor, other_log_p: Tensor, other_labels: Tensor) -> Membership:
    """The attack on members and on utterances that were not trained on.

    Shape: log_p ``(N, V)``, labels ``(N,)``; the same of the others.
    """
    inside = log_p.gather(1, labels[:, None])[:, 0].double()
    outside = other_log_p.gather(1, other_labels[:, None])[:, 0].double()
    above = (inside[:, None] > outside[None]).double().mean() + (inside[:, None] == outside[None]).double().mean() / 2
    return Membership(
        float(above), float(eer_of(tally(inside.numpy(), outside.numpy()))), len(torch.atleast_1d(labels)), len(outside)
    )
