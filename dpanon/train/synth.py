"""Training of a synthesizer on public speech: content through its noise, f0 and x-vector -> the recording.

The content is taken from crops whose vocal tract and channel were changed (as in the extractor's own training),
while the recording to be made stays as it was: timbre has to come from the x-vector.

Of nsf and hifigan the acoustic model learns log-mel spectra from the content (L1), and what is behind it learns samples
from log-mel: of the recording, as in paper A, or, from some step on, of the acoustic model, as it will be in use.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from dpanon.data.arrays import load_scp
from dpanon.data.audio import read_audio
from dpanon.data.batches import Crop, epoch_batches
from dpanon.data.data_dir import DataDir
from dpanon.errors import ConfigError
from dpanon.features.f0 import interpolate_log_f0
from dpanon.features.fbank import fbank
from dpanon.features.level import normalise_level
from dpanon.models.acoustic import LogMel, mel_bank
from dpanon.models.bottleneck import Bottleneck
from dpanon.models.losses import StftLoss
from dpanon.models.recogniser import RecogniserLoss
from dpanon.synth.choose import make_synthesizer
from dpanon.synth.discriminators import Discriminators, discriminator_loss, generator_loss
from dpanon.synth.harmonic import SHIFT, HarmonicConfig
from dpanon.synth.hifigan import HifiganConfig, HifiganDiscriminators
from dpanon.synth.nsf import NsfConfig
from dpanon.synth.vocoder import Vocoder
from dpanon.train import parallel
from dpanon.train.bottleneck import augment, blur, train_noise
from dpanon.train.codes import count_tokens, with_codes
from dpanon.train.loop import LoopConfig, train, update

_LEAST_CROP = 20  # frames: of shorter ones the period of 11 samples leaves nothing to reflect after four strides
_FALLBACK_F0 = 150.0  # Hz, for recordings without a voiced frame


@dataclass(frozen=True)
class TrainSynthConfig:
    """Every key of conf/synth*.yaml is a field here. Only the sizes of the synthesizer that is trained may be given."""

    loop: LoopConfig
    synthesizer: Literal["harmonic", "nsf", "hifigan"] = "harmonic"
    model: HarmonicConfig = field(default_factory=HarmonicConfig)  # of harmonic
    nsf: NsfConfig = field(default_factory=NsfConfig)
    hifigan: HifiganConfig = field(default_factory=HifiganConfig)
    crop: int = 120  # frames
    batch: int = 16
    warp: float = 0.15
    tilt: float = 0.7
    blur: float = 0.2
    joint: bool = False  # go on training the extractor too: its content then carries what this synthesizer needs
    envelope_weight: float = 1.0  # of the smoothed log-mel difference
    recogniser_weight: float = 0.0  # of what a recogniser's encoder makes of it, see models.recogniser
    codebooks: int = 0  # give the extractor, which has none, so many codebooks; their noise is that of one-hot frames
    code_size: int = 128  # vectors of each
    code_weight: float = 1.0  # of the distance between the extractor's columns and their codes
    adversarial_from: int = -1  # first step with discriminators; -1: never
    adversarial_weight: float = 0.1
    discriminators: Literal["spectrogram", "hifigan"] = "spectrogram"
    own_mel_from: int = 0  # of nsf, hifigan: first step whose samples are made of the acoustic model's mel; -1: none

    def __post_init__(self):
        if self.synthesizer != "harmonic" and (self.joint or self.codebooks):
            raise ValueError(
                f"joint and codebooks train the extractor, which goes with harmonic only; train {self.synthesizer} on "
                "the extractor of such a training, its bn/"
            )
        for name, made in {"model": "harmonic", "nsf": "nsf", "hifigan": "hifigan"}.items():
            if made != self.synthesizer and getattr(self, name) != type(getattr(self, name))():
                raise ValueError(f"{name} is of the synthesizer {made}, not of {self.synthesizer}")
        if self.discriminators == "hifigan" and self.adversarial_from < 0:
            raise ValueError("discriminators: hifigan, and no step has any; give adversarial_from")
        if self.discriminators == "hifigan" and self.crop < _LEAST_CROP:
            raise ValueError(f"discriminators: hifigan judge crops of at least {_LEAST_CROP} frames, not {self.crop}")

    @property
    def network(self) -> HarmonicConfig | NsfConfig | HifiganConfig:
        """Of the synthesizer that is trained."""
        if self.synthesizer == "harmonic":
            return self.model
        return self.nsf if self.synthesizer == "nsf" else self.hifigan


def train_synth(
    config: TrainSynthConfig, extractor: Bottleneck, epsilon: float | None, data: DataDir, out: Path, init: Path | None
) -> tuple[dict[str, float], Bottleneck]:
    """Train on a data directory with f0.scp and xvector.scp.

    Args:
        extractor: trained bn extractor, where this process trains; frozen, unless ``config.joint``.
        epsilon: of one frame, the noise in the content; None for the system `plain`.
        init: a directory of an earlier run to start from.

    Returns:
        Figures of the last tenth of the run, and the extractor: another one if it was given codebooks here.

    Raises:
        ConfigError: the extractor gives content of another size, or ``init`` has a synthesizer of another kind or size.
        MissingDependencyError: hifigan without SpeechBrain, or a recogniser's loss without its packages.
    """
    network = config.network
    takes = network.content if isinstance(network, HarmonicConfig) else network.acoustic.content
    if extractor.config.content != takes:
        raise ConfigError(f"the extractor gives content of {extractor.config.content}, the synthesizer takes {takes}")
    corpus = _Corpus(data, extractor.config.features)
    if config.codebooks:
        extractor = with_codes(extractor, config.codebooks, config.code_size, corpus.some_features())
    extractor.train(config.joint).requires_grad_(config.joint)
    noise, scale = train_noise(epsilon, extractor.width)
    torch.manual_seed(config.loop.seed)  # of the first weights; nothing here is released
    model = make_synthesizer(network)
    judges: nn.Module = HifiganDiscriminators() if config.discriminators == "hifigan" else Discriminators()
    spectral, mel, log_mel = StftLoss(), MelLoss(), LogMel()
    recogniser = RecogniserLoss() if config.recogniser_weight > 0 else None
    trained = nn.ModuleList([model, extractor] if config.joint else [model])
    optimizers = {"judge_optimizer": _adamw(judges, config.loop.lr)}
    if isinstance(model, Vocoder):  # samples send the acoustic model no gradient, so it has a clip of its own, too
        trained = nn.ModuleList(part for part in model.children() if part is not model.acoustic)
        optimizers["acoustic_optimizer"] = _adamw(model.acoustic, config.loop.lr)
    optimizers["optimizer"] = _adamw(trained, config.loop.lr)
    if init is not None and not (out / "checkpoint.pt").exists():
        _begin_with(init, model, judges)

    def step(index: int, batch: list[Crop], rng: np.random.Generator) -> dict[str, float]:
        b = corpus.batch(batch)
        with torch.set_grad_enabled(config.joint):
            if extractor.config.features == "fbank":
                x, mean = augment(b["features"], b["mean"], config.warp, config.tilt)
            else:
                x, mean = blur(b["features"], config.blur), b["mean"]
            content, cost = extractor.transmit(x, mean, noise, scale)
        true, voice, phase = b["samples"], (b["f0"], b["xvector"]), torch.rand(len(batch))
        if isinstance(model, Vocoder):
            wanted, mel_made = log_mel(true), model.acoustic(content, *voice)
            own = 0 <= config.own_mel_from <= index
            made = model.wave(mel_made.detach() if own else wanted, *voice, phase)
            loss_acoustic = functional.l1_loss(mel_made, wanted)
            update(loss_acoustic, model.acoustic, optimizers["acoustic_optimizer"], config.loop.clip)
            figures = {"acoustic": loss_acoustic.item()}
        else:
            made, figures = model(content, *voice, phase), {}
        loss_spectral, loss_mel = spectral(made, true), mel(made, true)
        loss = loss_spectral + config.envelope_weight * loss_mel
        figures |= {"stft": loss_spectral.item(), "mel": loss_mel.item()}
        if extractor.codes is not None:
            loss = loss + config.code_weight * cost
            figures["codes"] = cost.item()
        if recogniser is not None:
            loss_heard = recogniser(made, true)
            loss = loss + config.recogniser_weight * loss_heard
            figures["heard"] = loss_heard.item()
        if 0 <= config.adversarial_from <= index:
            judge_loss = discriminator_loss(judges, true, made.detach())
            update(judge_loss, judges, optimizers["judge_optimizer"], config.loop.clip)
            adversarial = generator_loss(judges, true, made)
            loss = loss + config.adversarial_weight * adversarial
            figures |= {"judges": judge_loss.item(), "adversarial": adversarial.item()}
        update(loss, trained, optimizers["optimizer"], config.loop.clip)
        return figures

    done = train(
        out,
        config.loop,
        ({"extractor": extractor} if config.joint else {}) | {"model": model, "judges": judges} | optimizers,
        list(optimizers.values()),
        lambda epoch: epoch_batches(data, config.crop, config.batch, config.loop.seed, epoch),
        step,
        label="synth",
    )
    if config.joint:
        count_tokens(extractor.eval(), corpus.some_features())
    return done, extractor


def _adamw(module: nn.Module, lr: float) -> torch.optim.AdamW:
    return torch.optim.AdamW(module.parameters(), lr=lr, betas=(0.8, 0.98), weight_decay=0.01)


def _begin_with(init: Path, model: nn.Module, judges: nn.Module) -> None:
    """Weights of an earlier run; its discriminators, too, if they are of the same kind."""
    saved = torch.load(init / "checkpoint.pt", map_location="cpu", weights_only=True)["state"]
    try:
        model.load_state_dict(saved["model"])
    except RuntimeError:
        raise ConfigError(f"{init}: another synthesizer than this one; --init takes one of the same sizes") from None
    if saved["judges"].keys() == judges.state_dict().keys():
        judges.load_state_dict(saved["judges"])


class MelLoss(nn.Module):
    """L1 between log-mel spectra: what an ear, or a recogniser, compares. (N, L), (N, L) -> ()"""

    window: Tensor
    bank: Tensor

    def __init__(self, fft: int = 1024, num_mel: int = 80):
        super().__init__()
        self.fft = fft
        self.register_buffer("window", torch.hann_window(fft), persistent=False)
        self.register_buffer("bank", mel_bank(fft // 2 + 1, num_mel), persistent=False)

    def forward(self, estimate: Tensor, reference: Tensor) -> Tensor:
        return functional.l1_loss(self._mel(estimate), self._mel(reference))

    def _mel(self, x: Tensor) -> Tensor:
        spec = torch.stft(x, self.fft, self.fft // 4, window=self.window, return_complex=True)
        return torch.log(self.bank @ torch.sqrt(spec.real**2 + spec.imag**2 + 1e-9) + 1e-3)


class _Corpus:
    """A data directory in memory: samples, the extractor's features, f0 without gaps and x-vectors."""

    def __init__(self, data: DataDir, features: str):
        content = load_scp(data.path / "content.scp") if features == "whisper" else None
        self.per_feature = 1 if content is None else 2  # frames
        f0, xvectors = load_scp(data.path / "f0.scp"), load_scp(data.path / "xvector.scp")
        self.items = {}
        for utt in tqdm(data.utts, desc=f"{data.path}: features", mininterval=10):
            samples = normalise_level(read_audio(data.wav(utt)))
            feats = fbank(samples) if content is None else content[utt]
            log_f0 = interpolate_log_f0(f0[utt])
            voiced = bool((f0[utt] > 0).any())
            self.items[utt] = (
                np.clip(samples * 32768, -32768, 32767).astype(np.int16),
                feats.astype(np.float16),
                feats.mean(0),
                (np.exp(log_f0) if voiced else np.full(len(log_f0), _FALLBACK_F0)).astype(np.float32),
                xvectors[utt],
            )

    def some_features(self, num: int = 200) -> list[tuple[np.ndarray, np.ndarray]]:
        """Features and their mean, of recordings spread over the corpus."""
        items = list(self.items.values())
        return [(item[1].astype(np.float32), item[2]) for item in items[:: max(1, len(items) // num)]]

    def batch(self, crops: list[Crop]) -> dict[str, Tensor]:
        rows: dict[str, list[np.ndarray]] = {n: [] for n in ("samples", "features", "mean", "f0", "xvector")}
        for crop in crops:
            samples, feats, mean, f0, xvector = self.items[crop.utt]
            start = crop.start // 2 * 2
            frames = slice(start, start + crop.num_frames)
            part = slice(start // self.per_feature, (start + crop.num_frames) // self.per_feature)
            rows["samples"].append(samples[frames.start * SHIFT : frames.stop * SHIFT].astype(np.float32) / 32768)
            rows["features"].append(feats[part].astype(np.float32))
            rows["mean"].append(mean[None])
            rows["f0"].append(f0[frames])
            rows["xvector"].append(xvector)
        return {name: parallel.tensor(np.stack(values)) for name, values in rows.items()}
