"""Batches of training crops, sampled by Lhotse; a pure function of (seed, epoch), so that a run can resume exactly."""

import warnings
from typing import NamedTuple

from dpanon.data.data_dir import DataDir


class Crop(NamedTuple):
    """Part of an utterance, in frames of 10 ms."""

    utt: str
    start: int
    num_frames: int


def epoch_batches(data: DataDir, num_frames: int, batch: int, seed: int, epoch: int) -> list[list[Crop]]:
    """Cut every utterance into windows of ``num_frames``, shuffle, and group ``batch`` of them.

    The windows of odd epochs are half a window later, so that no cut is at the same place in every
    epoch. Utterances shorter than a window are left out; so is an incomplete last batch.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lhotse import CutSet, MonoCut
        from lhotse.dataset import SimpleCutSampler

    seconds = num_frames * 0.01
    cuts = []
    for utt in data.utts:
        total = data.num_samples(utt) // 160
        for start in range((epoch % 2) * num_frames // 2, total - num_frames + 1, num_frames):
            cuts.append(MonoCut(id=f"{utt}@{start}", start=start * 0.01, duration=seconds, channel=0))
    if len(cuts) < batch:
        raise ValueError(f"{data.path}: only {len(cuts)} windows of {seconds:.2f} s, fewer than a batch of {batch}")
    sampler = SimpleCutSampler(
        CutSet.from_cuts(cuts), max_cuts=batch, shuffle=True, drop_last=True, seed=seed, world_size=1, rank=0
    )
    sampler.set_epoch(epoch)
    return [[_crop(cut.id, num_frames) for cut in cut_set] for cut_set in sampler]


def _crop(cut_id: str, num_frames: int) -> Crop:
    utt, _, start = cut_id.rpartition("@")
    return Crop(utt, int(start), num_frames)
