"""Hand in to a VoicePrivacy Challenge: check what is there, pack it, estimate what it takes.

    dpanon submission estimate --challenge 2026 --suffix _mine    # time and disk of a release that is not begun
    dpanon submission check --challenge 2026 --suffix _mine       # every problem, by name
    dpanon submission pack --challenge 2026 --suffix _mine        # check, then rank file, results zip, data archive

Run in the recipe's directory, with data/<set>, data/<set><suffix> and the figures below exp/. The rank file and the zip
go where the organisers' scripts put them, the archive to --out. Nothing is packed while anything is missing.
"""

from pathlib import Path

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.cli.anonymize import positive
from dpanon.report.tables import duration, text_table
from dpanon.submission.estimate import ANONYMIZE, check_disk, estimate
from dpanon.submission.layouts import LAYOUTS, check_suffix, layout

ACTIONS = ("estimate", "check", "pack")


def parse_args(argv=None):
    parser = ArgumentParser(prog="dpanon submission", description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--challenge", choices=LAYOUTS, default="2026", help="default: 2026")
    parser.add_argument("--suffix", required=True, help="of the released sets, e.g. _mine")
    parser.add_argument("--root", type=Path, default=Path("."), help="with data/ and exp/ (default: here)")
    parser.add_argument("--out", type=Path, default=Path("."), help="of the data archive (default: here)")
    parser.add_argument("--partial", type=boolean, default=False, help="documented sizes are not asked for: for trials")
    parser.add_argument("--jobs", type=positive, default=2, help="at once (default: 2)")
    parser.add_argument("--parts", type=positive, default=1, help="of an array with so many jobs each (default: 1)")
    parser.add_argument("--rtf", type=float, default=ANONYMIZE, help=f"core seconds per second (default: {ANONYMIZE})")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    chosen, suffix = layout(args.challenge), check_suffix(args.suffix)
    if args.action == "estimate":
        found = estimate(args.root / "data", chosen, suffix, args.jobs, args.rtf, args.parts)
        print(
            f"{found.speech / 3600:.2f} h of speech; with {args.jobs * args.parts} jobs the release takes about "
            f"{duration(round(found.release))}, the evaluation {duration(round(found.evaluation))}; "
            f"{found.needed / 1e9:.2f} GB to write, {found.free / 1e9:.1f} GB free"
        )
        check_disk(found, args.root / "data")
        return
    from dpanon.submission import SubmissionError
    from dpanon.submission.pack import archive_problems, inspect, pack  # not for an estimate

    if args.action == "pack":
        packed = pack(args.root, chosen, suffix, args.out, args.partial, args.jobs)
        print(packed.floors, end="")
        for path in (packed.rank, packed.results, packed.archive):
            print(f"{path}: {path.stat().st_size} bytes")
        return
    sets, _ = inspect(args.root, chosen, suffix, args.partial, args.jobs)
    rows = [(f"{s.item.name}{suffix}", str(s.num_utts), f"{s.num_bytes / 1e6:.1f}", f"{s.ratio:.3f}") for s in sets]
    print(text_table(("set", "utterances", "MB", "duration ratio"), rows), end="")
    archive = args.out / chosen.archive(suffix)
    if archive.exists() and (problems := archive_problems(archive, args.root, chosen, suffix)):
        raise SubmissionError(f"{archive}: {'; '.join(problems)}: pack it again")
    print(f"{archive}: complete" if archive.exists() else "all is there: dpanon submission pack")


if __name__ == "__main__":
    run(main)
