"""Anonymize one recording after the other, here or in processes; a bad one is refused, the others go on."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from dpanon.anonymize.sources import regular
from dpanon.anonymize.statement import details, utterance_row
from dpanon.data.audio import SHIFT, num_frames, read_audio, write_wav
from dpanon.errors import ConfigError, MissingDependencyError, UsageError
from dpanon.privacy.book import Cap, LedgerError

if TYPE_CHECKING:
    from dpanon.privacy import Guarantee
    from dpanon.privacy.ledger import Ledger

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_FATAL = (UsageError, ConfigError, MissingDependencyError, LedgerError)  # would refuse every file alike
_worker: dict[str, Any] = {}  # of this process: system, options and ledger


@dataclass(frozen=True)
class Options:
    """What a release depends on, beside the recordings. ``keyed_noise`` is for tests only.

    ``ledger`` is the file that counts it, '' for none; the caps decide what is refused (None: no cap).
    """

    system: str = "dp"
    epsilon_f0: float | None = None
    epsilon_bn: float | None = None
    target: str = "random"
    f0_method: str = "swift"
    models: str = ""
    keyed_noise: int | None = None
    keep_names: bool = False
    pad_lengths: bool = False
    ledger: str = ""
    ledger_names: bool = False
    cap_epsilon: float | None = None  # of all releases of a recording
    cap_epsilon_speaker: float | None = None
    cap_delta: float = 0.0
    epsilon_token: float | None = None
    mu_f0: float | None = None
    mu: float | None = None  # of the released voice; voxlet only, as the next two
    noise_level: float | None = None
    sigma_rule: str | None = None
    voice_model: str = ""  # '' is the shipped one
    converter: str = ""  # '' is the project's synthesizer

    def record(self) -> dict[str, Any]:
        """What a run that goes on must have in common with the one that was stopped: all but the caps."""
        values = {name: value for name, value in asdict(self).items() if not name.startswith("cap_")}
        optional = ("ledger", "epsilon_token", "mu_f0", "mu", "noise_level", "sigma_rule", "voice_model", "converter")
        return {name: value for name, value in values.items() if value or not name.startswith(optional)}

    def public(self) -> dict[str, Any]:
        """As privacy.json shows them: no path of this machine."""
        values = {**self.record(), "models": "shipped" if not self.models else "own"}
        if "voice_model" in values:
            values["voice_model"] = "own"
        values.pop("ledger_names", None)
        return values | ({"ledger": True} if self.ledger else {})

    @property
    def caps(self) -> tuple[Cap, ...]:
        of = {"utterance": self.cap_epsilon, "speaker": self.cap_epsilon_speaker}
        return tuple(Cap(epsilon, unit, self.cap_delta) for unit, epsilon in of.items() if epsilon is not None)


@dataclass(frozen=True)
class Task:
    """``path`` is read, ``made`` is written. ``release`` is the ledger's name of this release."""

    key: str
    utt: str
    path: Path
    made: Path
    speaker: str | None = None
    release: str | None = None


@dataclass(frozen=True)
class Done:
    task: Task
    row: dict
    details: dict
    receipt: str | None = None  # of the ledger, to be committed before the release gets its name


@dataclass(frozen=True)
class Refused:
    task: Task
    reason: str


Outcome = Done | Refused
Load = Callable[[Options], Any]


def load(options: Options) -> Any:
    """The system of these options, ready for ``anonymize``."""
    from dpanon.anonymize.pretrained import load_system

    models = Path(options.models) if options.models else None
    if options.converter:
        return load_converted(options)
    more: dict[str, Any] = {
        name: value
        for name in ("epsilon_token", "mu_f0", "mu", "noise_level", "sigma_rule")
        if (value := getattr(options, name)) is not None
    }
    if options.voice_model:
        more["voice_model"] = Path(options.voice_model)
    system = load_system(options.system, options.epsilon_bn, options.epsilon_f0, models, **more)
    system.f0_method = options.f0_method
    return system


def load_converted(options: Options) -> Any:
    """The system voxlet with a converter of others."""
    from dpanon.anonymize import converter, embeddings

    noise = (options.mu, options.noise_level, options.sigma_rule)
    voice_model = Path(options.voice_model) if options.voice_model else None
    return converter.load_converted(
        options.converter, voice_model, lambda radius, dim: embeddings.speaker_mechanism(*noise, radius, dim)
    )


def open_ledger(options: Options) -> Ledger | None:
    """The ledger of these options, open in this process; LedgerError if it cannot be used."""
    if not options.ledger:
        return None
    from dpanon.privacy.ledger import Ledger

    return Ledger(options.ledger, options.caps)


def outcomes(
    tasks: Iterable[Task], options: Options, load: Load, system: Any, jobs: int, ledger: Ledger | None = None
) -> Iterator[Outcome]:
    """One outcome per task; in order with one job, as they come with more.

    Args:
        system: ``load(options)`` of this process, which works itself when there is one job.
        ledger: ``open_ledger(options)`` of this process.
    """
    waiting = deque(tasks)
    if jobs == 1 or len(waiting) < 2:
        for task in waiting:
            yield anonymize_one(system, options, task, ledger)
        return
    suspects: deque[Task] = deque()  # were at work when a process died: each is tried again, alone
    while waiting or suspects:
        alone = bool(suspects)
        source, width = (suspects, 1) if alone else (waiting, min(jobs, len(waiting)))
        running: dict[Future, Task] = {}
        pool = ProcessPoolExecutor(width, multiprocessing.get_context("spawn"), _start, (options, load))
        try:
            while source or running:
                while source and len(running) < width:  # no more: a worker holds one recording
                    task = source.popleft()
                    running[pool.submit(_work, task)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    outcome = future.result()
                    del running[future]
                    yield outcome
            pool.shutdown()
        except BrokenProcessPool:
            if alone:
                task = next(iter(running.values()))
                yield Refused(task, "the process that worked on it died; is there enough memory?")
            else:
                suspects.extend(running.values())
        finally:
            _end(pool)


def anonymize_one(system: Any, options: Options, task: Task, ledger: Ledger | None = None) -> Outcome:
    """Read, count, anonymize, write. Everything that is wrong with this recording is its reason to be refused.

    With a ledger the release is reserved before its noise is drawn, and refused when that is over a cap. What is
    reserved and then refused stays counted.
    """
    if reason := regular(task.path):
        return Refused(task, reason)
    receipt = None
    try:
        samples = read_audio(task.path)
        whole = padded(samples) if options.pad_lengths else samples
        if ledger is not None:
            promise = promised(system, num_frames(len(whole)))
            name = task.utt if options.ledger_names else ""
            receipt = ledger.reserve(samples, promise, task.speaker, task.release, name)
        result = system.anonymize(whole, choose_target(system.pool, options, task.utt), _noise(options, task.utt))
        _check(result)
        if ledger is not None:
            _check_promise(promise, result.guarantee)
        if options.pad_lengths:
            result = replace(result, guarantee=on_ladder(result.guarantee))
        row = utterance_row(task.utt, result, options.keyed_noise is not None)
    except _FATAL:
        raise
    except ImportError as error:
        raise MissingDependencyError(
            f"--f0-method {options.f0_method} or a model needs {error.name}: {error}"
        ) from error
    except Exception as error:
        return Refused(task, _reason(error, task.path))
    write_wav(task.made, result.samples)  # if this fails, it fails for all: not a matter of the recording
    return Done(task, row, details(result), receipt)


def promised(system: Any, num_frames: int) -> Guarantee:
    """What a release of so many frames will promise, before it is made."""
    from dpanon.privacy import SystemNoise

    return system.promise(num_frames, SystemNoise().sampler)


def padded(samples: np.ndarray) -> np.ndarray:
    """Silence up to the next step of the public ladder of lengths."""
    from dpanon.privacy.lengths import rung

    length = SHIFT * rung(num_frames(len(samples)))
    return np.pad(samples, (0, max(0, length - len(samples))))[:length]


def choose_target(pool: Any, options: Options, utt: str) -> Any:
    """Independent of the recording: the pool is not shown it. Keyed noise keys the choice as well."""
    if options.target == "random" and options.keyed_noise is not None:
        digest = hashlib.sha256(f"target|{options.keyed_noise}|{utt}".encode("utf-8", "surrogateescape")).digest()
        return pool.choose(pool.ids[int.from_bytes(digest, "big") % len(pool.ids)])
    return pool.choose(options.target)


def one_thread() -> None:
    """Sums in another order round differently: results must not depend on the machine's cores."""
    for name in THREADS:  # of libraries that are loaded later, and of processes
        os.environ[name] = "1"
    threadpool_limits(1)  # of those that are loaded: they have read the environment
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def _noise(options: Options, utt: str) -> Any:
    if options.keyed_noise is None:
        return None  # the operating system's, in the mechanism
    from dpanon.privacy import KeyedNoise

    return KeyedNoise(options.keyed_noise, utt, "release")


def on_ladder(guarantee: Guarantee) -> Guarantee:
    from dpanon.privacy import lengths

    return guarantee if guarantee.kind == "none" else lengths.on_ladder(guarantee)


def _check(result: Any) -> None:
    samples = result.samples
    if samples.shape != (SHIFT * result.num_frames,) or not np.isfinite(samples).all():
        raise ValueError(f"the system made samples {list(samples.shape)} of {result.num_frames} frames, or not finite")


def _check_promise(promise: Guarantee, found: Guarantee) -> None:
    for name in ("parts", "unit", "adjacency", "sampler"):
        if getattr(promise, name) != getattr(found, name):
            raise ValueError(f"the ledger counts {name} {getattr(promise, name)}, and {getattr(found, name)} was drawn")


def _reason(error: Exception, path: Path) -> str:
    from dpanon.errors import DpanonError
    from dpanon.privacy import PrivacyError

    text = " ".join(str(error).removeprefix(f"{path}: ").split())
    if isinstance(error, DpanonError | PrivacyError):
        return text
    return f"cannot be anonymized ({type(error).__name__}: {text})"


def _start(options: Options, load: Load) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent speaks for all
    threading.Thread(target=_follow_parent, daemon=True).start()
    one_thread()
    _worker.update(system=load(options), options=options, ledger=open_ledger(options))
    one_thread()


def _follow_parent() -> None:
    """A killed parent takes its workers with it, at once."""
    if parent := multiprocessing.parent_process():
        wait_for([parent.sentinel])
        os._exit(1)


def _work(task: Task) -> Outcome:
    return anonymize_one(_worker["system"], _worker["options"], task, _worker["ledger"])


def _end(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())  # none is left after a regular end
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()
