"""Time of the transducer loss, value and gradient, beside a naive loop, torchaudio and warprnnt-numba:
tests/bench/bench_transducer.py

The naive loop fills the lattice cell by cell, one utterance after the other, and leaves the gradient to autograd.
Shapes are (N, T, U, V); the figures are ratios of processor time, in the same run. It fails when value or gradient are
more than 1e-3 from another implementation, when the naive loop is less than 5 times as slow, or torchaudio more than 3
times as fast. --quick true: a small lattice only.
"""

import sys
import time

import torch

from dpanon.cli import ArgumentParser, boolean
from dpanon.models.transducer_loss import transducer_loss

SHAPES = ((2, 50, 10, 100), (4, 200, 40, 500))


def naive(logits, targets, num_frames, num_labels):
    log_p = logits.log_softmax(-1)
    blank = log_p[..., 0]
    label = log_p[:, :, :-1].gather(-1, targets[:, None, :, None].expand(-1, log_p.shape[1], -1, 1))[..., 0]
    losses = []
    for i in range(len(logits)):
        frames, labels = int(num_frames[i]), int(num_labels[i])
        stay, move = [list(row.unbind()) for row in blank[i]], [list(row.unbind()) for row in label[i]]
        row = [log_p.new_zeros(())]
        for u in range(labels):
            row.append(row[u] + move[0][u])
        for t in range(1, frames):
            new = [row[0] + stay[t - 1][0]]
            for u in range(1, labels + 1):
                new.append(torch.logaddexp(row[u] + stay[t - 1][u], new[u - 1] + move[t][u - 1]))
            row = new
        losses.append(-(row[labels] + stay[frames - 1][labels]))
    return torch.stack(losses).mean()


def warprnnt(logits, targets, num_frames, num_labels):
    from warprnnt_numba import RNNTLossNumba

    lengths = num_frames.int(), num_labels.int()
    return RNNTLossNumba(blank=0, reduction="none")(logits, targets.int(), *lengths).mean()


def torchaudio(*arguments):
    return transducer_loss(*arguments, backend="torchaudio")


def measure(loss, logits, *rest):
    """Seconds, value, gradient; those of the second call, since the first may compile."""
    for _ in range(2 if loss is not naive else 1):
        logits = logits.detach().clone().requires_grad_()
        began = time.process_time()
        value = loss(logits, *rest)
        value.backward()
        seconds = time.process_time() - began
    return seconds, value.item(), logits.grad


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--quick", type=boolean, default=False, help="the small lattice only (default: false)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bad = []
    for n, t, u, v in SHAPES[:1] if args.quick else SHAPES:
        logits, targets = torch.randn(n, t, u + 1, v), torch.randint(1, v, (n, u))
        rest = (targets, torch.full((n,), t), torch.full((n,), u))
        ours, value, gradient = measure(transducer_loss, logits, *rest)
        print(f"N {n}, T {t}, U {u}, V {v}: {ours:.3f} s")
        for name, other in (("naive loop", naive), ("torchaudio", torchaudio), ("warprnnt-numba", warprnnt)):
            try:
                seconds, theirs, found = measure(other, logits, *rest)
            except Exception as error:  # not installed, or built for another machine
                print(f"  {name}: {type(error).__name__}")
                continue
            apart = abs(value - theirs), float((gradient - found).abs().max())
            print(f"  {name}: {seconds / ours:.2f} times as long; apart by {apart[0]:.1e}, gradient {apart[1]:.1e}")
            least = {"naive loop": 5.0, "torchaudio": 1 / 3}.get(name, 0.0)
            if max(apart) > 1e-3 or seconds < least * ours:
                bad.append(f"{name} at T {t}")
    print(f"missed: {', '.join(bad)}" if bad else "all within the bounds", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
