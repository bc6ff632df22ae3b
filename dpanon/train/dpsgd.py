"""DP-SGD (Abadi et al. 2016): per-sample gradients by Opacus, Poisson batches and noise by the operating system.

Opacus' own optimizer draws torch's floating-point noise and its loaders come from a seedable generator. Here its
``GradSampleModule`` only computes the gradient of each utterance; what is private (who is in a batch, clipping, noise)
is done here and in ``dpanon.privacy``.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np
import torch
from torch import Tensor, nn

from dpanon.errors import MissingDependencyError
from dpanon.models.commands import Commands, CommandsConfig
from dpanon.privacy import Guarantee, PrivacyError, SystemNoise
from dpanon.privacy.calibration import dp_sgd_noise_multiplier
from dpanon.privacy.checks import positive, probability
from dpanon.privacy.dpsgd import DpSgd
from dpanon.train.commands import Utterances, choose_weights, cross_entropy

PHYSICAL = 256  # per-sample gradients that are in memory at once; a larger batch is summed in parts


@dataclass(frozen=True)
class DpSgdSteps:
    """What any DP-SGD run is told. The noise follows from epsilon, delta, batch and steps."""

    steps: int
    batch: int = 256  # expected size; every step takes each unit with probability batch / units
    max_grad_norm: float = 1.0  # C, of one unit's gradient, in L2
    lr: float = 0.5
    momentum: float = 0.9
    trained: tuple[str, ...] = ()  # beginnings of the names of the weights that are trained; empty: all

    def __post_init__(self):
        for name in ("steps", "batch", "max_grad_norm", "lr"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")


@dataclass(frozen=True)
class DpSgdConfig(DpSgdSteps):
    """Every key of conf/dpsgd.yaml is a field here, when words are recognised."""

    model: CommandsConfig = field(default_factory=CommandsConfig)


def opacus() -> ModuleType:
    """The optional package."""
    try:
        import opacus
        import opacus.layers
    except ImportError as error:
        raise MissingDependencyError(
            f"DP-SGD needs Opacus ({error}); install it with: pip install 'dpanon[opacus]' (or pip install opacus)"
        ) from error
    return opacus


def train_dpsgd(
    config: DpSgdConfig,
    utterances: Utterances,
    targets: Tensor,
    num_words: int,
    epsilon: float,
    delta: float,
    start: Commands | None = None,
) -> tuple[Commands, Guarantee, dict[str, float]]:
    """Train on a private set; the model may be published under the guarantee.

    Args:
        utterances, targets: N of them, labels (N,). The unit is the utterance: no augmented copies.
        epsilon, delta: of the whole training; the least noise for them is found by the accountant.
        start: public weights to begin with.

    Returns:
        The model, its guarantee, and figures that may be published. No loss is among them: it is not noised.
    """
    package = opacus()
    torch.manual_seed(0)  # initial weights: public
    model = Commands(num_words, start.config if start else config.model, package.layers.DPLSTM)
    if start is not None:
        copy_weights(start, model)

    def loss(wrapped: nn.Module, chosen: list[int]) -> Tensor:
        return cross_entropy(wrapped(*utterances.batch(chosen)), targets[torch.tensor(chosen)]).mul(len(chosen))

    guarantee, figures = private_steps(config, model, loss, len(utterances), epsilon, delta)
    plain = Commands(num_words, model.config)
    copy_weights(model, plain)
    return plain.eval(), guarantee, figures


def private_steps(
    config: DpSgdSteps,
    model: nn.Module,
    loss: Callable[[nn.Module, list[int]], Tensor],
    num: int,
    epsilon: float,
    delta: float,
) -> tuple[Guarantee, dict[str, float]]:
    """Train ``model`` in place on ``num`` private units; its guarantee, and figures that may be published.

    Args:
        loss: (model with per-sample gradients, numbers of the units of a batch) -> the sum of their losses. That of one
            unit must not depend on the others.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    if config.batch >= num:
        raise PrivacyError(f"an expected batch of {config.batch} of {num} utterances: no sample, take a smaller one")
    rate = config.batch / num
    multiplier = dp_sgd_noise_multiplier(epsilon, delta, rate, config.steps)
    run = DpSgd(multiplier, rate, config.steps)
    learned = choose_weights(model, config.trained)
    wrapped = opacus().GradSampleModule(model, batch_first=True, loss_reduction="sum")
    optimizer = torch.optim.SGD(learned, lr=config.lr, momentum=config.momentum)
    noise, sizes = SystemNoise(), []
    for step in range(config.steps):
        chosen = poisson_batch(num, rate)
        sizes.append(len(chosen))
        total = np.zeros(sum(p.numel() for p in learned))
        for begin in range(0, len(chosen), PHYSICAL):
            wrapped.zero_grad(set_to_none=True)
            loss(wrapped, chosen[begin : begin + PHYSICAL]).backward()
            total += clipped_sum(learned, config.max_grad_norm)
        noisy = noise.add_gaussian(total, multiplier * config.max_grad_norm, config.max_grad_norm * num)
        _assign(learned, noisy / config.batch)  # the expected size: the true one is private
        for group in optimizer.param_groups:
            group["lr"] = config.lr * (1 - 0.9 * step / config.steps)
        optimizer.step()
    run.check_batch_sizes(sizes, num)
    wrapped.remove_hooks()
    figures = {"noise_multiplier": multiplier, "rate": rate, "steps": float(config.steps)}
    return run.guarantee(noise.sampler), figures


def poisson_batch(num: int, rate: float) -> list[int]:
    """Each of ``num`` with probability ``rate``, by coins of the operating system."""
    if not 0 < rate <= 1:
        raise PrivacyError(f"rate must be in (0, 1], got {rate}")
    least = round(rate * 2**64)
    coins = np.frombuffer(secrets.token_bytes(8 * num), dtype="<u8")
    return [i for i, coin in enumerate(coins.tolist()) if coin < least]


def clipped_sum(parameters: list[nn.Parameter], bound: float) -> np.ndarray:
    """Sum of the per-sample gradients, each cut to an L2 norm of ``bound``, in float64: ``(D,)``.

    A gradient that is not finite counts as zero. The norm is that of the rows that are summed, a hair below the bound.
    """
    rows = torch.cat([p.grad_sample.double().flatten(1) for p in parameters], 1)  # type: ignore[attr-defined]
    rows = torch.where(rows.isfinite().all(1, keepdim=True), rows, torch.zeros(()).double())
    norms = rows.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return (rows * (bound * (1 - 2.0**-40) / norms).clamp(max=1.0)).sum(0).numpy()


@torch.no_grad()
def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """By the names of the parameters, which DPLSTM shares with ``nn.LSTM``; its state_dict holds others besides."""
    weights = dict(source.named_parameters())
    for name, parameter in target.named_parameters():
        parameter.copy_(weights[name])


def _assign(parameters: list[nn.Parameter], flat: np.ndarray) -> None:
    at = 0
    for parameter in parameters:
        size = parameter.numel()
        parameter.grad = torch.from_numpy(flat[at : at + size]).to(parameter).view_as(parameter)
        at += size
