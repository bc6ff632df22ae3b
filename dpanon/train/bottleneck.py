"""Training of the bottleneck extractor: the noise inside, teachers outside.

Behind the noise, small heads (thrown away afterwards) have to recover, from content alone,
the encoder output of a recogniser, the phones of another, and, told who speaks and at which pitch,
the mel spectrum. The extractor hears every crop with another vocal tract, channel and level, while the
targets stay the same: what it passes on cannot rely on them.

Every one of these can be left out, by a weight of 0, and letters by CTC can be a target: the extractor of paper A has
neither teachers nor other vocal tracts, only the words.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
from dpanon.models.bottleneck import FEATURES, Bottleneck, BottleneckConfig
from dpanon.models.losses import cosine_loss
from dpanon.train import parallel
from dpanon.train.letters import Letters, inside, whole_batches
from dpanon.train.loop import LoopConfig, train, update

NUM_PHONES = 191  # tokens of the phone teacher
_TABLES = ("content", "f0", "xvector")
_BLANK_WEIGHT = 0.1  # most frames of a CTC recogniser are blank


@dataclass(frozen=True)
class TrainBottleneckConfig:
    """Every key of conf/bn_*.yaml is a field here. A target with a weight of 0 needs no table."""

    loop: LoopConfig
    epsilon: float  # of one frame, inf: no noise; that in training, and of the release for systems with a guarantee
    model: BottleneckConfig = field(default_factory=BottleneckConfig)
    crop: int = 300  # frames
    batch: int = 16
    warp: float = 0.2  # vocal-tract warping by a factor in [1 - warp, 1 + warp]
    tilt: float = 1.0  # random smooth channel, standard deviation in nepers
    blur: float = 0.2  # noise in the recogniser's features, in deviations
    teacher_weight: float = 1.0  # of the recogniser's encoder
    phone_weight: float = 0.3
    mel_weight: float = 1.0
    match_weight: float = 3.0  # of the distance to the content of another extractor, when there is one (--match)
    ctc_weight: float = 0.0  # of the letters of `text`; if > 0, batches are of whole utterances, not of crops
    ctc_loss: str = "auto"  # torch, k2, or auto: k2 where it can be imported
    tokens: Path | None = None  # list of the letters

    def __post_init__(self):
        if not self.epsilon > 0:
            raise ValueError(f"epsilon must be > 0, or inf for no noise, got {self.epsilon:g}")
        weights = (self.teacher_weight, self.phone_weight, self.mel_weight, self.ctc_weight)
        if min(weights) < 0 or not any(weights):
            raise ValueError("teacher_weight, phone_weight, mel_weight and ctc_weight are >= 0, and one of them is > 0")
        if self.ctc_weight and self.tokens is None:
            raise ValueError("ctc_weight > 0 needs tokens, a file with the list of letters")


class Heads(nn.Module):
    """What the teachers are compared with; only training needs it."""

    def __init__(self, content: int, teacher: int, phones: int, xvector: int, mel: int):
        """A ``teacher`` or ``xvector`` of 0 values: no such head."""
        super().__init__()
        if teacher:
            self.teacher = nn.Conv1d(content, teacher, 1)
        self.phones = nn.Conv1d(content, phones, 1)
        if not xvector:
            return
        self.speaker = nn.Linear(xvector + 1, 256)
        self.mel_in = nn.Conv1d(content + 1, 256, 3, padding=1)
        self.mel_mid = nn.Conv1d(256, 256, 3, padding=1)
        self.mel_out = nn.Conv1d(256, 2 * mel, 1)

    def mel(self, content: Tensor, log_f0: Tensor, xvector: Tensor) -> Tensor:
        """content (N, D, T/2), log f0 (N, T/2), x-vector -> (N, T, mel)"""
        condition = self.speaker(torch.cat([xvector * 8, log_f0.mean(1, keepdim=True)], 1))[:, :, None]
        x = functional.leaky_relu(self.mel_in(torch.cat([content, log_f0[:, None]], 1)) + condition)
        x = functional.leaky_relu(self.mel_mid(x) + x)
        x = self.mel_out(x)  # (N, 2M, T/2)
        n, _, half = x.shape
        return x.view(n, 2, -1, half).permute(0, 3, 1, 2).reshape(n, 2 * half, -1)  # -> (N, T, M)


def train_bottleneck(
    config: TrainBottleneckConfig,
    data: DataDir,
    out: Path,
    init: Path | None = None,
    match: Bottleneck | None = None,
) -> dict:
    """Train on a data directory with the tables of its targets.

    These are content.scp (``teacher_weight``, ``match``, or as features), f0.scp and xvector.scp (``mel_weight``),
    phones.scp (``phone_weight``), text (``ctc_weight``).

    Args:
        init: a directory of an earlier run to start from (weights and heads), e.g. at a larger epsilon.
        match: an extractor whose noiseless content this one has to give, so that one synthesizer serves both.

    Returns:
        Figures of the last tenth of the run; the network is ``out/checkpoint.pt``.
    """
    needed = {"f0", "xvector"} if config.mel_weight else set()
    if config.teacher_weight or match is not None or config.model.features == "whisper":
        needed.add("content")
    corpus = Corpus(data, needed)
    model = Bottleneck(config.model)
    heads = Heads(config.model.content, corpus.teacher_dim, NUM_PHONES, corpus.xvector_dim, FEATURES["fbank"])
    both = nn.ModuleDict({"model": model, "heads": heads})
    letters = None
    if config.ctc_weight and config.tokens is not None:
        letters = Letters(config.model.content, config.tokens, config.ctc_loss, data)
        both["letters"] = letters
    if init is not None and not (out / "checkpoint.pt").exists():
        saved = torch.load(init / "checkpoint.pt", map_location="cpu", weights_only=True)["state"]["both"]
        # an extractor that was trained on with a synthesizer has no heads any more: they start anew
        missing = both.load_state_dict(saved, strict=False).missing_keys
        if any(name.startswith("model.") for name in missing):
            raise ConfigError(f"{init}: not an extractor of this size; --init takes one of the same configuration")
    optimizer = torch.optim.AdamW(both.parameters(), lr=config.loop.lr, betas=(0.9, 0.98), weight_decay=0.01)
    noise, scale = train_noise(config.epsilon, model.width)

    def step(index: int, batch: list[Crop], rng: np.random.Generator) -> dict[str, float]:
        b = corpus.batch(batch)
        if config.model.features == "fbank":
            x, mean = b["fbank"], b["mean"]
            if config.warp or config.tilt:
                x, mean = augment(x, mean, config.warp, config.tilt)
        else:
            x, mean = blur(b["content"], config.blur), b["content_mean"]
        frames, cost = model.transmit(x, mean, noise, scale)  # (N, T/2, D)
        content = frames.transpose(1, 2)
        valid = inside(batch)

        def of(values: Tensor) -> Tensor:
            """Without the padding: (N, T/2, ...) -> (frames, ...), or as it is."""
            return values if valid is None else values[valid]

        # means over frames, of which another process may have more
        share = parallel.part(content.shape[0] * content.shape[2] if valid is None else valid.sum())
        loss, figures = cost, dict[str, float]()
        if config.teacher_weight:
            t, wanted = of(heads.teacher(content).transpose(1, 2)), of(b["teacher"])
            teacher, angle = share * functional.l1_loss(t, wanted), share * cosine_loss(t, wanted)
            loss = loss + config.teacher_weight * (teacher + angle)
            figures |= {"teacher": teacher.item(), "cosine": 1 - angle.item()}
        logits, phones = heads.phones(content), b["phones"]
        if valid is not None:
            logits, phones = logits.transpose(1, 2)[valid], phones[valid]
        if config.phone_weight:
            wrong = functional.cross_entropy(logits, phones, weight=corpus.phone_weight)
            loss = loss + config.phone_weight * parallel.part(corpus.phone_weight[phones].sum()) * wrong
        if config.mel_weight:
            mel = heads.mel(content, b["log_f0"], b["xvector"])
            if valid is None:
                distance = functional.l1_loss(mel, b["mel"])
            else:
                ten = valid.repeat_interleave(2, 1)
                distance = functional.l1_loss(mel[ten], b["mel"][ten])
            distance = share * distance
            loss = loss + config.mel_weight * distance
            figures["mel"] = distance.item()
        if letters is not None:
            ctc = letters.loss(content, batch)
            loss = loss + config.ctc_weight * ctc
            figures["ctc"] = ctc.item()
        if match is not None:
            with torch.no_grad():
                clear = ("fbank", "mean") if match.config.features == "fbank" else ("content", "content_mean")
                wanted = of(match.decode(match.denoise(match.encode(*(b[name] for name in clear)), 0.0)))
            distance = (of(frames) - wanted).pow(2).mean() / wanted.var()
            loss = loss + config.match_weight * distance
            figures["match"] = distance.item()
        update(loss, both, optimizer, config.loop.clip)
        if index % 4 == 0:
            model.constrain()
        said = phones != corpus.blank
        accuracy = (logits.argmax(1) == phones)[said].float().mean() if said.any() else torch.tensor(0.0)
        return {**figures, "loss": loss.item(), "phone_accuracy": accuracy.item()}

    def batches(epoch: int) -> list[list[Crop]]:
        if letters is not None:
            return whole_batches(data, config.batch, config.loop.seed, epoch)
        return epoch_batches(data, config.crop, config.batch, config.loop.seed, epoch)

    return train(
        out,
        config.loop,
        {"both": both, "optimizer": optimizer},
        [optimizer],
        batches,
        step,
        label=f"bn, epsilon {config.epsilon:g}",
    )


def train_noise(epsilon: float | None, width: int) -> tuple[nn.Module, float]:
    """The noise of bn frames (N, T, width) and its scale; of None or inf, there is none."""
    from dpanon.privacy import BottleneckFrames

    if epsilon is None or epsilon == math.inf:
        return nn.Identity(), 0.0
    frames = BottleneckFrames(epsilon, width)
    return frames.train_noise(), frames.scale


def augment(x: Tensor, mean: Tensor, warp: float, tilt: float) -> tuple[Tensor, Tensor]:
    """Another vocal tract (warped mel axis) and another channel per crop, for the frames and their mean alike.

    Shape: ``(N, T, M), (N, 1, M) -> (N, T, M), (N, 1, M)``.
    """
    n, _, num = x.shape
    factor = 1 + warp * (2 * torch.rand(n, 1) - 1)
    position = (torch.arange(num)[None] * factor).clamp(0, num - 1.001)
    left = position.long()
    weight = (position - left)[:, None]

    def warped(y: Tensor) -> Tensor:
        index = left[:, None].expand(-1, y.shape[1], -1)
        return torch.gather(y, 2, index) * (1 - weight) + torch.gather(y, 2, index + 1) * weight

    knots = tilt * torch.randn(n, 1, 5)
    channel = functional.interpolate(knots, size=num, mode="linear", align_corners=True)
    # the channel moves frames and mean alike, so normalisation removes it, except for the share a real room leaves
    return warped(x) + channel, warped(mean) + 0.7 * channel


def blur(x: Tensor, size: float) -> Tensor:
    """Noise and missing channels, so that nothing fine is relied on. (N, T, M) -> (N, T, M)"""
    keep = (torch.rand(x.shape[0], 1, x.shape[2]) > 0.05).to(x.dtype)
    return (x + size * torch.randn_like(x)) * keep


class Corpus:
    """A data directory in memory: fbank, and what else is there of teacher frames, phones, log f0 and x-vectors.

    Args:
        needed: tables that have to be there: content, f0, xvector.
    """

    def __init__(self, data: DataDir, needed: Collection[str] = _TABLES):
        content, f0, xvectors = (load_scp(data.path / f"{n}.scp") if n in needed else None for n in _TABLES)
        phones = load_scp(data.path / "phones.scp") if (data.path / "phones.scp").exists() else None
        self.items: dict[str, dict[str, np.ndarray]] = {}
        for utt in tqdm(data.utts, desc=f"{data.path}: features", mininterval=10):
            feats = fbank(normalise_level(read_audio(data.wav(utt))))
            even = len(feats) // 2 * 2
            item = self.items[utt] = {
                "fbank": feats[:even].astype(np.float16),
                "mean": feats.mean(0),
                "phones": (np.zeros(even // 2) if phones is None else phones[utt][: even // 2]).astype(np.int64),
            }
            if content is not None:
                item["teacher"] = content[utt][: even // 2].astype(np.float16)
                item["content_mean"] = content[utt].mean(0)
            if f0 is not None:
                item["log_f0"] = (interpolate_log_f0(f0[utt]) - 5.0)[:even:2]
            if xvectors is not None:
                item["xvector"] = xvectors[utt]
        first = next(iter(self.items.values()))
        self.teacher_dim = first["teacher"].shape[1] if content is not None else 0
        self.xvector_dim = len(first["xvector"]) if xvectors is not None else 0
        if content is not None:
            stacked = np.concatenate([item["teacher"][::7].astype(np.float32) for item in self.items.values()])
            self.teacher_mean, self.teacher_std = stacked.mean(0), stacked.std(0) + 1e-3
        counts = sum(np.bincount(item["phones"], minlength=NUM_PHONES) for item in self.items.values())
        self.blank = int(np.argmax(counts))
        self.phone_weight = torch.ones(NUM_PHONES)
        self.phone_weight[self.blank] = _BLANK_WEIGHT

    def batch(self, crops: Sequence[Crop]) -> dict[str, Tensor]:
        """Tensors of a batch; frames of 10 ms for fbank and mel, of 20 ms for the rest. Short ones are padded."""
        rows = []
        num = max(crop.num_frames for crop in crops)
        more = parallel.longest(num) - num
        for crop in crops:
            item, start = self.items[crop.utt], crop.start // 2 * 2
            whole, half = slice(start, start + crop.num_frames), slice(start // 2, (start + crop.num_frames) // 2)
            row = {
                "fbank": item["fbank"][whole].astype(np.float32),
                "mean": item["mean"][None],
                "phones": item["phones"][half],
            }
            if "teacher" in item:
                row["teacher"] = (item["teacher"][half].astype(np.float32) - self.teacher_mean) / self.teacher_std
                row["content"] = item["teacher"][half].astype(np.float32)
                row["content_mean"] = item["content_mean"][None]
            if "log_f0" in item:
                row["log_f0"] = item["log_f0"][half].astype(np.float32)
            if "xvector" in item:
                row["xvector"] = item["xvector"]
            rows.append(row)
        frames = {"fbank": more} | dict.fromkeys(("phones", "teacher", "content", "log_f0"), more // 2)
        out = {name: parallel.tensor(_stack([row[name] for row in rows], frames.get(name, 0))) for name in rows[0]}
        out["mel"] = (out["fbank"] - 12.0) / 4.0
        return out


def _stack(arrays: Sequence[np.ndarray], more: int) -> np.ndarray:
    """Arrays of unequal length, and ``more``, end in their last row, again and again. [(T, ...), ...] -> (N, T, ...)"""
    longest = max(len(array) for array in arrays) + more
    rows = [(longest - len(array), *[0] * (array.ndim - 1)) for array in arrays]
    return np.stack(
        [np.pad(x, [(0, more) for more in row], "edge") if row[0] else x for x, row in zip(arrays, rows, strict=True)]
    )
