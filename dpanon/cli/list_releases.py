"""The releases that systems and the parameters of their noise make: a line for each, for recipes and steps.

    python3 -m dpanon.cli.list_releases --system "plain dp" --epsilon-bn "100 10" --epsilon-f0 10
    plain _plain
    dp _dp_f0eps10_bneps100 --epsilon-bn 100 --epsilon-f0 10
    dp _dp_f0eps10_bneps10 --epsilon-bn 10 --epsilon-f0 10

A system takes the parameters of its own noise and leaves the others alone; of several values, it is released with each.
With --draws each is made so often, of other targets and noise: <suffix>, <suffix>_draw2, ... show how figures vary.
"""

import itertools
import math

from dpanon.anonymize.systems import DEFAULTS, PARAMETER, option, parts_of
from dpanon.cli import ArgumentParser, run
from dpanon.errors import UsageError

_WORDS = {"epsilon_bn": "bneps", "epsilon_token": "tokeneps", "epsilon_f0": "f0eps", "mu_f0": "f0mu"}


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--system", required=True, help="names, with spaces between them")
    for name, value in DEFAULTS.items():
        parser.add_argument(option(name), default="", metavar="VALUES", help=f"with spaces; empty: {value:g}")
    parser.add_argument("--draws", type=int, default=1, help="releases of each (default: 1)")
    args = parser.parse_args(argv)
    if args.draws < 1:
        raise UsageError(f"--draws must be 1 or more, got {args.draws}")
    for line in releases(args.system.split(), {name: getattr(args, name).split() for name in DEFAULTS}, args.draws):
        print(line)


def releases(systems: list[str], values: dict[str, list[str]], draws: int = 1) -> list[str]:
    """UsageError: an unknown system, or a value that is no finite number > 0."""
    lines = []
    for system in systems:
        given = {name: 1.0 if texts and system == "voxlet" else None for name, texts in values.items()}
        parts = parts_of(system, given)
        names = sorted(PARAMETER[part] for part in parts if part in PARAMETER)
        choices = [values[name] or [f"{DEFAULTS[name]:g}"] for name in names]
        for chosen in itertools.product(*choices):
            for name, text in zip(names, chosen, strict=True):
                _check(name, text)
            words = [f"{_WORDS[name]}{text}" for name, text in zip(names, chosen, strict=True)]
            noise = [f"{option(name)} {text}" for name, text in zip(names, chosen, strict=True)]
            suffix = "_".join(["", system, *sorted(words, key=lambda word: word.startswith(("bn", "token")))])
            for draw in ["", *(f"_draw{number}" for number in range(2, draws + 1))]:
                lines.append(" ".join([system, suffix + draw, *noise]))
    return lines


def _check(name: str, text: str) -> None:
    try:
        fine = math.isfinite(float(text)) and float(text) > 0
    except ValueError:
        fine = False
    if not fine:
        raise UsageError(f"{option(name)} must be finite and > 0, got {text!r}; the system plain has no noise")


if __name__ == "__main__":
    run(main)
