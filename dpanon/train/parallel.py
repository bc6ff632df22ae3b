"""One training by several processes that torchrun started, on as many GPUs, or on CPUs by gloo.

Every process takes its share of each global batch, and gradients are averaged before each step, as
DistributedDataParallel does. What a step draws at random is drawn for the global batch by every process, from the same
seed, and each keeps its share: the run is the same run whatever the number of processes, up to rounding, as long as
its losses are means over the examples of a batch.
"""

import atexit
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.overrides import TorchFunctionMode

from dpanon.errors import ConfigError

_SHAPED = (torch.rand, torch.randn)
_LIKE = (torch.rand_like, torch.randn_like)
_IN_PLACE = (Tensor.exponential_, Tensor.normal_, Tensor.uniform_, Tensor.bernoulli_)


def place() -> torch.device:
    """Where this process trains: its GPU if there is one, else the CPU. New tensors and modules go there from now on.

    To be called before any of them is made. Under torchrun each process has the GPU of its LOCAL_RANK.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    torch.set_default_device(device)
    return device


def tensor(array: np.ndarray) -> Tensor:
    """An array as a tensor where this process trains."""
    return torch.from_numpy(array).to(torch.get_default_device())


@dataclass(frozen=True)
class Workers:
    """The processes of a training: this one is number ``rank`` of ``size``."""

    rank: int = 0
    size: int = 1

    def share(self, batch: Any) -> Any:
        """What of a global batch is this process's; all shares are of the same size.

        Raises:
            ConfigError: the batch cannot be divided so.
        """
        if self.size == 1:
            return batch
        num, rest = divmod(len(batch), self.size)
        if rest:
            raise ConfigError(f"{self.size} processes cannot share a batch of {len(batch)}; make it a multiple")
        return batch[self.rank * num : (self.rank + 1) * num]

    def start_alike(self, modules: Iterable[nn.Module]) -> None:
        """Weights and buffers of process 0 in every process."""
        if self.size > 1:
            for module in modules:
                for value in module.state_dict().values():
                    distributed.broadcast(value, 0)

    def mean(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Figures of the global batch, if those of a share are means over its examples."""
        if self.size == 1:
            return dict(figures)
        values = torch.tensor(list(figures.values()), dtype=torch.float64)
        average([values])
        return dict(zip(figures, values.tolist(), strict=True))


def join() -> Workers:
    """The processes that torchrun started with this one; alone without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return Workers()
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        atexit.register(distributed.destroy_process_group)
    return Workers(distributed.get_rank(), distributed.get_world_size())


@torch.no_grad()
def average(tensors: Sequence[Tensor]) -> None:
    """Replace each by its mean over all processes, in one message; alone: as they are."""
    if not tensors or not distributed.is_available() or not distributed.is_initialized():
        return
    flat = torch.cat([value.flatten() for value in tensors])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    for value, mean in zip(tensors, flat.split([value.numel() for value in tensors]), strict=True):
        value.copy_(mean.view_as(value))


def part(amount: float | Tensor) -> Tensor:
    """What a mean over so many items of this share counts, so that the mean over processes is one over all items.

    Each process has to call it, even with 0. Alone: 1.
    """
    mine = torch.as_tensor(amount, dtype=torch.float32)
    mean = mine.clone()
    average([mean])
    return mine / mean.clamp_min(1e-9)


def longest(num: int) -> int:
    """The largest such number of all processes: to what length they pad. Alone: as it is."""
    if not distributed.is_available() or not distributed.is_initialized():
        return num
    value = torch.tensor(num)
    distributed.all_reduce(value, distributed.ReduceOp.MAX)
    return int(value)


def average_buffers(modules: Iterable[nn.Module]) -> None:
    """Running statistics of each share become those of the global batch."""
    average([buffer for module in modules for buffer in module.buffers() if buffer.is_floating_point()])


class SharedDraws(TorchFunctionMode):
    """Random tensors with one row per example are drawn for the global batch, and this process keeps its rows.

    Args:
        num: examples of this process's share. A random tensor of another number of rows is the same in every process.
    """

    def __init__(self, workers: Workers, num: int):
        super().__init__()
        self.size, self.num = workers.size, num
        self.mine = slice(workers.rank * num, (workers.rank + 1) * num)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _SHAPED:
            shape = args[0] if args and isinstance(args[0], Sequence) else args
            if self._of_examples(shape):
                return func(self._whole(shape), **kwargs)[self.mine]
        elif func in _LIKE and self._of_examples(args[0].shape):
            return func(args[0].new_empty(self._whole(args[0].shape)), **kwargs)[self.mine]
        elif func in _IN_PLACE and self._of_examples(args[0].shape):
            drawn = args[0].new_empty(self._whole(args[0].shape))
            return args[0].copy_(func(drawn, *args[1:], **kwargs)[self.mine])
        elif func is nn.functional.dropout and self._of_examples(args[0].shape):
            return args[0] * func(self._ones(args[0]), *args[1:], **kwargs)[self.mine]
        return func(*args, **kwargs)

    def _of_examples(self, shape: Sequence[int]) -> bool:
        return len(shape) > 0 and shape[0] == self.num

    def _ones(self, x: Tensor) -> Tensor:
        """For all examples, laid out in memory as ``x`` is: dropout draws in that order."""
        order = sorted(range(x.ndim), key=x.stride, reverse=True)
        shape = self._whole(x.shape)
        return x.new_ones([shape[d] for d in order]).permute([order.index(d) for d in range(x.ndim)])

    def _whole(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (self.size * shape[0], *shape[1:])
