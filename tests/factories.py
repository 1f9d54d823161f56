"""Rows for tests: plain functions with defaults, each valid on its own."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import itertools
import json
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from dashboard.models import (
    Artifact,
    Attempt,
    FailureKind,
    GroupKind,
    Heartbeat,
    MetricValue,
    Model,
    Note,
    NoteKind,
    Operator,
    Platform,
    Result,
    Role,
    Run,
    RunGroup,
    RunState,
    Trace,
    TraceSet,
    TraceState,
    User,
    Workload,
)
from dashboard.services import artifacts, history
from dashboard.services.spec_fields import variant_of
from profiler import spec as specs
from profiler.analysis.report import (
    Launches,
    OperatorRow,
    QualityReport,
    Report,
    TraceFacts,
    dump,
)
from profiler.metrics import HEADLINE, METRICS
from profiler.types import RunSpec

PASSWORD = "correct horse battery"
_numbers = itertools.count(1)

_KINDS: dict[str, FailureKind] = {
    RunState.FAILED: FailureKind.CRASHED,
    RunState.TIMED_OUT: FailureKind.TIME_LIMIT,
    RunState.CANCELLED: FailureKind.CANCELLED,
    RunState.LOST: FailureKind.WORKER_LOST,
    RunState.EXPIRED: FailureKind.NO_WORKER,
}


def make_user(
    name: str = "", *, role: str = Role.OPERATOR, password: str | None = None, **fields: Any
) -> User:
    """A person; without a password only `client.force_login` or a link lets them in."""
    user = User(username=name or f"user{next(_numbers)}", role=role, **fields)
    if password is None:
        user.set_unusable_password()
    else:
        user.set_password(password)
    user.save()
    return user


def make_platform(slug: str = "cpu", **fields: Any) -> Platform:
    """The platform of that name, made once."""
    values = {"title": slug, "device": "cpu", "created_at": timezone.now()} | fields
    return Platform.objects.get_or_create(slug=slug, defaults=values)[0]


def make_model(name: str = "llama-tiny", **fields: Any) -> Model:
    """The model of that name, made once."""
    values = {"title": name, "architecture": "Llama", "created_at": timezone.now()} | fields
    return Model.objects.get_or_create(name=name, defaults=values)[0]


def make_spec(**fields: Any) -> RunSpec:
    """A small specification."""
    return RunSpec(**({"model": "llama-tiny", "scenario": "decode"} | fields))


def make_workload(spec: RunSpec | None = None) -> Workload:
    """The workload of a specification, made once."""
    spec = spec or make_spec()
    values = {
        "model": make_model(spec.model),
        "scenario": spec.scenario,
        "batch": spec.batch,
        "prompt_tokens": spec.prompt_tokens,
        "output_tokens": spec.output_tokens if spec.scenario == "decode" else None,
        "dtype": spec.dtype,
        "variant": variant_of(spec),
        "created_at": timezone.now(),
    }
    return Workload.objects.get_or_create(hash=specs.workload_hash(spec), defaults=values)[0]


def make_run(
    state: str = RunState.QUEUED,
    *,
    spec: RunSpec | None = None,
    platform: Platform | None = None,
    **fields: Any,
) -> Run:
    """A run in any state, with what that state needs."""
    spec = spec or make_spec()
    now = timezone.now()
    values = {
        "workload": make_workload(spec),
        "platform": platform or make_platform(),
        "spec": dataclasses.asdict(spec),
        "spec_hash": specs.spec_hash(spec),
        "state": state,
        "limit_s": 3600.0,
        "not_before": now,
        "expires_at": now + timedelta(days=7),
        "created_at": now,
    }
    run = Run.objects.create(**(values | _of_state(state, now) | fields))
    history.note_queued(run)
    return run


def _of_state(state: str, now: datetime) -> dict[str, Any]:
    if state == RunState.QUEUED:
        return {}
    claimed = {"attempt": 1, "fence": 1, "worker": "host:1:abcd", "started_at": now}
    if state == RunState.RUNNING:
        lease = {"lease_until": now + timedelta(minutes=2), "heartbeat_at": now}
        return {**claimed, **lease, "deadline_at": now + timedelta(hours=1), "phase": "timed"}
    if state == RunState.SUCCEEDED:
        return {**claimed, "ended_at": now}
    told = {"failure_kind": _KINDS[state], "failure_message": f"It ended as {state}"}
    unclaimed = state == RunState.EXPIRED
    return {**({} if unclaimed else claimed), **told, "ended_at": now}


def make_group(platform: Platform | None = None, **fields: Any) -> RunGroup:
    """An A/A group without runs."""
    values = {
        "kind": GroupKind.NOISE,
        "platform": platform or make_platform(),
        "created_at": timezone.now(),
    }
    return RunGroup.objects.create(**(values | fields))


def make_attempt(run: Run, number: int = 1, **fields: Any) -> Attempt:
    """An attempt of a run."""
    values = {"worker": run.worker or "host:1:abcd", "started_at": timezone.now()}
    return Attempt.objects.create(run=run, number=number, fence=number, **(values | fields))


def make_result(
    run: Run | None = None, *, value: float = 7.62e6, iqr: float | None = 1e5, **fields: Any
) -> Result:
    """A result with the headline metric of its scenario, ten samples around `value`."""
    run = run or make_run(RunState.SUCCEEDED)
    environment = {
        "fields": {"torch": "2.13.0", "cpu": "test"},
        "missing": ["driver"],
        "comparable_hash": "a" * 64,
        "exact_hash": "b" * 64,
        "schema": 1,
    }
    values = {
        "attempt": max(1, run.attempt),
        "fence": max(1, run.fence),
        "digest": "c" * 64,
        "document": make_document(run),
        "environment": environment,
        "comparable_hash": "a" * 64,
        "exact_hash": "b" * 64,
        "profiled_ratio": 1.2,
        "stored_at": timezone.now(),
    }
    result = Result.objects.create(run=run, **(values | fields))
    make_metric(result, HEADLINE[run.workload.scenario], value=value, iqr=iqr)
    history.note_result(run)
    return result


def make_document(run: Run) -> dict[str, Any]:
    """`result.json` without its metrics, as the server stores it."""
    return {
        "spec": run.spec,
        "spec_hash": run.spec_hash,
        "model": {
            "name": run.workload.model.name,
            "architecture": "Llama",
            "parameters": 100_000,
            "active_parameters": None,
            "weight_bytes": 400_000,
            "config": {},
        },
        "metrics": [],
        "profiled_ratio": 1.2,
        "profiled_note": "",
        "warnings": [],
        "profiler_version": "0.1.0",
        "schema": 1,
    }


def make_metric(result: Result, name: str, **fields: Any) -> MetricValue:
    """One metric of a result; its samples lie evenly around the value."""
    definition = METRICS[name]
    value = float(fields.pop("value", 1e6))
    samples = [value * (0.95 + 0.01 * place) for place in range(10)]
    values = {
        "unit": definition.unit,
        "direction": definition.direction,
        "definition": definition.version,
        "phase": "timed",
        "method": "median of samples",
        "value": value,
        "n": len(samples),
        "minimum": min(samples),
        "maximum": max(samples),
        "iqr": value * 0.05,
        "cov": 0.03,
        "percentiles": {"p50": value},
        "samples": samples,
    }
    return MetricValue.objects.create(result=result, name=name, **(values | fields))


def make_artifact(data: bytes | None = None) -> Artifact:
    """A row of the store; the bytes themselves are not stored (see `store_artifact`)."""
    data = data if data is not None else f"artifact {next(_numbers)}".encode()
    sha256 = hashlib.sha256(data).hexdigest()
    values = {"size_bytes": len(data), "created_at": timezone.now()}
    return Artifact.objects.get_or_create(sha256=sha256, defaults=values)[0]


def store_artifact(data: bytes) -> Artifact:
    """A row with its bytes in the store."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return artifacts.keep(Path(file.name))


def make_report(**fields: Any) -> Report:
    """A small report of a trace recorded on the CPU."""
    facts = TraceFacts(
        path="trace.json.gz",
        sha256="d" * 64,
        events=1234,
        events_by_category={"cpu_op": 1234},
        torch_version="2.13.0",
        device_kind="cpu",
        devices=[],
        rank=None,
        world_size=None,
    )
    row = OperatorRow(
        name="aten::mm",
        count=12,
        host_total_ns=3_000_000,
        host_self_ns=2_000_000,
        device_total_ns=0,
        device_self_ns=0,
    )
    quality = QualityReport(
        repaired=0,
        dropped=0,
        clipped=0,
        unlinked_kernels=0,
        attributed_device_ns=0,
        unattributed_device_ns=0,
        warnings=[],
    )
    values: dict[str, Any] = {"trace": facts, "span_ns": 5_000_000, "operators": [row]}
    values |= {key: [] for key in ("timeline", "streams", "kernels", "steps", "idle")}
    values |= {"launches": Launches(linked=0, unlinked=0, by_rule={}, delay_ns=None)}
    return Report(**(values | {"collectives": [], "quality": quality} | fields))


def make_ready_trace(*, run: Run | None = None, report: Report | None = None) -> Trace:
    """A trace that was read: report, flame graph, raw file and operator rows are stored."""
    report = report or make_report()
    flame = {"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}
    trace = make_trace(
        TraceState.READY,
        run=run,
        raw=store_artifact(gzip.compress(b'{"traceEvents": []}')),
        report=store_artifact(dump(report)),
        flame=store_artifact(gzip.compress(json.dumps(flame).encode())),
    )
    for row in report.operators:
        make_operator(trace, row.name, count=row.count, host_self_ns=row.host_self_ns)
    return trace


def make_trace(state: str = TraceState.PENDING, *, run: Run | None = None, **fields: Any) -> Trace:
    """A trace in any state, of `run` or uploaded."""
    now = timezone.now()
    values: dict[str, Any] = {
        "run": run,
        "name": "trace.json.gz",
        "raw": fields.pop("raw", None) or make_artifact(),
        "state": state,
        "created_at": now,
    }
    if state == TraceState.INGESTING:
        values |= {"lease_until": now + timedelta(minutes=2), "attempt": 1, "fence": 1}
    if state in {TraceState.READY, TraceState.REJECTED}:
        values |= {"ended_at": now, "attempt": 1, "fence": 1}
    if state == TraceState.REJECTED:
        values |= {"reason": "The file ends in the middle of an event", "hint": "Record it again"}
    if state == TraceState.READY:
        results = {"events": 1234, "span_ns": 5_000_000, "device_kind": "cpu"}
        stored = {} if "report" in fields else {"report": make_artifact(), "flame": make_artifact()}
        values |= {**stored, **results}
    return Trace.objects.create(**(values | fields))


def make_note(text: str = "Fuse it.", **fields: Any) -> Note:
    """A note, on `aten::mm` unless said otherwise."""
    about = {"kind": NoteKind.OPERATOR, "operator": "aten::mm"}
    values = {"text": text, "created_at": timezone.now()} | (about if "kind" not in fields else {})
    author = fields.pop("author", None) or make_user()
    return Note.objects.create(author=author, **(values | fields))


def make_set(*traces: Trace) -> TraceSet:
    """A set of traces, their ranks as they are."""
    whole = TraceSet.objects.create(created_at=timezone.now())
    Trace.objects.filter(pk__in=[trace.pk for trace in traces]).update(set=whole)
    return whole


def make_operator(trace: Trace, name: str = "aten::mm", **fields: Any) -> Operator:
    """A row of a trace's operator table."""
    values: dict[str, Any] = {
        "canonical": name,
        "count": 12,
        "host_total_ns": 3_000_000,
        "host_self_ns": 2_000_000,
        "device_total_ns": 0,
        "device_self_ns": 0,
    }
    return Operator.objects.create(trace=trace, name=name, **(values | fields))


def make_heartbeat(kind: str = "worker", *, age_s: float = 0, **fields: Any) -> Heartbeat:
    """A sign of life, `age_s` seconds old."""
    at = timezone.now() - timedelta(seconds=age_s)
    values = {
        "name": f"{kind}-{next(_numbers)}",
        "platform": "cpu" if kind == "worker" else "",
        "version": "0.1.0",
        "started_at": at,
        "at": at,
    }
    return Heartbeat.objects.create(kind=kind, **(values | fields))
