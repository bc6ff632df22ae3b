"""Codebooks in the bottleneck: what gets the noise is *which* code vectors a frame takes, one-hot.

A dense frame drowns in noise that a one-hot one stands out of. Two bn frames of 10 ms, one column, are written as
the sum of one vector out of each of G codebooks (residual vector quantisation; for content as codes see van den Oord
et al. 2017). Of a frame there remain G one-hot vectors of K entries with 1/G each: on the unit l1 sphere as every bn.

Behind the noise a hidden Markov model over the column's codes, whose noise is known and public, says how
probable each code is: post-processing, whatever epsilon.
"""

import torch
from torch import Tensor, nn

COLUMN = 2  # bn frames that share their codes
DURATIONS = (1.0, 2.0, 3.0, 4.0, 6.0, 9.0)  # columns of 20 ms, of a segment of each class (see ``tokens``)
_FLOOR = 1e-4  # probability of every transition, before they are scaled to 1
_FORGET = 0.01  # of the transitions seen so far, per training step


class Codebooks(nn.Module):
    """G codebooks of K vectors for columns (N, T/2, D) of two dense bn frames."""

    transitions: Tensor
    token_chain: Tensor
    token_durations: Tensor

    def __init__(self, num: int, size: int, dim: int):
        super().__init__()
        self.vectors = nn.Parameter(torch.zeros(num, size, dim))
        self.register_buffer("transitions", torch.full((num, size, size), 1.0 / size))
        # of segments, for ``tokens``: which code follows which, and how long each is
        self.register_buffer("token_chain", torch.full((size, size), 1.0 / size))
        self.register_buffer("token_durations", torch.full((size, len(DURATIONS)), 1.0 / len(DURATIONS)))

    @property
    def num(self) -> int:
        return self.vectors.shape[0]

    @property
    def width(self) -> int:
        """Entries of a frame that gets the noise."""
        return self.vectors.shape[0] * self.vectors.shape[1]

    def quantise(self, columns: Tensor) -> Tensor:
        """(N, C, D) -> the nearest code of each codebook, every one on what is left by those before. (N, C, G)"""
        rest, chosen = columns.detach(), []
        for book in self.vectors.detach():
            distance = book.pow(2).sum(1) - 2 * rest @ book.T
            index = distance.argmin(-1)
            chosen.append(index)
            rest = rest - book[index]
        return torch.stack(chosen, -1)

    def one_hot(self, codes: Tensor, num_frames: int) -> Tensor:
        """Codes (N, C, G) -> frames (N, num_frames, G K) of unit l1 norm."""
        spread = nn.functional.one_hot(codes, self.vectors.shape[1]).flatten(2) / self.num
        return spread.repeat_interleave(COLUMN, 1)[:, :num_frames].to(self.vectors.dtype)

    def posterior(self, frames: Tensor, scale: float) -> Tensor:
        """How probable each code is, given all noised frames (forward-backward). (N, T, G K) -> (N, C, G, K)

        Args:
            scale: of the Laplace noise in ``frames``; 0 for none.
        """
        n, num, _ = frames.shape
        size = self.vectors.shape[1]
        if num % COLUMN:
            frames = torch.cat([frames, frames.new_zeros(n, 1, frames.shape[2])], 1)
        y = frames.view(n, -1, COLUMN, self.num, size)
        if scale == 0:
            return nn.functional.one_hot(y.sum(2).argmax(-1), size).to(y.dtype)
        # Laplace log-likelihood of a corner against the centre, per entry; the frame added for the border says nothing
        evidence = (y.abs() - (y - 1.0 / self.num).abs()) / scale
        if num % COLUMN:
            evidence[:, -1, -1] = 0
        evidence = evidence.sum(2)
        return forward_backward(evidence, self._chain())

    def expect(self, posterior: Tensor) -> Tensor:
        """The mean column under a posterior. (N, C, G, K) -> (N, C, D)"""
        return torch.einsum("ncgk,gkd->ncd", posterior, self.vectors)

    @torch.no_grad()
    def observe(self, codes: Tensor, forget: float = _FORGET) -> None:
        """Move the transitions (of all, with the sum K) towards those of ``codes`` (N, C, G)."""
        size = self.vectors.shape[1]
        for book in range(self.num):
            pairs = (codes[:, :-1, book] * size + codes[:, 1:, book]).flatten()
            seen = torch.bincount(pairs, minlength=size * size).view(size, size).to(self.transitions.dtype)
            self.transitions[book] = (1 - forget) * self.transitions[book] + forget * seen * size / seen.sum()

    def _chain(self) -> Tensor:
        """Transition probabilities (G, K, K), none of them zero."""
        kept = self.transitions / self.transitions.sum(-1, keepdim=True).clamp_min(1e-9) + _FLOOR
        return kept / kept.sum(-1, keepdim=True)


def forward_backward(evidence: Tensor, chain: Tensor) -> Tensor:
    """Log-likelihoods (N, C, G, K) and transitions (G, K, K) -> posteriors (N, C, G, K)."""
    likelihood = torch.exp(evidence - evidence.amax(-1, keepdim=True)).permute(1, 2, 0, 3)  # (C, G, N, K)
    likelihood = likelihood.clamp_min(1e-30)
    state = torch.ones_like(likelihood[0])
    ahead = torch.empty_like(likelihood)
    for t in range(len(likelihood)):
        state = (state if t == 0 else state @ chain) * likelihood[t]
        state = state / state.sum(-1, keepdim=True)
        ahead[t] = state
    back = chain.transpose(1, 2)
    state = torch.ones_like(likelihood[0])
    for t in range(len(likelihood) - 1, -1, -1):
        ahead[t] *= state
        ahead[t] /= ahead[t].sum(-1, keepdim=True)
        state = (state * likelihood[t]) @ back
        state = state / state.sum(-1, keepdim=True)
    return ahead.permute(2, 0, 1, 3)
