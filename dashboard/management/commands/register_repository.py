"""`manage.py register_repository`: the same as the page, for scripts."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from dashboard.management.base import ContractCommand
from dashboard.services.repositories import BUILD_LIMIT_S, NewRepository, register_repository
from profiler.errors import UserError


class Command(ContractCommand):
    help = "Register a repository whose commits may be measured."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="its name here: letters, digits, - and _")
        parser.add_argument("address", help="https, ssh, or the path of a repository on this host")
        parser.add_argument(
            "--allow",
            action="append",
            metavar="BRANCH",
            help="branch that may be measured, with * (repeat it; default: main)",
        )
        parser.add_argument(
            "--import-path", action="append", metavar="FOLDER", help="on the import path"
        )
        parser.add_argument("--factory", default="", help="path/file.py:function")
        parser.add_argument("--build", default="", metavar="COMMAND", help="builds a checkout")
        parser.add_argument("--build-limit", type=float, default=BUILD_LIMIT_S, metavar="SECONDS")
        parser.add_argument("--private-network", action="store_true")

    def handle(self, *args: object, **options: object) -> None:
        try:
            row = register_repository(_wanted(options), None)
        except UserError as error:
            self.stderr.write(error.line())
            sys.exit(int(error.exit_code))
        self.stdout.write(f"{row.slug} is registered; a running keeper fetches it.")


def _wanted(options: dict[str, object]) -> NewRepository:
    address = str(options["address"])
    if address.startswith((".", "~")):
        address = str(Path(address).expanduser().resolve())
    return NewRepository(
        slug=str(options["name"]),
        address=address,
        allowed_refs=_words(options["allow"]) or ("main",),
        import_paths=_words(options["import_path"]) or (".",),
        build_command=str(options["build"]),
        build_limit_s=float(str(options["build_limit"])),
        factory=str(options["factory"]),
        private_network=bool(options["private_network"]),
    )


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(word) for word in value) if isinstance(value, list) else ()
