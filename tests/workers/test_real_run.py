"""The real benchmark through the real worker, and its trace through the real reader."""

from __future__ import annotations

import threading

import pytest

from dashboard.models import Run, Trace
from dashboard.services import catalog, runs
from dashboard.services.contract import WorkerIdentity
from profiler.types import RunSpec
from tests.workers.bench import Bench
from tests.workers.system import assert_invariants
from workers.duty import places
from workers.ingest import ReadLimits, TraceDuty
from workers.server import local_server

pytestmark = pytest.mark.fault

SPEC = RunSpec(
    model="llama-tiny",
    scenario="decode",
    prompt_tokens=16,
    output_tokens=4,
    iterations=2,
    warmup=1,
    profiled_steps=1,
)


def queue(spec: RunSpec) -> Run:
    (run,) = runs.create_runs([spec], platform=catalog.ensure_platform(), user=None)
    return run


def test_it_measures_and_reads_the_trace(bench: Bench) -> None:
    run = queue(SPEC)
    assert bench.duty().handle(run.pk, 1)
    run.refresh_from_db()
    assert run.state == "succeeded", run.failure_message
    assert run.result.metrics.count() > 1
    trace = Trace.objects.get(run=run)
    identity = WorkerIdentity(name="reader:1", platform="")
    limits = ReadLimits(wall_s=120, memory_bytes=3 << 30)
    reader = TraceDuty(local_server(), identity, places(), limits, stop=threading.Event())
    assert reader.handle(trace.pk, 1)
    trace.refresh_from_db()
    assert trace.state == "ready", trace.reason
    assert trace.operators.filter(name__startswith="aten::").exists()
    assert_invariants(bench.var_dir)


def test_it_passes_on_what_the_benchmark_says_is_wrong(bench: Bench) -> None:
    run = queue(SPEC)
    wrong = {**run.spec, "device": "cuda:7"}
    Run.objects.filter(pk=run.pk).update(spec=wrong)
    assert bench.duty().handle(run.pk, 1)
    run.refresh_from_db()
    assert (run.state, run.failure_kind) == ("failed", "bad_spec")
    assert "cuda" in run.failure_message
    assert_invariants(bench.var_dir)
