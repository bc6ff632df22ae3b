"""Differentially private speaker anonymization.

    dpanon anonymize IN OUT    speech of a file, folder or data directory, with a stated guarantee
    dpanon protect-embeddings  the same for speaker embeddings of a data directory
    dpanon guarantee           what a mechanism promises, before anything is released
    dpanon audit               tries to refute what mechanisms and models claim
    dpanon ledger              what was released about whom so far, and what it adds up to
    dpanon evaluate            how well attackers and recognizers do on a released set
    dpanon report              tables and figures of what was measured
    dpanon submission          check and pack what a VoicePrivacy Challenge takes
    dpanon doctor              what is installed, what is missing, why it matters

dpanon COMMAND --help tells more. Every command takes --debug true to show the trace of an error.
"""

import importlib
import importlib.util
import sys

from dpanon import __version__
from dpanon.cli import run
from dpanon.config import nearest
from dpanon.errors import UsageError

COMMANDS = (
    "anonymize",
    "protect-embeddings",
    "guarantee",
    "audit",
    "ledger",
    "evaluate",
    "report",
    "submission",
    "doctor",
)


def main(argv: list[str] | None = None) -> int | None:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"dpanon {__version__}")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        raise UsageError(f"unknown command {name!r}{nearest(name, COMMANDS)}; see dpanon --help")
    module = f"dpanon.cli.{name.replace('-', '_')}"  # loaded when asked for: --help must not wait for torch
    if importlib.util.find_spec(module) is None:
        raise UsageError(f"dpanon {name} is not part of dpanon {__version__}")
    return importlib.import_module(module).main(rest)


def entry() -> None:
    """The console script."""
    run(main)


if __name__ == "__main__":
    entry()
