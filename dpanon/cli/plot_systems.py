"""All systems in one figure: <results-dir>/*.json -> <results-dir>/systems.svg. Called by steps/plot_systems.sh."""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.errors import UsageError
from dpanon.report import systems


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, metavar="results-dir")
    args = parser.parse_args(argv)
    rows = systems.collect(args.results)
    if not rows:
        raise UsageError(f"{args.results}: no figures of systems; steps/report.sh makes them")
    figure = args.results / "systems.svg"
    figure.write_text(systems.curves(rows), encoding="utf-8")
    print(f"{figure}: {len(rows)} systems")


if __name__ == "__main__":
    run(main)
