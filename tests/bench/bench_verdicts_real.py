"""Are verdicts on real commits right? The whole product compares commits of a real repository.

The example repository of the tests holds a small model and commits with a known
effect. Every comparison goes the way of `manage.py compare`: queued, checked
out, built, measured in pairs of fresh processes by the worker, explained by
two profiled launches. A commit without an effect and one with an operator more
(10 % of a step) are compared `REPEATS` times each (default 20), the others
once: faster, faster with other numbers, one that does not build, one that
crashes while it decodes. Then a line of 16 commits is bisected. Goals: at least
95 % of the repeated verdicts are right and all others; waterfall and operator
table name the changed operator first, again in 95 % of the repeats; the bisect
names the culprit.

`ONLY=same,slower,bisect` chooses cases. With `FOLDER=...` everything is kept there
and what was compared in an earlier call counts: it can be stopped and go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import msgspec  # noqa: E402

from tests.e2e.system import System  # noqa: E402
from tests.workers import example_repository as example  # noqa: E402

SHARE = 0.95
NAME = "example"
COMPARISON_LIMIT_S = 3600
DONE_FILE = "compared.jsonl"
BISECT, BISECT_FILE, BISECT_LIMIT_S = "bisect", "bisected.json", 7200


@dataclass(frozen=True, kw_only=True)
class Case:
    """One candidate against `base`, and what must be said about it."""

    name: str
    verdict: str
    failure: str = ""
    is_repeated: bool = False
    is_explained: bool = False


CASES = (
    Case(name="same", verdict="no change", is_repeated=True),
    Case(name="slower", verdict="slower", is_repeated=True, is_explained=True),
    Case(name="faster", verdict="faster", is_explained=True),
    Case(name="wrong", verdict="faster", is_explained=True),
    Case(name="unbuildable", verdict="failed", failure="build_failed"),
    Case(name="crashing", verdict="not comparable"),
)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What one comparison said; `bar` and `row` are the first of waterfall and operator table."""

    case: str
    verdict: str
    failure: str
    sentence: str
    pairs: int
    took_s: float
    numerics: str
    bar: str = ""
    row: str = ""

    def is_right(self, case: Case) -> bool:
        told = (self.verdict, self.failure) == (case.verdict, case.failure)
        return told and self.numerics == "not checked"

    @property
    def is_named(self) -> bool:
        """Whether both name the operator that was changed, and where."""
        return self.bar == example.OPERATOR and self.row == f"{example.MODULE}: {example.OPERATOR}"


class Product:
    """The product in a folder, with the example repository registered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "VAR_DIR": str(folder / "var")}
        self.spec = folder / "spec.json"
        self.spec.write_bytes(msgspec.json.encode(example.SPEC))

    def manage(self, *words: str) -> str:
        """The output of `manage.py`; its exit code is of no matter to comparisons."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if not done.stdout:
            raise RuntimeError(f"manage.py {words[0]} said nothing: {done.stderr[-2000:]}")
        return done.stdout

    def register(self, made: example.Example) -> None:
        place = str(made.upstream.folder)
        words = ("--factory", example.FACTORY, "--build", example.BUILD)
        self.manage("register_repository", NAME, place, *words)

    def compare(self, case: Case, baseline: str, candidate: str) -> Compared:
        """One comparison from its request to its verdict."""
        begun = time.monotonic()
        words = ["--repo", NAME, "--base", baseline, "--candidate", candidate, "--json"]
        words += ["--spec", str(self.spec), "--timeout", str(COMPARISON_LIMIT_S)]
        told = json.loads(self.manage("compare", *words))
        took_s = time.monotonic() - begun
        bar, row = self.named(told["comparison"]) if case.is_explained else ("", "")
        return Compared(
            case=case.name,
            verdict=told["verdict"],
            failure=told["failure_kind"] or "",
            sentence=told["sentence"],
            pairs=told["pairs"],
            took_s=took_s,
            numerics=told["numerics"],
            bar=bar,
            row=row,
        )

    def bisect(self, made: example.Example) -> str:
        """What the bisect of the line printed, as JSON."""
        words = ["--repo", NAME, "--good", made.line[0], "--bad", made.line[-1], "--json"]
        words += ["--spec", str(self.spec), "--timeout", str(BISECT_LIMIT_S)]
        return self.manage("bisect", *words)

    def named(self, comparison: int) -> tuple[str, str]:
        """The first bar of the waterfall and the first row of the operator table."""
        from dashboard.models import ComparedWorkload
        from dashboard.queries.differences import difference_of

        found = difference_of(ComparedWorkload.objects.get(comparison=comparison))
        if found is None:
            return "nothing", "nothing"
        row = found.diff.rows[0]
        return found.waterfall.bars[0].name, f"{row.module}: {row.operator}"


@contextmanager
def started(folder: Path) -> Iterator[Product]:
    """The product, running; its rows can be read in this process meanwhile."""
    system = System(folder / "var")
    try:
        system.wait_until_ready()
        os.environ["VAR_DIR"] = str(folder / "var")
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
        import django

        django.setup()
        forget_open()
        yield Product(folder)
    finally:
        system.stop()


def forget_open() -> None:
    """Cancel what an earlier call was stopped in: it is measured anew."""
    from dashboard.models import Bisect, Comparison, User
    from dashboard.models.bisect import BISECT_ENDED
    from dashboard.models.comparisons import COMPARISON_ENDED
    from dashboard.services.bisect import cancel_bisect
    from dashboard.services.comparisons import cancel_comparison

    admin = User.objects.order_by("pk").first()
    assert admin is not None, "the product made its first admin when it started"
    for open_bisect in Bisect.objects.exclude(state__in=BISECT_ENDED):
        cancel_bisect(open_bisect.pk, admin)
    for left in Comparison.objects.exclude(state__in=COMPARISON_ENDED):
        cancel_comparison(left.pk, admin)


def earlier(folder: Path) -> list[Compared]:
    """What an earlier call in this folder compared."""
    path = folder / DONE_FILE
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Compared) for line in lines]


def line_of(case: Case, number: int, found: Compared) -> str:
    """One comparison in one line."""
    named = f"; first {found.bar} and {found.row}" if case.is_explained else ""
    return (
        f"{'right' if found.is_right(case) else 'WRONG':<6} {case.name:<12} {number:>2}  "
        f"{found.pairs:>3} pairs {found.took_s:5.0f} s  {found.sentence}{named}"
    )


def measure(product: Product, made: example.Example, cases: list[Case], repeats: int) -> None:
    """What is not compared yet, in turns, each kept as soon as it has ended."""
    done = earlier(product.folder)
    for number in range(1, repeats + 1):
        for case in cases:
            wanted = number if case.is_repeated else 1
            if sum(found.case == case.name for found in done) >= wanted:
                continue
            found = product.compare(case, made.base, getattr(made, case.name))
            done.append(found)
            with (product.folder / DONE_FILE).open("ab") as file:
                file.write(msgspec.json.encode(found) + b"\n")
            print(line_of(case, number, found), flush=True)


def bisected(product: Product, made: example.Example) -> list[str]:
    """The bisect of the line, measured in an earlier call or now; the goal it misses."""
    path = product.folder / BISECT_FILE
    if not path.exists():
        begun = time.monotonic()
        path.write_text(product.bisect(made))
        print(f"bisected in {time.monotonic() - begun:.0f} s", flush=True)
    told = json.loads(path.read_text())
    right = told["culprit"] == made.line[example.CULPRIT]
    print(f"{'right' if right else 'WRONG':<6} {told['sentence']}")
    for step in told["steps"]:
        place = made.line.index(step["commit"])
        effect = "" if step["effect"] is None else f", {step['effect']:+.1%}"
        print(f"       {place:>2} {step['kind']} {step['answer']}, {step['pairs']} pairs{effect}")
    return [] if right else ["the bisect does not name the culprit"]


def misses(cases: list[Case], done: list[Compared], repeats: int) -> list[str]:
    """The goals that are missed."""
    out = []
    for case in cases:
        found = [one for one in done if one.case == case.name]
        enough = SHARE * (repeats if case.is_repeated else 1)
        right = sum(one.is_right(case) for one in found)
        named = sum(one.is_named for one in found)
        print(f"{case.name:<12} {right} of {len(found)} right", end="")
        print(f", {named} named the operator first" if case.is_explained else "")
        if right < enough:
            out.append(f"{case.name}: {right} of {len(found)} right")
        if case.is_explained and named < enough:
            out.append(f"{case.name}: {named} of {len(found)} named the operator first")
    return out


def main() -> int:
    # Told to end, the product ends first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    repeats = int(os.environ.get("REPEATS", "20"))
    only = os.environ.get("ONLY", "")
    cases = [case for case in CASES if not only or case.name in only.split(",")]
    print(f"{repeats} repeats, load {os.getloadavg()}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("FOLDER", temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "repository"
        is_new = not place.exists()
        # Commits are the same wherever they are made: their dates are fixed.
        made = example.make_example(place if is_new else Path(temporary) / "again")
        with started(folder) as product:
            if is_new:
                product.register(made)
            measure(product, made, cases, repeats)
            lost = bisected(product, made) if not only or BISECT in only.split(",") else []
        missed = lost + misses(cases, earlier(folder), repeats)
    print(f"goal missed: {'; '.join(missed)}" if missed else "goal met")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; with the same FOLDER it goes on")
