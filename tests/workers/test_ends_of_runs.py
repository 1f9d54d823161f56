"""Whatever a benchmark does, its run ends once, with the right state, kind and sentence."""

from __future__ import annotations

import json
import re

import pytest
from pytest_django import Settings

from dashboard.models import Run
from tests.workers.bench import Bench
from tests.workers.system import assert_invariants

pytestmark = pytest.mark.fault


def failure(run: Run) -> tuple[str, str]:
    return run.state, run.failure_kind


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("segv", "signal", "SIGSEGV"),
        ("abort", "signal", "SIGABRT"),
        ("kill-self", "signal", "SIGKILL from outside"),
        ("memory-error", "oom_host", "no room for the weights"),
        ("nan", "invalid_result", "result.json"),
        ("no-result", "invalid_result", "result.json"),
        ("refuse", "oom_device", "does not fit"),
        ("refuse-silently", "bad_spec", "spec.batch is 0"),
        ("crash", "crashed", "the kernel launch failed"),
        ("disk-full", "disk_full", "No space left on device"),
    ],
)
def test_it_says_why_a_benchmark_failed(bench: Bench, mode: str, kind: str, words: str) -> None:
    run = bench.run(mode)
    assert failure(run) == ("failed", kind)
    assert words in run.failure_message
    assert_invariants(bench.var_dir)


def test_it_stores_result_and_log_of_a_good_run(bench: Bench) -> None:
    run = bench.run("quick")
    assert run.state == "succeeded"
    assert "measured" in bench.text(run)
    assert json.loads(bench.text(run, "result.json"))["schema"] == 1
    assert_invariants(bench.var_dir)


def test_it_shows_where_a_crash_happened(bench: Bench) -> None:
    run = bench.run("segv")
    assert "string_at" in bench.text(run)


@pytest.mark.parametrize("mode", ["sleep", "hang", "fork"])
def test_it_ends_a_run_over_its_time_limit(bench: Bench, mode: str) -> None:
    run = bench.run(mode, limit_s=1.0)
    assert failure(run) == ("timed_out", "time_limit")
    assert "ending the benchmark: time" in bench.text(run)
    assert_invariants(bench.var_dir)


def test_it_ends_a_run_over_its_memory_limit(bench: Bench, settings: Settings) -> None:
    settings.RUN_MEMORY_BYTES = 200 << 20
    run = bench.run("oom")
    assert failure(run) == ("failed", "oom_host")
    assert "held more than 200 MiB" in run.failure_message
    assert_invariants(bench.var_dir)


def test_it_ends_children_that_escaped_their_session(bench: Bench) -> None:
    run = bench.run("escape")
    assert run.state == "succeeded"
    assert_invariants(bench.var_dir)


def test_it_keeps_both_ends_of_a_flood(bench: Bench) -> None:
    bench.environment.setenv("FAKE_BENCH_MB", "60")
    run = bench.run("flood")
    log = bench.text(run)
    assert run.state == "succeeded"
    assert log.startswith("the first line\n")
    assert "the last line\n" in log[-500:]
    assert "bytes of output cut here" in log
    assert len(log) < 11 << 20
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", log)
    assert int(peak) < 100_000


def test_it_makes_hostile_output_printable(bench: Bench) -> None:
    log = bench.text(bench.run("noise"))
    first, second = log.splitlines()[:2]
    assert first == "red \\xff\\xfe end"
    assert second.endswith("[41,808 characters of it cut]")


def test_it_gives_the_benchmark_no_secret(bench: Bench) -> None:
    bench.environment.setenv("SECRET_KEY", "canary-secret")
    bench.environment.setenv("TORCH_TOKEN", "canary-token")
    bench.environment.setenv("OMP_NUM_THREADS", "2")
    run = bench.run("tell-environment")
    told = json.loads(bench.text(run).splitlines()[0])
    assert "canary" not in bench.text(run)
    assert told["OMP_NUM_THREADS"] == "2"
    assert told["HOME"].startswith(str(bench.var_dir))
