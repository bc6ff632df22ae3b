"""Who trains on what: a private set -> <out>/partition.json. Called by steps/partition_data.sh.

Disjoint parts (PATE), or, with --rate, Poisson sub-samples that overlap (PSN). The file is as private as the speech.
"""

from fractions import Fraction
from pathlib import Path

from dpanon.cli import ArgumentParser, run
from dpanon.data.data_dir import DataDir
from dpanon.data.partitions import UNITS, disjoint, poisson, write_partition


def main(argv: list[str] | None = None) -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--teachers", type=int, required=True, metavar="T")
    parser.add_argument("--unit", choices=UNITS, default="utterance", help="what is protected (default: utterance)")
    parser.add_argument(
        "--rate", type=Fraction, metavar="GAMMA", help="of Poisson sub-samples, e.g. 0.1 or 1/50; none: disjoint parts"
    )
    parser.add_argument("--cap", type=int, metavar="N", help="with --rate: most teachers that may hear one speaker")
    parser.add_argument("private", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args(argv)
    data = DataDir.read(args.private)
    if args.rate is None:
        if args.cap is not None:
            parser.error("--cap goes with --rate: in disjoint parts one teacher hears a unit")
        partition = disjoint(data, args.teachers, args.unit)
    else:
        partition = poisson(data, args.teachers, float(args.rate), args.unit, args.cap)
    write_partition(partition, args.out / "partition.json")
    print(f"{args.out}: {partition.teachers} {partition.kind} parts by {partition.unit}, checked")


if __name__ == "__main__":
    run(main)
