"""Budget ledgers: what was released about whom, and what it sums to.

    dpanon ledger show LEDGER                      # totals of every recording and speaker
    dpanon ledger show LEDGER --of interview.wav   # of this one; needs the key beside the ledger
    dpanon ledger check LEDGER                     # 0 if every row is as it was written, else 1 and the line
    dpanon ledger check LEDGER --head HASH         # and if nothing is missing since the ledger ended in HASH

`dpanon anonymize --ledger LEDGER` writes one. Recordings and speakers appear under keyed hashes, of which `show` prints
the first digits. A release counts from the moment it is reserved: "without a name" are those that were reserved and
not finished, by a run that was killed or refused them. Rows that are missing at the end of a file leave no trace in it:
keep the head that `check` prints in another place, and give it to --head later.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpanon.cli import ArgumentParser, boolean, run
from dpanon.cli.anonymize import delta
from dpanon.data.audio import read_audio
from dpanon.privacy.ledger import Account, Book, LedgerError, hash_source, hash_speaker, read, read_key
from dpanon.report.tables import text_table

DIGITS = 12  # of a hash in a table


def main(argv: list[str] | None = None) -> None:
    args = parse_args(sys.argv[1:] if argv is None else argv)
    book = read(args.ledger)
    if args.action == "check":
        print(check(args, book))
    else:
        record = totals(book, args.delta, chosen(args, book))
        print(json.dumps(record, indent=1, allow_nan=False) if args.json else as_text(record))


def parse_args(argv: list[str]):
    parser = ArgumentParser(prog="dpanon ledger", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True, metavar="show|check")
    show = actions.add_parser("show", description="Totals of every recording and speaker.")
    show.add_argument("ledger", type=Path, metavar="LEDGER")
    show.add_argument("--of", type=Path, metavar="FILE", help="only this recording, whatever its file is called now")
    show.add_argument("--speaker", metavar="ID", help="only this speaker")
    show.add_argument(
        "--delta",
        type=delta,
        default=0.0,
        help="epsilon by tight accounting at this delta (default: basic, at 0)",
    )
    show.add_argument("--json", type=boolean, default=False, help="whole hashes and guarantees (default false)")
    rows = actions.add_parser("check", description="Is every row as it was written?")
    rows.add_argument("ledger", type=Path, metavar="LEDGER")
    rows.add_argument("--head", metavar="HASH", help="of a row that must be there: what an earlier check printed")
    return parser.parse_args(argv)


def check(args: argparse.Namespace, book: Book) -> str:
    """What to say of a ledger whose rows are in order; LedgerError if the given head is not among them."""
    lines = [f"{args.ledger}: {book.num_rows} rows, each as it was written; head {book.head}"]
    if args.head is not None:
        if args.head not in book.heads:
            raise LedgerError(
                f"{args.ledger}: line {book.num_rows + 1}: no row has the hash {args.head}: rows are missing at the "
                "end, or it is another ledger"
            )
        lines.append(f"  nothing is missing since that head: {book.num_rows - book.heads[args.head]} rows more")
    if book.torn:
        lines.append(
            f"  line {book.num_rows + 1} was cut short while it was written ({book.torn} bytes) and does not count; "
            "the next release removes it"
        )
    return "\n".join(lines)


def chosen(args: argparse.Namespace, book: Book) -> tuple[set[str], set[str]]:
    """Hashes of the utterances and speakers to show."""
    if args.of is None and args.speaker is None:
        return set(book.utterances), set(book.speakers)
    key = read_key(args.ledger, book)
    utterances, speakers = set(), set()
    if args.of is not None:
        utterances.add(hash_source(key, read_audio(args.of)))
    if args.speaker is not None:
        speakers.add(hash_speaker(key, args.speaker))
    return utterances, speakers


def totals(book: Book, at_delta: float, which: tuple[set[str], set[str]]) -> dict[str, Any]:
    """What was chosen, for JSON; an epsilon that is infinite is null."""
    without_name = Counter(who for row in book.reserved.values() for who in (row.source, row.speaker))
    record: dict[str, Any] = {
        "rows": book.num_rows,
        "head": book.head,
        "delta": at_delta,
        "utterances": [],
        "speakers": [],
    }
    accounts: tuple[Mapping[str, Account], Mapping[str, Account]] = (book.utterances, book.speakers)
    for name, known, wanted in zip(("utterances", "speakers"), accounts, which, strict=True):
        for who, account in known.items():
            if who not in wanted:
                continue
            basic, epsilon = account.epsilon(), account.epsilon(at_delta)
            entry: dict[str, Any] = {"id": who}
            if name == "utterances":
                entry |= {"name": book.names.get(who), "speaker": book.owners[who]}
            entry |= {
                "releases": account.releases,
                "without_name": without_name[who],
                "epsilon_basic": basic if math.isfinite(basic) else None,
                "epsilon": epsilon if math.isfinite(epsilon) else None,
                "guarantee": account.total.to_dict(),
            }
            record[name].append(entry)
    return record


def as_text(record: Mapping[str, Any]) -> str:
    """Tables of utterances and of speakers, the one that costs most first."""
    at = f"epsilon at delta {record['delta']:g}" if record["delta"] else "epsilon"
    parts = []
    for name in ("utterances", "speakers"):
        rows = [
            (
                _short(entry["id"]),
                entry.get("name") or "-",
                _short(entry.get("speaker")),
                str(entry["releases"]),
                str(entry["without_name"] or "-"),
                "no bound" if entry["epsilon"] is None else f"{entry['epsilon']:.6g}",
            )
            for entry in sorted(record[name], key=_cost, reverse=True)
        ]
        if rows:
            parts.append(text_table((name[:-1], "name", "speaker", "releases", "without a name", at), rows))
    counts = " and ".join(f"{len(record[name])} {name}" for name in ("utterances", "speakers"))
    return "\n".join([*parts, f"{counts}; {record['rows']} rows, head {record['head']}"])


def _cost(entry: Mapping[str, Any]) -> float:
    return math.inf if entry["epsilon"] is None else entry["epsilon"]


def _short(digits: str | None) -> str:
    return digits[:DIGITS] if digits else "-"


if __name__ == "__main__":
    run(main)
