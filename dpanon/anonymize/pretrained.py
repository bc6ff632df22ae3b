"""The shipped weights: safetensors bundles, and how the parts of a system are put together from them.

    pretrained/bn_<name>.safetensors     bottleneck extractor      name: plain, or eps<epsilon of one frame>
    pretrained/synth_<name>.safetensors  synthesizer; an extractor without one goes with that of the next larger epsilon
    pretrained/f0_<name>.safetensors     pitch auto-encoder        name: eps100, eps10, eps1 (of one utterance)
    pretrained/contour.json              public shape of f0 contours (rank, radius and centre of LowRankPitch)
    pretrained/intonation_<name>.safetensors  optional: the contour that content of bn_<name> lets expect
    pretrained/targets.safetensors       pseudo-speakers
    pretrained/speaker.safetensors       auto-encoder of x-vectors (system voxlet)

The file's metadata holds the configuration, and of a synthesizer which one it is (``dpanon.synth.choose``, harmonic if
it says nothing); numbers are float16 on disk and float32 in use.
"""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from dpanon.anonymize.content import Content, Frames, Tokens
from dpanon.anonymize.embeddings import Protector, speaker_mechanism
from dpanon.anonymize.pipeline import System
from dpanon.anonymize.prosody import Boxed, Contour, Converted, Kept, Naive, Prosody
from dpanon.anonymize.systems import check_parameters, parts_of
from dpanon.anonymize.voxlet import ReleasedVoice
from dpanon.config import load_config
from dpanon.errors import UsageError
from dpanon.features.xvector import load_extractor
from dpanon.models.bottleneck import Bottleneck, BottleneckConfig
from dpanon.models.gender_autoencoder import GenderAutoencoder, GenderAutoencoderConfig
from dpanon.models.intonation import Intonation, IntonationConfig
from dpanon.models.pitch_autoencoder import PitchAutoencoder, PitchAutoencoderConfig
from dpanon.models.speaker_vae import SpeakerVae, SpeakerVaeConfig
from dpanon.models.tokens import num_symbols
from dpanon.synth.choose import SYNTHESIZERS, name_of
from dpanon.synth.targets import TargetPool

SHIPPED = Path(__file__).parent / "pretrained"
_NETWORKS: dict[str, tuple[Any, Any]] = {
    "bn": (Bottleneck, BottleneckConfig),
    "f0": (PitchAutoencoder, PitchAutoencoderConfig),
    "gender": (GenderAutoencoder, GenderAutoencoderConfig),
    "intonation": (Intonation, IntonationConfig),
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
    synthesizer = {} if (name := name_of(network)) is None else {"synthesizer": name}
    save_file(tensors, path, {**facts, **synthesizer, "config": config})


def load_network(kind: str, path: Path) -> nn.Module:
    """A network of ``kind`` (bn, f0, synth, gender, intonation or speaker), in eval mode, without gradients.

    Raises:
        MissingDependencyError: a synthesizer that needs SpeechBrain, and there is none.
        UsageError: a synthesizer that this version does not know.
    """
    from safetensors import safe_open

    make, config_class = _NETWORKS[kind] if kind != "synth" else _synthesizer(path)
    values = _configuration(path)
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}
    config: Any = load_config(config_class, None, [f"{k}={json.dumps(v)}" for k, v in values.items()])
    network = make(config)
    if kind == "f0":
        for name in ("gains", "gain_scales"):  # as many as were measured
            network.register_buffer(name, torch.zeros_like(tensors[name]))
    network.load_state_dict(tensors)
    return network.eval().requires_grad_(False)


def _metadata(path: Path) -> dict[str, str]:
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return file.metadata()


def _configuration(path: Path) -> dict[str, Any]:
    return json.loads(_metadata(path)["config"])


def _synthesizer(path: Path) -> tuple[Any, Any]:
    name = _metadata(path).get("synthesizer", "harmonic")
    if name not in SYNTHESIZERS:
        raise UsageError(f"{path}: weights of a synthesizer {name!r}; this version has {', '.join(SYNTHESIZERS)}")
    return SYNTHESIZERS[name]


def shipped_epsilons(kind: str, models: Path = SHIPPED) -> list[float]:
    """The epsilons that ``kind`` (bn, f0 or synth) was trained for, largest first."""
    names = [p.stem.removeprefix(f"{kind}_eps") for p in models.glob(f"{kind}_eps*.safetensors")]
    return sorted((float(name) for name in names), reverse=True)


def load_system(
    name: str,
    epsilon_bn: float | None = None,
    epsilon_f0: float | None = None,
    models: Path | None = None,
    epsilon_token: float | None = None,
    mu_f0: float | None = None,
    mu: float | None = None,
    noise_level: float | None = None,
    sigma_rule: str | None = None,
    voice_model: Path | None = None,
) -> System:
    """Put a system together.

    Args:
        name: one of ``systems.SYSTEMS``, which says how it releases content and prosody; ``voxlet`` (the recording's
            own x-vector with noise) does it with the noise that is asked for, or with none.
        epsilon_bn: of one frame (content ``frames``). Weights with codes serve any value, dense ones their own.
        epsilon_token: of one token (content ``tokens``).
        epsilon_f0: of one utterance (prosody ``box`` and ``naive``). Any value: the nearest trained weights serve,
            the noise is always that of the value asked for.
        mu_f0: of one utterance (prosody ``contour``, which corrects what the content lets expect, where the weights
            have an intonation network of the extractor).
        models: directory of weights, the shipped ones by default.
        mu, noise_level, sigma_rule: of voxlet, see ``dpanon.anonymize.embeddings.speaker_mechanism``.
        voice_model: directory with speaker.safetensors for voxlet; that of ``models`` by default.

    Raises:
        UsageError: an unknown system, a missing or unused parameter, or one without weights.
    """
    models = SHIPPED if models is None else models
    given = {"epsilon_bn": epsilon_bn, "epsilon_token": epsilon_token, "epsilon_f0": epsilon_f0, "mu_f0": mu_f0}
    noise = check_parameters(name, given)
    if name != "voxlet" and (mu, noise_level, sigma_rule) != (None, None, None):
        raise UsageError(f"--mu, --noise-level and --sigma-rule are of the system voxlet, not of {name}")
    content, prosody = parts_of(name, given)
    pool = TargetPool.load(_existing(models / "targets.safetensors"))
    released, weights = _content(content, noise, models)
    voice = _voice(voice_model or models, pool, mu, noise_level, sigma_rule) if name == "voxlet" else None
    parts = released, _prosody(prosody, noise, models), _synth(weights, models), pool
    intonation = _intonation(weights, models) if prosody == "contour" else None
    return System(name, *parts, voice=voice, intonation=intonation)


def _content(part: str, noise: Mapping[str, float], models: Path) -> tuple[Content, str]:
    """The content of a system, and the name of the weights."""
    from dpanon.privacy import BottleneckFrames, TokenResponse

    if part == "clear":
        return Frames(_load("bn", "plain", models)), "plain"
    if part == "frames":
        epsilon = BottleneckFrames(noise["epsilon_bn"]).epsilon  # a bad value shows before the weights are looked for
        weights = f"eps{_trained_for(epsilon, models):g}"
        extractor = _load("bn", weights, models)
        return Frames(extractor, BottleneckFrames(epsilon, extractor.width)), weights
    weights = f"eps{_coded(noise['epsilon_token'], models, '--epsilon-token'):g}"
    extractor = _load("bn", weights, models)
    return Tokens(extractor, TokenResponse(noise["epsilon_token"], num_symbols(extractor.codes))), weights


def _prosody(part: str, noise: Mapping[str, float], models: Path) -> Prosody:
    from dpanon.privacy import LowRankPitch, PitchBox

    if part in ("kept", "converted"):
        return Kept() if part == "kept" else Converted()
    if part == "contour":
        shape = json.loads(_existing(models / "contour.json").read_text())
        return Contour(LowRankPitch(noise["mu_f0"], shape["rank"], shape["radius"], np.array(shape["centre"])))
    epsilon = PitchBox(noise["epsilon_f0"], 1).epsilon
    if part == "naive":
        return Naive(PitchBox(epsilon, 1))
    trained = shipped_epsilons("f0", models)
    if not trained:
        raise UsageError(f"no f0 weights in {models}: run stages 2 and 3 of the recipe again")
    nearest = min(trained, key=lambda e: abs(math.log(e / epsilon)))
    network = _load("f0", f"eps{nearest:g}", models)
    return Boxed(network, PitchBox(epsilon, network.config.channels))


def _intonation(weights: str, models: Path) -> Intonation | None:
    path = models / f"intonation_{weights}.safetensors"
    return load_network("intonation", path) if path.is_file() else None  # type: ignore[return-value]


def _trained_for(epsilon: float, models: Path) -> float:
    """The epsilon whose extractor serves. Dense weights serve their own only; codes are read under any noise."""
    trained = shipped_epsilons("bn", models)
    return epsilon if epsilon in trained else _coded(epsilon, models, "--epsilon-bn")


def _coded(epsilon: float, models: Path, parameter: str) -> float:
    """The epsilon of the extractor with codes that is nearest."""
    trained = shipped_epsilons("bn", models)
    coded = [other for other in trained if _configuration(models / f"bn_eps{other:g}.safetensors").get("codebooks")]
    if coded:
        return min(coded, key=lambda other: abs(math.log(other / epsilon)))
    raise UsageError(
        f"no weights for {parameter} {epsilon:g}; choose one of {', '.join(f'{e:g}' for e in trained)}, or train some "
        "with codes, which serve tokens and any epsilon: stages 2 and 3 of egs/librispeech/anon, then --models"
    )


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
    if name.startswith("eps"):
        known = [epsilon for epsilon in shipped_epsilons("synth", models) if epsilon >= float(name.removeprefix("eps"))]
        name = f"eps{min(known):g}" if known else "plain"
    return _load("synth", name, models)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"{path}: no such weights; the shipped ones are in {SHIPPED}, see its README.md")
    return path
