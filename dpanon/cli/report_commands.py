"""Figures of recognisers of words -> <results>/<system>.json, errors.svg, RESULTS.md, for steps/report_commands.sh."""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.errors import UsageError
from dpanon.evaluate.metrics import write_json
from dpanon.report.collect import provenance
from dpanon.report.commands import FIGURE, collect, curves, read_results, results_markdown, table
from dpanon.report.tables import text_table


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="", help="that made the figures")
    parser.add_argument("--started", default="", help="seconds since 1970; empty: no time is reported")
    parser.add_argument("--title", default="", help="heading; empty: the name of the recipe")
    parser.add_argument("exp", type=Path)
    parser.add_argument("results", type=Path)
    args = parser.parse_args(argv)
    try:
        started = float(args.started) if args.started else None
    except ValueError:
        raise UsageError(f"--started {args.started}: expected seconds since 1970, as `date +%s` prints") from None
    made = provenance(args.command, started)
    for name, result in collect(args.exp).items():
        write_json(args.results / f"{name}.json", result | {"provenance": made})
    results = read_results(args.results)
    folder = args.results.resolve().parent
    title = args.title or "/".join(folder.parts[-2:])
    (args.results / FIGURE).write_text(curves(results), encoding="utf-8")
    (folder / "RESULTS.md").write_text(results_markdown(results, title), encoding="utf-8")
    print(text_table(*table(results)), end="")
    print(folder / "RESULTS.md")


if __name__ == "__main__":
    run(main)
