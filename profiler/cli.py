"""`python -m profiler`: one line for a person's mistake, an exit code for every outcome."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn, cast

import profiler
from profiler.errors import ExitCode, UserError, printable

INTERRUPTED = 130
"""Exit code of a run that Ctrl-C ended: 128 + SIGINT."""

COMMANDS = ("cli_bench", "cli_trace", "cli_compare")
"""Modules that add sub-commands through `register(subparsers)`."""

Handler = Callable[[argparse.Namespace], int]


class UsageError(UserError):
    """A command line that cannot be understood."""

    exit_code = ExitCode.USAGE
    kind = "usage"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with the way to the help."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", f"see {self.prog} --help")


def build_parser() -> Parser:
    """The parser with every sub-command registered."""
    parser = Parser(prog="python -m profiler", description="Measure models and read their traces.")
    parser.add_argument("--version", action="version", version=f"daybreak {profiler.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        if importlib.util.find_spec(f"profiler.{name}") is not None:
            importlib.import_module(f"profiler.{name}").register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code of the command-line contract."""
    try:
        options = build_parser().parse_args(arguments)
        code = cast(Handler, options.handler)(options)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"daybreak: {error.line()}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("daybreak: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.FINE)
    except Exception as error:
        traceback.print_exc()
        print(f"daybreak: our fault: {printable(repr(error))}", file=sys.stderr)
        return int(ExitCode.OUR_FAULT)
