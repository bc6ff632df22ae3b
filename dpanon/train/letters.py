"""Letters as a target of the bottleneck extractor, by CTC: whole utterances, since a crop's letters are not known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from dpanon.data.batches import Crop
from dpanon.data.data_dir import DataDir
from dpanon.data.tokens import encode, read_tokens
from dpanon.errors import DataDirError
from dpanon.models.ctc_loss import choose, counted, ctc_loss
from dpanon.train import parallel


class Letters(nn.Module):
    """The head that hears letters in content, and what was said in every utterance of ``data``.

    Args:
        tokens: file with the list of tokens, one in a line; the blank, 0, is not in it.
        objective: torch, k2 or auto; see ``dpanon.models.ctc_loss``.

    Raises:
        DataDirError: no utterance of ``data`` has text, or one has a letter that is not in the list.
    """

    def __init__(self, content: int, tokens: Path, objective: str, data: DataDir):
        super().__init__()
        known, text = read_tokens(tokens), data.table("text") if data.has("text") else {}
        self.backend = choose(objective)
        self.said = {utt: encode(words, known) for utt, words in text.items()}
        if not any(self.said.values()):
            raise DataDirError(f"{data.path}: no utterance has text, which ctc_weight > 0 needs")
        self.out = nn.Conv1d(content, len(known) + 1, 1)

    def loss(self, content: Tensor, crops: Sequence[Crop]) -> Tensor:
        """Per letter, of those utterances that have text. ``(N, M, T/2) -> ()``"""
        log_probs = self.out(content).transpose(1, 2).log_softmax(-1)  # (N, V, T/2) -> (N, T/2, V)
        said = [self.said.get(crop.utt, ()) for crop in crops]
        num_frames = [crop.num_frames // 2 for crop in crops]
        share = parallel.part(len(counted(said, num_frames)))
        return share * ctc_loss(log_probs, said, num_frames, self.backend)


def whole_batches(data: DataDir, batch: int, seed: int, epoch: int, pool: int = 8) -> list[list[Crop]]:
    """Whole utterances, their frames rounded down to an even number, in batches of exactly ``batch`` of like length.

    Those of ``pool`` batches at a time are sorted by length, and all is shuffled. What is fewer than a batch is left
    out, other utterances in every epoch.
    """
    if len(data) < batch:
        raise DataDirError(f"{data.path}: only {len(data)} utterances, fewer than a batch of {batch}")
    rng = np.random.default_rng((seed, epoch, 4))
    num = {utt: data.num_samples(utt) // 160 // 2 * 2 for utt in data.utts}
    utts = [data.utts[i] for i in rng.permutation(len(data))][: len(data) // batch * batch]
    found = []
    for at in range(0, len(utts), pool * batch):
        near = sorted(utts[at : at + pool * batch], key=num.__getitem__)
        found += [[Crop(utt, 0, num[utt]) for utt in near[i : i + batch]] for i in range(0, len(near), batch)]
    return [found[i] for i in rng.permutation(len(found))]


def inside(crops: Sequence[Crop]) -> Tensor | None:
    """Which frames of 20 ms of a padded batch are of its crops, (N, T/2); None if all of them are."""
    num = [crop.num_frames // 2 for crop in crops]
    most = parallel.longest(max(num))
    if min(num) == most:
        return None
    return torch.arange(most)[None] < torch.tensor(num)[:, None]
