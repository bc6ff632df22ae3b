"""What a training of the transducer needs before it is begun: parameters, memory, time; what teachers' answers cost.

Nothing is trained and no speech is read: sizes follow from the configuration, on torch's meta device. Memory and time
are estimates to choose a machine by (within a factor of about 1.5), the noise is exact.
"""

import math
from dataclasses import dataclass

import torch

from dpanon.models.transducer import REDUCTION, Transducer, TransducerConfig
from dpanon.privacy import accounting

FRAMES_PER_SECOND = 100 / REDUCTION  # of the encoder
FLOAT = 4  # bytes
STATE = 4 * FLOAT  # weight, gradient and two moments of Adam
BLOCK_ACTIVATIONS = 34  # floats of one frame and channel that a Conformer block keeps for its gradient
LOGIT_COPIES = 3  # of the lattice: logits, their log-softmax, its gradient
CLEAR = 0.1  # noise on a mean posterior through which its largest entry is still seen
PASSES = 3  # forward, and twice as much backward


@dataclass(frozen=True)
class PlanConfig:
    """Every key of conf/plan.yaml is a field here: sizes of the corpora, of the batches, of the machine."""

    hours: float = 150.0  # of private speech
    utterances: int = 120_098
    public_hours: float = 178.0  # that teachers are asked about
    public_utterances: int = 118_000
    tokens: float = 14.4  # of an utterance
    teachers: int = 10
    batch_seconds: float = 320.0  # of speech in one batch
    epochs: float = 60.0
    students: int = 3
    teraflops: float = 20.0  # that the machine sustains, not those of its data sheet

    def __post_init__(self):
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be finite and > 0, got {value}")


@dataclass(frozen=True)
class Plan:
    """Figures of one training (memory) and of the whole recipe (hours of machine)."""

    parameters: int
    memory_gib: float
    hours: dict[str, float]


@dataclass(frozen=True)
class Price:
    """What answers about all of the public set take: noise on each mean posterior, and the largest signal there is."""

    what: str
    queries: int
    sigma_mean: float  # on the mean posterior, whose entries are in [0, 1]
    sigma_teacher: float  # of paper D, on each teacher's posterior before the mean
    sigma_votes: float  # of GNMax, on the counts of votes


def count_parameters(config: TransducerConfig) -> int:
    with torch.device("meta"):  # no memory is taken
        return sum(parameter.numel() for parameter in Transducer(config).parameters())


def plan_training(model: TransducerConfig, config: PlanConfig) -> Plan:
    """Parameters; GiB of one training; hours of no DP, all teachers, students and DP-SGD on the given machine."""
    seconds = 3600 * config.hours / config.utterances
    frames, lattice = seconds * FRAMES_PER_SECOND, seconds * FRAMES_PER_SECOND * (config.tokens + 1)
    batch = config.batch_seconds / seconds
    parameters = count_parameters(model)
    attention = 2 * model.layers * model.heads * frames**2
    activations = model.layers * BLOCK_ACTIVATIONS * frames * model.width + attention
    activations += lattice * (LOGIT_COPIES * model.vocabulary + 2 * model.joint)
    activations += 2 * frames * 80 * (model.channels or model.width)  # strided convolutions
    memory = parameters * STATE + batch * activations * FLOAT
    dense = 2 * parameters * frames + 4 * model.layers * frames**2 * model.width  # of one utterance, forward
    work = PASSES * (dense + 2 * lattice * model.joint * model.vocabulary)
    of_speech = work / seconds * 3600 * config.epochs / (config.teraflops * 1e12) / 3600  # hours of machine, per hour
    hours = {
        "no DP": config.hours * of_speech,
        f"{config.teachers} teachers on disjoint parts": config.hours * of_speech,
        f"{config.teachers} teachers on Poisson sub-samples": config.hours * of_speech,
        f"{config.students} students": config.public_hours * config.students * of_speech,
        "DP-SGD (per-sample gradients: twice the work)": 2 * config.hours * of_speech,
    }
    return Plan(parameters, memory / 2**30, hours)


def price_answers(config: PlanConfig, epsilon: float, delta: float) -> list[Price]:
    """Noise for (epsilon, delta) when teachers are asked about every frame, every token, or every utterance."""
    mu = accounting.gdp_mu(epsilon, delta)
    asked = {
        "every encoder frame": config.public_hours * 3600 * FRAMES_PER_SECOND,
        "every token": config.public_utterances * (config.tokens + 1),
        "every utterance": float(config.public_utterances),
    }
    found = []
    for what, number in asked.items():
        queries = round(number)
        votes = math.sqrt(2 * queries) / mu
        found.append(Price(what, queries, votes / config.teachers, votes / math.sqrt(config.teachers), votes))
    return found


def affordable_queries(teachers: int, epsilon: float, delta: float, sigma: float = CLEAR) -> int:
    """Most Gaussian answers at (epsilon, delta) together whose noise on the mean posterior is at most ``sigma``."""
    return math.floor((sigma * teachers * accounting.gdp_mu(epsilon, delta)) ** 2 / 2)
