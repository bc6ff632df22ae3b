"""Codebooks for an extractor that was trained without: residual k-means on its dense columns."""

from dataclasses import replace

import numpy as np
import torch
from sklearn.cluster import MiniBatchKMeans

from dpanon.models.bottleneck import Bottleneck, to_columns
from dpanon.models.codes import COLUMN
from dpanon.models.tokens import statistics, to_tokens
from dpanon.train import parallel

Recordings = list[tuple[np.ndarray, np.ndarray]]  # features (T, M) of each, and their mean (M,)
_MOST = 120_000  # columns that k-means sees


@torch.no_grad()
def with_codes(
    extractor: Bottleneck, num: int, size: int, recordings: list[tuple[np.ndarray, np.ndarray]]
) -> Bottleneck:
    """The extractor with ``num`` codebooks of ``size`` vectors; weights as they are.

    Args:
        recordings: of public speech.
    """
    if extractor.codes is not None:
        return extractor
    made = Bottleneck(replace(extractor.config, codebooks=num, code_size=size))
    made.load_state_dict(extractor.state_dict(), strict=False)
    assert made.codes is not None
    dense = [_columns(extractor, x, mean) for x, mean in recordings]
    rest = torch.cat(dense)
    rest = rest[:: max(1, len(rest) // _MOST)]
    for book in range(num):
        points = rest.cpu().numpy()
        means = MiniBatchKMeans(size, batch_size=4096, n_init=2, max_iter=60, random_state=book).fit(points)
        made.codes.vectors[book] = parallel.tensor(means.cluster_centers_).float()
        rest = rest - made.codes.vectors[book][parallel.tensor(means.predict(points)).long()]
    made.codes.transitions.zero_()
    seen = 0
    for part in dense:
        seen += len(part)
        made.codes.observe(made.codes.quantise(part[None]), forget=len(part) / seen)
    return made


@torch.no_grad()
def count_tokens(extractor: Bottleneck, recordings: Recordings) -> None:
    """Note in the extractor's codes how their tokens follow each other and how long they are, in public speech."""
    codes = extractor.codes
    if codes is None or codes.num != 1:
        return
    rows = []
    for x, mean in recordings:
        dense = _columns(extractor, x, mean)
        distance = torch.cdist(dense, codes.vectors[0]).square().cpu().numpy().astype(np.float64)
        rows.append(to_tokens(distance, COLUMN * len(dense)))
    with torch.device("cpu"):  # counted one by one
        counted = statistics(rows, codes.vectors.shape[1])
    codes.token_chain, codes.token_durations = (table.to(codes.vectors.device) for table in counted)


def _columns(extractor: Bottleneck, x: np.ndarray, mean: np.ndarray) -> torch.Tensor:
    """Features (T, M) of a recording and their mean -> its dense columns, where this process trains."""
    return to_columns(extractor.dense(parallel.tensor(x)[None], parallel.tensor(mean)[None, None]))[0]
