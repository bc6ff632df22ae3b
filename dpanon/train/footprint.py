"""What the recipe for paper A needs before it is begun: parameters of every network, disk, time.

Nothing is trained and no speech is read. Parameters and multiplications of one pass follow from the configurations, on
torch's meta device; a training step takes three passes. Disk and time are estimates to choose machines by.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dpanon.attack.identification import IdentificationConfig, SpeakerNet
from dpanon.config import load_config
from dpanon.errors import ConfigError, MissingDependencyError
from dpanon.models.acoustic import NUM_MEL
from dpanon.models.bottleneck import FEATURES, Bottleneck
from dpanon.models.intonation import Intonation
from dpanon.models.pitch_autoencoder import PitchAutoencoder
from dpanon.synth.choose import make_synthesizer
from dpanon.synth.discriminators import Discriminators
from dpanon.synth.harmonic import SHIFT, HarmonicNoise
from dpanon.synth.hifigan import HifiganDiscriminators
from dpanon.synth.vocoder import Vocoder
from dpanon.train.bottleneck import NUM_PHONES, Heads, TrainBottleneckConfig
from dpanon.train.intonation import TrainIntonationConfig
from dpanon.train.pitch import TrainPitchConfig
from dpanon.train.synth import TrainSynthConfig

SECOND = 100  # frames
PASSES = 3  # forward, and twice as much backward
ENCODER = (
    7.7e6  # weights of the recogniser's encoder that judges a synthesizer: it reads both signals, gradient through one
)
JUDGED = 1 + 1 + 1 / PASSES + 1  # passes of discriminators: over both signals, then for the synthesizer over both again
STATE = 12  # bytes of a parameter in a checkpoint: weight and two moments
WHISPER, XVECTOR, TEACHER = FEATURES["whisper"], 192, 384  # numbers in a frame or an utterance
GIB = 2.0**30


@dataclass(frozen=True)
class FootprintConfig:
    """Every key of conf/footprint.yaml is a field here: sizes of the corpora, the systems, the machines."""

    extractor_hours: float  # of speech that trains extractors, f0 auto-encoders and synthesizers
    pool_hours: float  # of the public pool of voices
    attack_hours: float  # that the attackers release, twice
    test_hours: float  # that is attacked
    attack_speakers: int
    systems: int = 6  # that are released: each writes recordings of attack and test
    epsilons: int = 3  # of each of bn and f0, beside no noise
    gpus: int = 1
    teraflops: float = 10.0  # that a GPU sustains in these trainings, not those of its data sheet
    jobs: int = 16  # of extraction, release and recognition on CPUs
    real_time_factor: float = 0.5  # of one such job: features, release, synthesis
    flac_megabytes: float = 62.0  # of an hour at 16 kHz

    def __post_init__(self):
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be finite and > 0, got {value}")


@dataclass(frozen=True)
class Network:
    """A network, and its training: 0 hours for one that others train with or that is small beside them."""

    name: str
    parameters: int
    number: int  # of them in the recipe
    gpu_hours: float  # of all of them


def networks(conf: Path, plan: FootprintConfig, chosen: str = "harmonic") -> list[Network]:
    """Every network of the recipe whose configurations are in ``conf``.

    Of nsf and hifigan only the one that is ``chosen`` as the synthesizer is trained: of the other there are 0.

    Raises:
        ConfigError: a file is missing or mistaken, or two do not fit together.
        MissingDependencyError: hifigan is chosen, and there is no SpeechBrain.
    """
    bn = load_config(TrainBottleneckConfig, conf / "bn_start.yaml")
    synths = [load_config(TrainSynthConfig, conf / f"{name}.yaml") for name in ("synth", "synth_codes")]
    f0 = load_config(TrainPitchConfig, conf / "f0.yaml")
    asi = load_config(IdentificationConfig, conf / "asi.yaml")
    attacked = load_config(TrainBottleneckConfig, conf / "bn_tdnnf.yaml")
    told = load_config(TrainIntonationConfig, conf / "intonation.yaml")
    first = synths[0].model
    if first.content != bn.model.content:
        raise ConfigError(
            f"{conf}: synth.yaml takes content of {first.content}, bn_start.yaml gives {bn.model.content}"
        )
    if told.model.content != first.content:
        raise ConfigError(f"{conf}: intonation.yaml takes content of {told.model.content}, not of {first.content}")
    if any(synth.network != first for synth in synths):
        raise ConfigError(f"{conf}: synth_codes.yaml begins with synth.yaml's weights: other sizes")
    with torch.device("meta"):  # no memory is taken
        extractor, synthesizer, pitch = Bottleneck(bn.model), HarmonicNoise(first), PitchAutoencoder(f0.model)
        intonation = Intonation(told.model).eval()
        heads, judges = Heads(bn.model.content, TEACHER, NUM_PHONES, XVECTOR, FEATURES["fbank"]), Discriminators()
        speakers = SpeakerNet(asi, bn.model.bottleneck, plan.attack_speakers).eval()
        tdnnf, mel = Bottleneck(attacked.model), torch.empty(1, SECOND, FEATURES["fbank"])
        step = 1 if bn.model.features == "fbank" else 2
        frames, content = torch.empty(1, SECOND // step, FEATURES[bn.model.features]), torch.empty(1, 50, first.content)
        contour, xvector = torch.empty(1, SECOND), torch.empty(1, first.xvector)
        dense = torch.empty(1, SECOND, bn.model.bottleneck)
    of_bn = flops(lambda: extractor.decode(extractor.dense(frames)))
    of_tdnnf = (plan.epsilons + 1) * flops(lambda: tdnnf.decode(tdnnf.dense(mel)))
    of_synth = of_bn + flops(lambda: synthesizer.envelopes(content, contour, xvector))
    of_intonation = of_bn / PASSES + flops(lambda: intonation(content))  # the extractor stays as it is
    of_synth += 4 / PASSES * 2 * ENCODER * SECOND / 2 if synths[0].recogniser_weight else 0.0

    def hours(of_second: float, config) -> float:
        return _hours(plan, config, of_second)

    attacks = 3 * (plan.epsilons + 1) + 1  # f0 and two bottlenecks, with and without noise; and a control
    of_f0, of_asi = flops(lambda: pitch.decode_raw(pitch.encode(contour))), flops(lambda: speakers(dense))
    return [
        Network("bottleneck extractor", size(extractor), len(synths), hours(of_bn, bn)),
        Network("its heads in training", size(heads), 1, 0.0),
        Network(
            "synthesizer, with its extractor", size(synthesizer), len(synths), sum(hours(of_synth, s) for s in synths)
        ),
        Network("discriminators in training", size(judges), 1, 0.0),
        *_vocoders(conf, plan, chosen, len(synths), of_bn, bn.model.content),
        Network("intonation", size(intonation), 1, hours(of_intonation, told)),
        Network("f0 auto-encoder", size(pitch), plan.epsilons, plan.epsilons * hours(of_f0, f0)),
        Network("extractor of paper A (P_ASI)", size(tdnnf), plan.epsilons + 1, hours(of_tdnnf, attacked)),
        Network("speaker classifier (P_ASI)", size(speakers), attacks, attacks * hours(of_asi, asi)),
        *_ecapa(conf, plan),
    ]


def _vocoders(conf: Path, plan: FootprintConfig, chosen: str, number: int, of_bn: float, content: int) -> list[Network]:
    """nsf and hifigan, behind ``number`` extractors, and the discriminators of HiFi-GAN if one of them has those.

    hifigan only if SpeechBrain is there to say how large it is.
    """
    found = []
    for name in ("nsf", "hifigan"):
        config = load_config(TrainSynthConfig, conf / f"synth_{name}.yaml")
        takes = (config.nsf if name == "nsf" else config.hifigan).acoustic.content
        if takes != content:
            raise ConfigError(f"{conf}: synth_{name}.yaml takes content of {takes}, bn_start.yaml gives {content}")
        try:
            with torch.device("meta"):
                network = make_synthesizer(config.network)
                judges = HifiganDiscriminators() if config.discriminators == "hifigan" else None
        except MissingDependencyError:
            if name == chosen:
                raise
            continue
        times = number if name == chosen else 0
        work = of_bn / PASSES + _of_vocoder(network, judges, 1 - config.adversarial_from / config.loop.steps)
        found.append(Network(f"synthesizer {name}", size(network), times, times * _hours(plan, config, work)))
        if judges is not None:
            found.append(Network(f"discriminators of {name} in training", size(judges), min(times, 1), 0.0))
    return found


def _of_vocoder(network: Vocoder, judges: nn.Module | None, judged: float) -> float:
    """Operations of a second of speech; ``judged``: the share of the steps with discriminators."""
    acoustic = network.acoustic.config
    with torch.device("meta"):
        mel, f0, voice = torch.empty(1, SECOND, NUM_MEL), torch.empty(1, SECOND), torch.empty(1, acoustic.xvector)
        content, samples = torch.empty(1, SECOND // 2, acoustic.content), torch.empty(1, SECOND * SHIFT)
        work = flops(lambda: network.acoustic(content, f0, voice)) + flops(lambda: network.wave(mel, f0, voice))
        return work if judges is None else work + judged * JUDGED * flops(lambda: judges(samples))


def _hours(plan: FootprintConfig, config, of_second: float) -> float:
    """Of one training; ``of_second``: operations of one pass over a second of speech."""
    seconds = config.loop.steps * config.batch * config.crop / SECOND
    return PASSES * of_second * seconds / (plan.teraflops * 1e12) / 3600


def _ecapa(conf: Path, plan: FootprintConfig) -> list[Network]:
    """ECAPA-TDNN of every system, if SpeechBrain is there to say how large it is."""
    from dpanon.attack.ecapa import EcapaConfig, EcapaNet

    config = load_config(EcapaConfig, conf / "ecapa.yaml")
    try:
        with torch.device("meta"):
            net = EcapaNet(config)
    except MissingDependencyError:
        return []
    head = config.dim * plan.attack_speakers
    # a layer multiplies each of its weights once in a frame
    total = 2 * size(net) * config.loop.steps * config.batch * config.crop * PASSES * plan.systems
    return [Network("ECAPA-TDNN attacker", size(net) + head, plan.systems, total / (plan.teraflops * 1e12) / 3600)]


def size(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def flops(run: Callable[[], object]) -> float:
    """Floating-point operations of the matrix products and convolutions in ``run``."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        run()
    return float(counter.get_total_flops())


def disk(plan: FootprintConfig, found: list[Network]) -> dict[str, float]:
    """GiB by what fills them."""
    per_hour = 3600.0 * SECOND  # frames
    trained = plan.extractor_hours + plan.pool_hours
    speech = trained + plan.attack_hours + plan.test_hours
    released = plan.systems * (2 * plan.attack_hours + plan.test_hours)
    return {
        "corpora, FLAC": speech * plan.flac_megabytes * 1e6 / GIB,
        "f0 and recogniser features of training speech": trained * per_hour * 4 * (1 + WHISPER / 2) / GIB,
        f"released recordings of {plan.systems} systems, 16 kHz PCM16": released * 3600 * 32000 / GIB,
        "checkpoints and weights": sum(network.number * network.parameters * (STATE + 4) for network in found) / GIB,
    }


def cpu_hours(plan: FootprintConfig) -> dict[str, float]:
    """Hours on ``plan.jobs`` CPU jobs at once."""
    trained = plan.extractor_hours + plan.pool_hours
    released = plan.systems * (2 * plan.attack_hours + plan.test_hours)
    return {
        "features of training speech": trained * plan.real_time_factor / plan.jobs,
        f"release of {plan.systems} systems": released * plan.real_time_factor / plan.jobs,
        "embeddings of attackers, recognition": (released + plan.systems * plan.test_hours)
        * plan.real_time_factor
        / plan.jobs
        / 2,
    }
