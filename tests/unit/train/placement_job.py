"""Tiny trainings on a device that is not the CPU, for test_placement.py: placement_job.py DATA OUT

No GPU is needed: tensors "there" are CPU tensors in a wrapper that says another device, and an operation of tensors of
both devices is an error, as on a GPU. What this shows is that nothing is left behind on the CPU; kernels, their
numbers and their speed it does not show.
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from dpanon.attack.identification import IdentificationConfig, identify
from dpanon.data.data_dir import DataDir
from dpanon.errors import MissingDependencyError
from dpanon.models.acoustic import AcousticConfig
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.intonation import IntonationConfig
from dpanon.synth.harmonic import HarmonicConfig
from dpanon.synth.hifigan import HifiganConfig
from dpanon.synth.nsf import NsfConfig
from dpanon.train import parallel
from dpanon.train.bottleneck import TrainBottleneckConfig, train_bottleneck
from dpanon.train.intonation import TrainIntonationConfig, train_intonation
from dpanon.train.loop import LoopConfig
from dpanon.train.pitch import TrainPitchConfig, train_pitch
from dpanon.train.synth import TrainSynthConfig, train_synth

_setup_privateuseone_for_python_backend("pretended")
torch.pretended.get_amp_supported_dtype = lambda: [torch.float16]  # autocast asks
THERE, CPU = torch.device("pretended", 0), torch.device("cpu")
_MOVES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Tensor(torch.Tensor):
    """``inner``, a CPU tensor, said to be there."""

    @staticmethod
    def __new__(cls, inner):
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=THERE, **layout)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})

    def tolist(self):
        return self.detach().inner.tolist()

    def __reduce_ex__(self, protocol):  # a checkpoint is read with map_location="cpu"
        return self.detach().inner.__reduce_ex__(protocol)


def run(func, args, kwargs):
    """The operation on the CPU, if all of its tensors are on one device; numbers without axes may be on either."""
    there, here = {}, []

    def bring(x):
        if isinstance(x, Tensor):
            there[id(x.inner)] = x
            return x.inner
        if isinstance(x, torch.Tensor) and x.ndim > 0:
            here.append(x)
        return x

    inner, options = each(bring, args), {name: each(bring, value) for name, value in kwargs.items()}
    if func not in _MOVES and there and here:
        raise RuntimeError(f"{func} of tensors on both devices")
    wanted = kwargs.get("device")
    if func is _MOVES[1]:
        goes = isinstance(args[0], Tensor)
    else:
        goes = bool(there) if wanted is None else torch.device(wanted).type == THERE.type
    if wanted is not None:
        options["device"] = CPU
    made = func(*inner, **options)
    if there and torch.Tag.inplace_view in func.tags:  # the wrapper takes the new shape as well
        with torch._C._DisableTorchDispatch():
            func(*args, **kwargs)
    if not goes:
        return made
    return each(lambda x: (there[id(x)] if id(x) in there else Tensor(x)) if isinstance(x, torch.Tensor) else x, made)


def each(change, x):
    """``change`` of everything in lists and tuples."""
    return type(x)(each(change, y) for y in x) if type(x) in (list, tuple) else change(x)


class Pretended(TorchDispatchMode):
    """Tensors can be made there."""

    def __enter__(self):
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor makes its own on the CPU, then moves it
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def trainings(data: DataDir, out: Path) -> None:
    small = BottleneckConfig(
        features="whisper", hidden=16, factor=4, content=8, encoder_dilations=(1,), decoder_dilations=(1,)
    )
    acoustic = AcousticConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
    harmonic = HarmonicConfig(content=8, channels=16, slow_blocks=1, fast_blocks=1)
    crops = {"crop": 40, "batch": 2}
    synths = {
        "harmonic": {"model": harmonic, "joint": True, "codebooks": 1, "code_size": 4, "adversarial_from": 0},
        "nsf": {"nsf": NsfConfig(acoustic, condition=8, condition_blocks=1, channels=4, blocks=1, layers=2)},
        "hifigan": {"hifigan": HifiganConfig(acoustic, channels=16, block_kernels=(3,)), "adversarial_from": 0},
    }
    once = LoopConfig(steps=1, warmup=1)
    for features in ("fbank", "whisper"):
        config = dataclasses.replace(small, features=features)
        bn = TrainBottleneckConfig(once, 10.0, config, crop=40, batch=2, phone_weight=1.0)
        train_bottleneck(bn, data, out / f"bn_{features}", match=Bottleneck(small).eval())
    train_pitch(TrainPitchConfig(once, 100.0, crop=40, batch=2), data, out / "f0")
    intonation = TrainIntonationConfig(once, IntonationConfig(content=8, hidden=8, dilations=(1,)), **crops)
    train_intonation(intonation, Bottleneck(small), 10.0, data, out / "intonation")
    for name, options in synths.items():
        config = TrainSynthConfig(once, synthesizer=name, **options, **crops)
        try:
            train_synth(config, Bottleneck(small), 10.0, data, out / name, None)
        except MissingDependencyError:
            print(f"without {name}")
    released = {f"s{i}-u": np.float32(np.random.default_rng(i).normal(i, 1, (100, 6))) for i in range(3)}
    attack = IdentificationConfig(
        LoopConfig(steps=4, warmup=1), channels=8, pooled=8, embedding=8, batch=8, replicates=5
    )
    identify(attack, [released], {utt: utt[:2] for utt in released}, out / "speakers")
    # on from a checkpoint, and from the weights of another run
    config = TrainSynthConfig(dataclasses.replace(once, steps=2), synthesizer="nsf", **synths["nsf"], **crops)
    train_synth(config, Bottleneck(small), 10.0, data, out / "nsf", None)
    train_synth(dataclasses.replace(config, loop=once), Bottleneck(small), 10.0, data, out / "again", out / "nsf")


def recogniser() -> None:
    from dpanon.models.recogniser import RecogniserLoss

    try:
        loss = RecogniserLoss()
    except MissingDependencyError:
        print("without a recogniser")
        return
    estimate = (0.1 * torch.randn(1, 3200)).requires_grad_()
    loss(estimate, 0.1 * torch.randn(1, 3200)).backward()
    assert estimate.grad is not None and estimate.grad.device.type == THERE.type


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_default_device(THERE)
    with Pretended():
        assert (torch.ones(2) + torch.tensor([1.0, 2.0])).device.type == THERE.type
        try:
            torch.ones(2) + torch.ones(2, device="cpu")
        except RuntimeError as error:
            assert "both devices" in str(error)
        else:
            raise SystemExit("tensors of both devices were added")
        data, out = DataDir.read(sys.argv[1]), Path(sys.argv[2])
        trainings(data, out)
        recogniser()
        parallel.tensor = torch.from_numpy  # the mistake that is looked for
        try:
            train_pitch(TrainPitchConfig(LoopConfig(steps=1), 100.0, crop=40, batch=2), data, out / "wrong")
        except RuntimeError as error:
            assert "both devices" in str(error)
        else:
            raise SystemExit("a batch on the CPU was not noticed")
    print("all of it there")
