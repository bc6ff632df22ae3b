"""P_ASI against epsilon -> <results-dir>/identification.svg, curves/identification.json. Called by steps/plot_asi.sh.

steps/report.sh puts both into RESULTS.md.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.evaluate.metrics import write_json
from dpanon.report import identification
from dpanon.report.collect import provenance


def main(argv=None):
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="", help="the command that made the figures")
    parser.add_argument("exp", type=Path, metavar="asi-dir")
    parser.add_argument("results", type=Path, metavar="results-dir")
    args = parser.parse_args(argv)
    rows = identification.collect(args.exp)
    said = identification.doubts(rows)
    write_json(
        args.results / identification.FILE, {"rows": rows, "doubts": said, "provenance": provenance(args.command)}
    )
    figure = args.results / "identification.svg"
    figure.write_text(identification.curves(rows), encoding="utf-8")
    print(identification.section(args.results))
    for doubt in said:
        print(f"warning: {doubt}")
    print(figure)


if __name__ == "__main__":
    run(main)
