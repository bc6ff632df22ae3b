"""What every command line shares: options that refuse what they do not know, one-line errors.

A module of this package has its step's name and ends with::

    if __name__ == "__main__":
        run(main)
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dpanon.config import nearest
from dpanon.errors import DpanonError

INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it


class ArgumentParser(argparse.ArgumentParser):
    """argparse without abbreviations, with the module's text as help and suggestions in errors."""

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def parse_args(self, args=None, namespace=None):
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return parsed

    def _unknown(self, argument: str) -> str:
        if not argument.startswith("-"):
            return f"unexpected argument {argument!r}"
        name = argument.split("=")[0]
        options = [option for option in self._option_string_actions if option.startswith("--")]
        return f"unknown option {name}{nearest(name, options)}"

    def error(self, message: str) -> NoReturn:
        print(f"error: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(2)


def boolean(text: str) -> bool:
    """The type of an option that takes ``true`` or ``false``."""
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return text == "true"


def run(main: Callable[[list[str] | None], int | None], argv: Sequence[str] | None = None) -> NoReturn:
    """Call ``main`` and exit; an expected error is one line, ``--debug true`` shows the trace as well.

    ``main`` never sees ``--debug``. A bug is not an expected error: its trace is always shown.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = _take_debug(arguments)
    if int(os.environ.get("LOCAL_RANK", "0")) > 0:  # one of the processes of torchrun says it for all
        sys.stdout = open(os.devnull, "w")  # until the end of the process
    try:
        code = main(arguments) or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:
        if debug or not _expected(error):
            traceback.print_exc()
        print(f"error: {_one_line(error)}", file=sys.stderr)
        code = getattr(error, "exit_code", 1)
    sys.exit(code)


def _expected(error: Exception) -> bool:
    if isinstance(error, DpanonError | OSError):
        return True
    privacy = sys.modules.get("dpanon.privacy.errors")  # loaded if it was raised; do not load torch for it
    return privacy is not None and isinstance(error, privacy.PrivacyError)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split())
    if _expected(error):
        return text
    return f"{type(error).__name__}: {text}"


def _take_debug(arguments: list[str]) -> bool:
    """Remove ``--debug true|false`` from the arguments and return it."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if "--debug" not in arguments[:end]:
        return False
    at = arguments.index("--debug")
    value = arguments[at + 1] if at + 1 < len(arguments) else ""
    if value not in ("true", "false"):
        print(f"error: --debug: expected true or false, got {value!r}", file=sys.stderr)
        sys.exit(2)
    del arguments[at : at + 2]
    return value == "true"
