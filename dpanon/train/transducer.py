"""Training and use of the transducer: without privacy, as a teacher, or as a student.

Text is tokens of dpanon.data.tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dpanon.data.arrays import load_scp
from dpanon.data.data_dir import DataDir
from dpanon.data.tokens import decode, encode, unit_of
from dpanon.errors import ConfigError, DataDirError
from dpanon.features.fbank import NUM_MEL
from dpanon.models.transducer import Transducer, TransducerConfig, search
from dpanon.models.transducer_encoder import LEAST
from dpanon.models.transducer_loss import OBJECTIVES, make_objective, transducer_loss
from dpanon.privacy import Guarantee
from dpanon.train.commands import BLOCK, Utterances, augment, choose_weights
from dpanon.train.dpsgd import DpSgdSteps, private_steps
from dpanon.train.loop import CHECKPOINT, LoopConfig, train, update

Labels = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class TrainTransducerConfig:
    """Every key of conf/{start,teacher,student,nodp}.yaml is a field here. The vocabulary is that of the tokens."""

    loop: LoopConfig
    model: TransducerConfig = field(default_factory=TransducerConfig)
    batch: int = 32
    ctc: float = 0.3  # share of the loss that CTC on the encoder has; 1: no transducer, recognised by CTC as well
    loss: str = "torch"  # or torchaudio, k2 (pruned); auto: the best of them that works
    joined: int = 1  # utterances of a speaker that are said in a row, at most: words of single syllables
    trained: tuple[str, ...] = ()  # beginnings of the names of the weights that are trained; empty: all
    warp: float = 0.1  # largest relative change of frequencies: other lengths of the vocal tract
    stretch: float = 0.2  # and of the tempo
    level: float = 0.0  # largest of a floor under the features, in standard deviations: other noise
    mask_bands: int = 12  # SpecAugment: one mask of up to so many bands
    mask_frames: int = 12  # and one of up to so many frames

    def __post_init__(self):
        if not 0 <= self.ctc <= 1 or self.batch < 1:
            raise ValueError("ctc must be in [0, 1], batch >= 1")
        if self.model.features == "content" and (self.warp or self.level):
            raise ValueError("features: content has no bands to warp and no floor: set warp: 0, level: 0")
        if self.joined < 1:
            raise ValueError("joined must be >= 1")
        if self.loss not in OBJECTIVES:
            raise ValueError(f"loss must be one of {', '.join(OBJECTIVES)}, got {self.loss!r}")


def read_speech(data: DataDir, utts: Sequence[str] | None = None, features: str = "fbank") -> Utterances:
    """All 80 bands of fbank.scp, or content.scp, each of its features centred and scaled over the utterance.

    The latter takes out what Whisper's encoder keeps of the voice and the channel, as far as it does not change.
    """
    if features == "fbank":
        return Utterances.read(data, NUM_MEL, utts)
    if not data.has("content.scp"):
        raise DataDirError(f"{data.path}: has no content.scp; run steps/extract_content.sh {data.path}")
    utts, content = data.utts if utts is None else utts, load_scp(data.path / "content.scp")
    return Utterances(utts, [_standardise(torch.from_numpy(content[utt])) for utt in utts])


def _standardise(x: Tensor) -> Tensor:
    """Zero mean, unit variance. ``(T, M) -> (T, M)``"""
    return (x - x.mean(0)) / (x.std(0, correction=0) + 1e-3)


def labels_of(data: DataDir, utts: Sequence[str], tokens: Sequence[str]) -> list[tuple[int, ...]]:
    """Token numbers of the text of each; DataDirError where a token is not in the list."""
    text = data.table("text")
    return [encode(text[utt], tokens) for utt in utts]


def pad_labels(labels: Labels) -> tuple[Tensor, Tensor]:
    """``(N, U)`` padded with ones (never a blank), and the lengths ``(N,)``."""
    num = torch.tensor([len(one) for one in labels])
    rows = [torch.tensor(one, dtype=torch.long) for one in labels]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1), num


def train_transducer(
    out: Path,
    config: TrainTransducerConfig,
    speech: Utterances,
    labels: Labels,
    num_tokens: int,
    start: Transducer | None = None,
    speakers: Sequence[str] | None = None,
    label: str = "transducer",
) -> Transducer:
    """Train on token numbers, from ``start`` if there is one. ``out`` holds the checkpoint meanwhile.

    ``speakers``, one for each utterance, are needed where ``joined`` puts several in a row; None: all are of one.
    """
    if len(labels) != len(speech):
        raise DataDirError(f"{len(labels)} texts of {len(speech)} utterances")
    speakers = ("",) * len(speech) if speakers is None else speakers
    torch.manual_seed(config.loop.seed)
    sizes = replace(config.model, vocabulary=num_tokens + 1, decoder="ctc" if config.ctc == 1 else "transducer")
    sizes = sizes if start is None else start.config
    model = Transducer(sizes)
    if start is not None:
        model.load_state_dict(start.state_dict())
    loss = "torch" if sizes.decoder == "ctc" else config.loss
    objective = make_objective(loss, sizes.width, sizes.prediction, sizes.vocabulary)
    weights = [*choose_weights(model, config.trained), *objective.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=config.loop.lr, weight_decay=1e-2)
    both = torch.nn.ModuleList([model, objective])

    def batches(epoch: int) -> list[np.ndarray]:
        rng = np.random.default_rng((config.loop.seed, epoch))
        return batches_of_like_length([speech.length(i) for i in range(len(speech))], config.batch, rng)

    def step(index: int, batch: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
        x, num_frames, said = say_in_a_row(speech, labels, speakers, batch.tolist(), config.joined, rng)
        x, num_frames = augment(x, num_frames, config, rng)
        loss = model.loss(*long_enough(x, num_frames), *pad_labels(said), config.ctc, objective)
        update(loss, both, optimizer, config.loop.clip)
        return {"loss": loss.item()}

    model.train()
    stateful = {"model": model, "objective": objective, "optimizer": optimizer}
    train(out, config.loop, stateful, [optimizer], batches, step, label)
    (out / CHECKPOINT).unlink()  # the caller keeps the model; this also holds the optimizer
    return model.eval()


def batches_of_like_length(
    lengths: Sequence[int], size: int, rng: np.random.Generator, pool: int = 8
) -> list[np.ndarray]:
    """All numbers in a random order, in batches of about ``size``; each ``pool`` batches are sorted by length first."""
    order, batches = rng.permutation(len(lengths)), []
    for part in np.array_split(order, max(1, round(len(order) / (size * pool)))):
        part = part[np.argsort(np.asarray(lengths)[part], kind="stable")]
        batches += np.array_split(part, max(1, round(len(part) / size)))
    return [batches[i] for i in rng.permutation(len(batches))]


def say_in_a_row(
    speech: Utterances,
    labels: Labels,
    speakers: Sequence[str],
    batch: Sequence[int],
    most: int,
    rng: np.random.Generator,
) -> tuple[Tensor, Tensor, list[tuple[int, ...]]]:
    """A batch, up to ``most - 1`` others of its speaker after each utterance: ``(N, T, M)``, ``(N,)``, labels."""
    if most == 1:
        return *speech.batch(batch), [labels[i] for i in batch]
    of_speaker: dict[str, list[int]] = {}
    for i, speaker in enumerate(speakers):
        of_speaker.setdefault(speaker, []).append(i)
    rows = [[i, *rng.choice(of_speaker[speakers[i]], rng.integers(most)).tolist()] for i in batch]
    x, num_frames = speech.batch([i for row in rows for i in row])
    pieces = iter(one[:length] for one, length in zip(x, num_frames.tolist(), strict=True))
    joined = [torch.cat([next(pieces) for _ in row]) for row in rows]
    said = [tuple(token for i in row for token in labels[i]) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(joined, batch_first=True), torch.tensor([len(one) for one in joined]), said


def train_dpsgd(
    config: DpSgdSteps, model: Transducer, speech: Utterances, labels: Labels, epsilon: float, delta: float
) -> tuple[Guarantee, dict[str, float]]:
    """DP-SGD of some linear layers of a public model, in place; see ``dpanon.train.dpsgd.private_steps``.

    Attention and convolution have no per-sample gradients here, so what is trained has to be linear: ConfigError else.
    """
    model.eval()  # no dropout
    for name, module in model.named_modules():
        if name and any(name == one or name.startswith(f"{one}.") for one in config.trained):
            if next(module.children(), None) is None and not isinstance(module, torch.nn.Linear):
                raise ConfigError(f"trained: {name} is not a linear layer, of which alone DP-SGD has gradients here")
            module.train()  # Opacus keeps the gradients of such modules only
    if not config.trained:
        raise ConfigError("trained: name the linear layers, such as [out, from_encoder]")

    def loss(wrapped: torch.nn.Module, chosen: list[int]) -> Tensor:
        x, num_frames = long_enough(*speech.batch(chosen))
        targets, num_labels = pad_labels([labels[i] for i in chosen])
        logits, num_frames = wrapped(x, num_frames, targets)
        return transducer_loss(logits, targets, num_frames, num_labels, reduction="sum")

    told = private_steps(config, model, loss, len(speech), epsilon, delta)
    model.eval()
    return told


def long_enough(x: Tensor, num_frames: Tensor, least: int = LEAST) -> tuple[Tensor, Tensor]:
    """Padded with the lowest level to as many frames as the strided convolutions need."""
    if x.shape[1] < least:
        x = torch.nn.functional.pad(x, (0, 0, 0, least - x.shape[1]), value=float(x.min()))
    return x, num_frames.clamp_min(least)


@torch.no_grad()
def recognise(model: Transducer, speech: Utterances, beam: int = 1) -> list[tuple[int, ...]]:
    """Token numbers of each utterance, greedily or by beam search."""
    found: list[tuple[int, ...]] = []
    for start in range(0, len(speech), BLOCK):
        batch = speech.batch(range(start, min(start + BLOCK, len(speech))))
        found += search(model, *long_enough(*batch), beam)
    return found


def error_counts(said: Labels, text: Sequence[str], tokens: Sequence[str]) -> tuple[list[int], list[int]]:
    """Errors and reference lengths of each utterance, by jiwer, in what ``unit_of`` says."""
    import jiwer

    measure = jiwer.process_characters if unit_of(tokens) == "character" else jiwer.process_words
    errors, sizes = [], []
    for numbers, reference in zip(said, text, strict=True):
        found = measure(reference, decode(numbers, tokens))
        errors.append(found.substitutions + found.deletions + found.insertions)
        sizes.append(found.substitutions + found.deletions + found.hits)
    return errors, sizes
