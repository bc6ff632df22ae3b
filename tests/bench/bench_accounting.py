"""Time and memory of the accountant, and its distance from the other bounds: python tests/bench/bench_accounting.py

Time is the process's own processor use. 1,500 Laplace frames are to cost under 2 s and 300 MB.
"""

import resource
import time

from dpanon.privacy import accounting
from dpanon.privacy.dpsgd import DpSgd
from dpanon.privacy.guarantee import Part

CASES = [
    *((f"1500 Laplace frames of {epsilon:g}", [Part("laplace", epsilon, 1500)]) for epsilon in (0.01, 0.1, 1, 10, 100)),
    ("10^6 Laplace frames of 0.001", [Part("laplace", 0.001, 10**6)]),
    ("10^9 Laplace frames of 0.00001", [Part("laplace", 1e-5, 10**9)]),
    ("125 responses of 4 among 256", [Part("response", 4.0, 125, mass=0.1763)]),
    ("DP-SGD, rate 0.01, sigma 1, 10^4 steps", DpSgd(1.0, 0.01, 10_000).guarantee().parts),
]


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    accounting.Profile([Part("laplace", 1.0, 2)]).epsilon(1e-6)  # imports
    before = megabytes()
    print(f"{'at delta = 1e-6':40s} {'epsilon':>12s} {'of basic':>9s} {'of Renyi':>9s} {'s':>6s} {'MB so far':>10s}")
    for name, parts in CASES:
        began = time.process_time()
        profile = accounting.Profile(parts)
        found = profile.epsilon(1e-6)
        seconds = time.process_time() - began
        ratios = (found / profile.basic, found / profile.by_renyi(1e-6))
        print(f"{name:40s} {found:12.5g} {ratios[0]:9.4f} {ratios[1]:9.4f} {seconds:6.2f} {megabytes() - before:10.0f}")


if __name__ == "__main__":
    main()
