"""What the tests of the services share: a platform, specs, outcomes with real files, a clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import msgspec

from dashboard.models import Platform, Run, User
from dashboard.services import catalog, runs
from dashboard.services.contract import Outcome, StoredFile, WorkerIdentity
from profiler import spec as specs
from profiler.types import Environment, Metric, ModelFacts, Result, RunSpec

SPEC = RunSpec(model="llama-tiny", scenario="prefill", batch=1, prompt_tokens=8)
WORKER = WorkerIdentity(name="lab:1:a", platform="cpu")


def platform() -> Platform:
    return catalog.ensure_platform("cpu")


def user(name: str = "olga") -> User:
    row, _ = User.objects.get_or_create(username=name, defaults={"role": "operator"})
    return row


def queued(spec: RunSpec = SPEC, *, by: User | None = None) -> Run:
    (run,) = runs.create_runs([spec], platform=platform(), user=by)
    return run


def metric(**changes: object) -> Metric:
    plain = Metric(
        name="ttft",
        unit="ns",
        direction="lower",
        definition=1,
        phase="timed",
        method="median",
        value=2_000_000.0,
        n=3,
        samples=(1_900_000.0, 2_000_000.0, 2_100_000.0),
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def result(spec: RunSpec = SPEC) -> Result:
    return Result(
        spec=spec,
        spec_hash=specs.spec_hash(spec),
        model=ModelFacts(
            name=spec.model,
            architecture="Llama",
            parameters=10,
            active_parameters=None,
            weight_bytes=40,
            config={},
        ),
        metrics=(metric(),),
        profiled_ratio=1.05,
        profiled_note="profiled 2.1 ms, timed 2.0 ms",
    )


ENVIRONMENT = Environment(
    fields={"torch": "2.13.0"}, missing=("driver",), comparable_hash="c" * 64, exact_hash="e" * 64
)


def outcome_files(folder: Path, answer: Result | None = None) -> tuple[StoredFile, ...]:
    """The files a worker delivers for a run that succeeded."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_bytes(msgspec.json.encode(answer or result()))
    (folder / "env.json").write_bytes(msgspec.json.encode(ENVIRONMENT))
    (folder / "trace.json.gz").write_bytes(b"\x1f\x8b not read here")
    names = ("result.json", "env.json", "trace.json.gz")
    return tuple(StoredFile(name=name, path=folder / name) for name in names)


def succeeded(folder: Path, answer: Result | None = None) -> Outcome:
    return Outcome(state="succeeded", files=outcome_files(folder, answer))


def failed(kind: str = "crashed") -> Outcome:
    return Outcome(state="failed", failure_kind=kind, message="it broke", hint="see the log")


def requeue(*, counts: bool = True) -> Outcome:
    return Outcome(state="requeue", failure_kind="worker_fault", message="no disk", counts=counts)


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 5, 12, tzinfo=UTC)

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def __call__(self) -> datetime:
        return self.now


@contextmanager
def stopped_clock() -> Iterator[Clock]:
    """Every service reads this clock while the block runs."""
    clock = Clock()
    with mock.patch("dashboard.services.clock.server_clock", clock):
        yield clock
