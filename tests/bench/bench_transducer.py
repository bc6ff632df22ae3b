"""Time of the transducer loss, value and gradient, beside a naive loop and torchaudio: tests/bench/bench_transducer.py

The naive loop fills the lattice cell by cell, one utterance after the other, and leaves the gradient to autograd.
Shapes are (N, T, U, V); the figures are ratios of processor time, in the same run. --quick true: a small lattice only.
"""

import time

import torch

from dpanon.cli import ArgumentParser, boolean
from dpanon.models.transducer_loss import transducer_loss

SHAPES = ((2, 50, 10, 100), (4, 200, 40, 500))


def naive(logits, targets, num_frames, num_labels):
    log_p = logits.log_softmax(-1)
    losses = []
    for i in range(len(logits)):
        frames, labels = int(num_frames[i]), int(num_labels[i])
        row = [log_p.new_zeros(())]
        for u in range(labels):
            row.append(row[u] + log_p[i, 0, u, targets[i, u]])
        for t in range(1, frames):
            new = [row[0] + log_p[i, t - 1, 0, 0]]
            for u in range(1, labels + 1):
                stay, move = row[u] + log_p[i, t - 1, u, 0], new[u - 1] + log_p[i, t, u - 1, targets[i, u - 1]]
                new.append(torch.logaddexp(stay, move))
            row = new
        losses.append(-(row[labels] + log_p[i, frames - 1, labels, 0]))
    return torch.stack(losses).mean()


def measure(loss, logits, *rest) -> float:
    logits = logits.clone().requires_grad_()
    began = time.process_time()
    loss(logits, *rest).backward()
    return time.process_time() - began


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--quick", type=boolean, default=False, help="the small lattice only (default: false)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for n, t, u, v in SHAPES[:1] if args.quick else SHAPES:
        logits, targets = torch.randn(n, t, u + 1, v), torch.randint(1, v, (n, u))
        rest = (targets, torch.full((n,), t), torch.full((n,), u))
        measure(transducer_loss, logits, *rest)
        ours = measure(transducer_loss, logits, *rest)
        line = f"N {n}, T {t}, U {u}, V {v}: naive loop {measure(naive, logits, *rest) / ours:.1f} times as long"
        try:
            theirs = measure(lambda *x: transducer_loss(*x, backend="torchaudio"), logits, *rest)
            line += f", torchaudio {theirs / ours:.2f} times"
        except Exception as error:  # not installed, or built for another machine
            line += f" (torchaudio: {type(error).__name__})"
        print(line, flush=True)


if __name__ == "__main__":
    main()
