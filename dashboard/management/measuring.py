"""Commands that queue a measurement of commits, wait for it and tell what came out."""

from __future__ import annotations

import sys
import time
from abc import abstractmethod
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from dashboard.management.base import ContractCommand
from dashboard.models import Platform, Repository
from dashboard.services.catalog import ensure_platform
from profiler.analysis.ladder import Settings
from profiler.errors import UserError

POLL_S = 1.0
INTERRUPTED = 130
Options = Mapping[str, object]


class Row(Protocol):
    """What is waited for."""

    @property
    def is_terminal(self) -> bool: ...


RowT = TypeVar("RowT", bound=Row)
View = TypeVar("View")


class MeasuringCommand(ContractCommand, Generic[RowT, View]):
    """Queues what `create` makes and waits for its end; each change is told on stderr."""

    noun: str
    """What is made, as in "comparison 7 is queued"."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repo", required=True, help="name of a registered repository")
        self.add_subject(parser)
        parser.add_argument("--platform", default="", help="default: this installation's")
        parser.add_argument("--margin", type=float, default=2.0, help="in per cent (default: 2)")
        parser.add_argument("--seed", type=int, help="of the order of launches")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--no-wait", action="store_true", help="queue it and leave")
        parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer")

    @abstractmethod
    def add_subject(self, parser: ArgumentParser) -> None:
        """Options for the commits and the workload."""

    @abstractmethod
    def create(self, options: Options) -> int:
        """Queue it and give its number; raises `UserError`."""

    @abstractmethod
    def read(self, number: int) -> RowT | None:
        """Its row as it is now, None once it is deleted."""

    @abstractmethod
    def look(self, row: RowT) -> View:
        """What is known of it."""

    @abstractmethod
    def progress(self, view: View) -> str:
        """One line while it goes on."""

    @abstractmethod
    def told(self, view: View, *, as_json: bool) -> str:
        """What it came to, as one JSON object or one screen of text."""

    @abstractmethod
    def exit_code(self, view: View, options: Options) -> int:
        """The code to leave with."""

    def handle(self, *args: object, **options: object) -> None:
        try:
            number = self.create(options)
            self.stderr.write(f"{self.noun} {number} is queued")
            if options["no_wait"]:
                self.stdout.write(str(number))
                return
            view = self._wait(number, options["timeout"])
        except UserError as error:
            self.stderr.write(error.line())
            sys.exit(int(error.exit_code))
        self.stdout.write(self.told(view, as_json=bool(options["json"])))
        code = self.exit_code(view, options)
        if code:
            sys.exit(code)

    def _wait(self, number: int, timeout_s: object) -> View:
        """Until it has ended or time is up; Ctrl-C leaves it to go on without this command."""
        try:
            return self._ended(number, float(str(timeout_s)) if timeout_s else None)
        except KeyboardInterrupt:
            page = "its page shows it and can cancel it"
            self.stderr.write(f"{self.noun} {number} goes on; {page}")
            sys.exit(INTERRUPTED)

    def _ended(self, number: int, timeout_s: float | None) -> View:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        said = ""
        while True:
            row = self.read(number)
            if row is None:
                raise UserError(f"{self.noun} {number} was deleted".capitalize(), "start it again")
            view = self.look(row)
            if row.is_terminal or (deadline is not None and time.monotonic() > deadline):
                return view
            now = self.progress(view)
            if now != said:
                self.stderr.write(now)
                said = now
            time.sleep(POLL_S)


def repository_of(options: Options) -> Repository:
    """The registered repository; raises `UserError` that names those there are."""
    found = Repository.objects.filter(slug=str(options["repo"])).first()
    if found is None:
        known = ", ".join(Repository.objects.values_list("slug", flat=True)) or "none yet"
        raise UserError(f"There is no repository {options['repo']}", f"registered: {known}")
    return found


def platform_of(options: Options) -> Platform:
    return ensure_platform(str(options["platform"]))


def settings_of(options: Options) -> Settings:
    return Settings(margin=float(str(options["margin"])) / 100)


def seed_of(options: Options) -> int | None:
    seed = options["seed"]
    return None if seed is None else int(str(seed))
