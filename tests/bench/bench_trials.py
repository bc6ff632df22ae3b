"""Figures of 1 and 10 million trials, time and memory, beside a naive EER: tests/bench/bench_trials.py [--quick true]

The naive one tries every score as a threshold and counts the errors of each, as the toolkits do that need N^2 steps;
it is run on few trials and its time for more is extrapolated by the square. Every size is a process of its own, so
its peak memory is its own.
"""

import resource
import subprocess
import sys
import time

import numpy as np

from dpanon.cli import ArgumentParser, boolean
from dpanon.evaluate.detection import cllr, eer_of, min_cllr, min_dcf, tally, tpr_at_fpr
from dpanon.evaluate.linkability import linkability_of
from dpanon.evaluate.zebra import zebra

FIGURES = (eer_of, min_dcf, tpr_at_fpr, cllr, min_cllr, linkability_of, zebra)
NAIVE = 4000


def scores(num: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(num)
    return rng.normal(2, 1, num // 20), rng.normal(0, 1, num - num // 20)


def naive_eer(target, nontarget) -> float:
    best = (2.0, 0.0)
    for threshold in np.concatenate([target, nontarget]):
        fnr, fpr = (target <= threshold).mean(), (nontarget > threshold).mean()
        best = min(best, (abs(fnr - fpr), (fnr + fpr) / 2))
    return best[1]


def measure(num: int) -> None:
    target, nontarget = scores(num)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    table = tally(target, nontarget)
    spent = {"sort": time.process_time() - began}
    for figure in FIGURES:
        began = time.process_time()
        figure(table)
        spent[figure.__name__] = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in spent.items())
    print(
        f"{num:>10d} trials: {sum(spent.values()):6.2f} s of processor, {(peak - before) / 1e3:.0f} MB more than the ",
        end="",
    )
    print(f"scores themselves, {peak / 1e3:.0f} MB in all ({parts})", flush=True)


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--quick", type=boolean, default=False, help="1 million only (default: false)")
    parser.add_argument("--size", type=int, help="this size only, in this process")
    args = parser.parse_args()
    if args.size:
        return measure(args.size)
    target, nontarget = scores(NAIVE)
    began = time.process_time()
    value = naive_eer(target, nontarget)
    naive = time.process_time() - began
    ours = eer_of(tally(target, nontarget))
    print(f"{NAIVE:>10d} trials, naive EER {value:.4f} (here {ours:.4f}): {naive:.2f} s; it would take", end=" ")
    print(", ".join(f"{naive * (num / NAIVE) ** 2 / 3600:.0f} h for {num:.0e}" for num in (10**6, 10**7)), flush=True)
    for num in (10**6,) if args.quick else (10**6, 10**7):
        subprocess.run([sys.executable, __file__, "--size", str(num)], check=True)


if __name__ == "__main__":
    main()
