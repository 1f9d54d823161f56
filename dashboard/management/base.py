"""What every command of `manage.py` does alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from django.core.management.base import BaseCommand, CommandError

from profiler.errors import ExitCode


class ContractCommand(BaseCommand):
    """Wrong arguments are one line and exit code 64: Django's own 2 means wrong numerics here."""

    def run_from_argv(self, argv: Sequence[str]) -> None:
        try:
            self.create_parser(argv[0], argv[1]).parse_args(list(argv[2:]))
        except CommandError as error:
            said = str(error).removeprefix("Error: ")
            self.stderr.write(f"{argv[1]}: {said}. `manage.py {argv[1]} --help` says more")
            sys.exit(int(ExitCode.USAGE))
        super().run_from_argv(list(argv))
