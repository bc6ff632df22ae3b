"""The shipped weights: safetensors bundles, and how the parts of a system are put together from them.

    pretrained/bn_<name>.safetensors     bottleneck extractor      name: plain, eps100, eps10, eps1 (of one frame)
    pretrained/synth_<name>.safetensors  synthesizer; an extractor without one goes with that of the next larger epsilon
    pretrained/f0_<name>.safetensors     pitch auto-encoder        name: eps100, eps10, eps1 (of one utterance)
    pretrained/targets.safetensors       pseudo-speakers
    speaker.safetensors                  auto-encoder of x-vectors (system voxlet); not shipped, --voice-model

The file's metadata holds the configuration; numbers are float16 on disk and float32 in use.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpanon.anonymize.embeddings import Protector, speaker_mechanism
from dpanon.anonymize.pipeline import System
from dpanon.anonymize.voxlet import ReleasedVoice
from dpanon.config import load_config
from dpanon.errors import UsageError
from dpanon.features.xvector import load_extractor
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.gender_autoencoder import GenderAutoencoder, GenderAutoencoderConfig
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.synth.harmonic import HarmonicConfig, HarmonicNoise
from dpanon.synth.targets import TargetPool

SHIPPED = Path(__file__).parent / "pretrained"
SYSTEMS = ("dp", "plain", "voxlet")
_NETWORKS: dict[str, tuple[Any, Any]] = {
    "bn": (Bottleneck, BottleneckConfig),
    "f0": (PitchAutoencoder, PitchAutoencoderConfig),
    "synth": (HarmonicNoise, HarmonicConfig),
    "gender": (GenderAutoencoder, GenderAutoencoderConfig),
    "speaker": (SpeakerVae, SpeakerVaeConfig),
}


def save_network(network: nn.Module, path: Path, facts: dict[str, str]) -> None:
    """Write weights (float16, but what measures the noise stays float32), configuration and facts."""
    from safetensors.torch import save_file

    tensors = {
        name: (value.half() if value.ndim > 1 else value.float()).contiguous()
        for name, value in network.state_dict().items()
    }
    config = json.dumps(dataclasses.asdict(network.config))  # type: ignore[call-overload]
    save_file(tensors, path, {**facts, "config": config})


def load_network(kind: str, path: Path) -> nn.Module:
    """A network of ``kind`` (bn, f0, synth, gender or speaker), in eval mode, without gradients."""
    from safetensors import safe_open

    make, config_class = _NETWORKS[kind]
    with safe_open(path, "pt") as file:
        values = json.loads(file.metadata()["config"])
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}
    config: Any = load_config(config_class, None, [f"{k}={json.dumps(v)}" for k, v in values.items()])
    network = make(config)
    if kind == "f0":
        for name in ("gains", "gain_scales"):  # as many as were measured
            network.register_buffer(name, torch.zeros_like(tensors[name]))
    network.load_state_dict(tensors)
    return network.eval().requires_grad_(False)


def shipped_epsilons(kind: str, models: Path = SHIPPED) -> list[float]:
    """The epsilons that ``kind`` (bn, f0 or synth) was trained for, largest first."""
    names = [p.stem.removeprefix(f"{kind}_eps") for p in models.glob(f"{kind}_eps*.safetensors")]
    return sorted((float(name) for name in names), reverse=True)


def load_system(
    name: str,
    epsilon_bn: float | None = None,
    epsilon_f0: float | None = None,
    models: Path | None = None,
    mu: float | None = None,
    noise_level: float | None = None,
    sigma_rule: str | None = None,
    voice_model: Path | None = None,
) -> System:
    """Put a system together.

    Args:
        name: ``dp`` (noise in bn and f0), ``plain`` (the same without noise: no guarantee) or ``voxlet`` (the
            recording's own x-vector with noise; bn and f0 as in plain, or as in dp when both epsilons are given).
        epsilon_bn: of one frame; needed by ``dp``. Weights exist for some values only.
        epsilon_f0: of one utterance; needed by ``dp``. Any value: the nearest trained weights serve,
            the noise is always that of the value asked for.
        models: directory of weights, the shipped ones by default.
        mu, noise_level, sigma_rule: of voxlet, see ``dpanon.anonymize.embeddings.speaker_mechanism``.
        voice_model: directory with speaker.safetensors for voxlet; that of ``models`` by default.

    Raises:
        UsageError: an unknown system, a missing epsilon, or one without weights.
    """
    from dpanon.privacy import BottleneckFrames, PitchBox

    models = SHIPPED if models is None else models
    if name not in SYSTEMS:
        raise UsageError(f"unknown system {name!r}; choose one of {', '.join(SYSTEMS)}")
    if name == "voxlet":
        if (epsilon_bn is None) != (epsilon_f0 is None):
            raise UsageError("the system voxlet takes --epsilon-bn and --epsilon-f0 together, or neither")
        system = load_system("plain" if epsilon_bn is None else "dp", epsilon_bn, epsilon_f0, models)
        system.name, system.voice = name, _voice(voice_model or models, system.pool, mu, noise_level, sigma_rule)
        return system
    if (mu, noise_level, sigma_rule) != (None, None, None):
        raise UsageError(f"--mu, --noise-level and --sigma-rule are of the system voxlet, not of {name}")
    pool = TargetPool.load(_existing(models / "targets.safetensors"))
    if name == "plain":
        if epsilon_bn is not None or epsilon_f0 is not None:
            raise UsageError("the system plain has no noise: leave out --epsilon-bn and --epsilon-f0, or choose dp")
        return System("plain", _load("bn", "plain", models), _synth("plain", models), pool)
    if epsilon_bn is None or epsilon_f0 is None:
        raise UsageError("the system dp needs --epsilon-bn (of one frame) and --epsilon-f0 (of one utterance)")
    frames = BottleneckFrames(epsilon_bn)  # checks the value first
    trained = shipped_epsilons("bn", models)
    if epsilon_bn not in trained:
        raise UsageError(
            f"no weights for --epsilon-bn {epsilon_bn:g}; choose one of {', '.join(f'{e:g}' for e in trained)}, "
            "or train it with stages 2 and 3 of egs/librispeech/anon and give --models"
        )
    PitchBox(epsilon_f0, 1)
    pitch_trained = shipped_epsilons("f0", models)
    if not pitch_trained:
        raise UsageError(f"no f0 weights in {models}: run stages 2 and 3 of the recipe again")
    nearest = min(pitch_trained, key=lambda e: abs(torch.log(torch.tensor(e / epsilon_f0))))
    pitch = _load("f0", f"eps{nearest:g}", models)
    box = PitchBox(epsilon_f0, pitch.config.channels)
    bn = f"eps{epsilon_bn:g}"
    return System("dp", _load("bn", bn, models), _synth(bn, models), pool, frames, pitch, box)


def _voice(
    models: Path, pool: TargetPool, mu: float | None, noise_level: float | None, rule: str | None
) -> ReleasedVoice:
    if not (models / "speaker.safetensors").is_file():
        raise UsageError(
            f"{models}/speaker.safetensors: no such weights; train them with steps/train_speaker.sh (stages 0 to 2 of "
            "egs/commonvoice/voxlet) and give --voice-model"
        )
    network = _load("speaker", "", models)
    mechanism = speaker_mechanism(mu, noise_level, rule, float(network.radius), network.config.latent)
    return ReleasedVoice(load_extractor("campplus"), Protector(network, mechanism, network.config.dim), pool)


def _load(kind: str, name: str, models: Path):
    return load_network(kind, _existing(models / f"{f'{kind}_{name}' if name else kind}.safetensors"))


def _synth(name: str, models: Path):
    """The synthesizer of an extractor: its own, or that of the next larger epsilon whose content it gives."""
    if name != "plain":
        known = [epsilon for epsilon in shipped_epsilons("synth", models) if epsilon >= float(name.removeprefix("eps"))]
        name = f"eps{min(known):g}" if known else "plain"
    return _load("synth", name, models)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"{path}: no such weights; the shipped ones are in {SHIPPED}, see its README.md")
    return path
