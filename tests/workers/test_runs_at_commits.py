"""A run at a commit: fetched, checked out, built, measured, and nothing left behind."""

from __future__ import annotations

import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.models import Repository, Run
from dashboard.services import catalog
from dashboard.services.repositories import NewRepository, register_repository, resolve
from dashboard.services.runs import create_runs
from profiler.types import RunSpec
from tests.workers.bench import Bench
from tests.workers.repository import Upstream
from tests.workers.system import FAKE_BENCH, System, assert_invariants, own_marked, wait_for
from workers.checkout import BUILDS_FOLDER
from workers.fetch import Fetcher
from workers.job import remove
from workers.mirror import MIRROR_FOLDER

pytestmark = pytest.mark.fault
SPEC = RunSpec(model="llama-small", scenario="prefill")
TELL = 'cat value.txt >&2; echo "path $PYTHONPATH" >&2; exec "$@"'


def command(mode: str = "quick") -> str:
    """A benchmark that first says what lies in the tree."""
    words = ["sh", "-c", TELL, "sh", sys.executable, str(FAKE_BENCH), mode, "{spec}", "{out}"]
    return shlex.join(words)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "upstream")


@pytest.fixture
def place(bench: Bench, upstream: Upstream) -> Iterator[Bench]:
    bench.environment.setenv("BENCHMARK_COMMAND", command())
    yield bench


def register(upstream: Upstream, **fields: object) -> Repository:
    plain = {"slug": "models", "address": str(upstream.folder), "allowed_refs": ("main",)}
    row = register_repository(NewRepository(**(plain | fields)), None)  # type: ignore[arg-type]
    Fetcher(threading.Event()).fetch_due()
    row.refresh_from_db()
    return row


def queue(row: Repository, name: str = "main") -> Run:
    (run,) = create_runs(
        [SPEC], platform=catalog.ensure_platform(), user=None, commit=resolve(row, name)
    )
    return run


def measure(place: Bench, row: Repository, name: str = "main") -> Run:
    run = queue(row, name)
    assert place.duty().handle(run.pk, 1)
    return Run.objects.get(pk=run.pk)


def failure(run: Run) -> tuple[str, str]:
    return run.state, run.failure_kind


def test_it_measures_the_files_of_its_commit(place: Bench, upstream: Upstream) -> None:
    old = upstream.commit(**{"value.txt": "the old value\n"})
    upstream.commit(**{"value.txt": "the new value\n"})
    row = register(upstream, import_paths=("src",))
    run = measure(place, row, old)
    assert run.state == "succeeded", run.failure_message
    assert "the old value" in place.text(run)
    assert "tree/src" in place.text(run)
    assert "the new value" in place.text(measure(place, row))
    assert_invariants(place.var_dir)


def test_it_builds_once_per_commit(place: Bench, upstream: Upstream) -> None:
    upstream.commit(**{"build.sh": "echo built now; cp build.sh value.txt\n"})
    row = register(upstream, build_command="sh build.sh")
    first, second = measure(place, row), measure(place, row)
    assert (first.state, second.state) == ("succeeded", "succeeded")
    assert place.text(first).count("built now") == 2
    assert place.text(second).count("built now") == 1
    assert len(list((place.var_dir / BUILDS_FOLDER).glob("*.tar"))) == 1


@pytest.mark.parametrize(
    ("script", "limit_s", "ended", "words"),
    [
        ("echo no rule to make it >&2; exit 3", 60.0, "build_failed", "exit code 3: no rule to"),
        ("exec /nowhere", 60.0, "build_failed", "exit code 127"),
        ("kill -SEGV $$", 60.0, "build_failed", "exit code -11"),
        ("sleep 600", 1.0, "build_timed_out", "still running after 1.00 s"),
        ("trap '' TERM; sleep 600 & wait; sleep 600", 1.0, "build_timed_out", "still running"),
    ],
)
def test_it_says_why_a_build_failed(
    place: Bench, upstream: Upstream, script: str, limit_s: float, ended: str, words: str
) -> None:
    sha = upstream.commit(**{"build.sh": script})
    row = register(upstream, build_command="sh build.sh", build_limit_s=limit_s)
    run = measure(place, row)
    assert run.failure_kind == ended, run.failure_message
    assert run.state == ("timed_out" if ended == "build_timed_out" else "failed")
    assert words in run.failure_message and sha[:10] in run.failure_message
    assert_invariants(place.var_dir)


def test_it_does_not_hold_the_device_while_it_builds(place: Bench, upstream: Upstream) -> None:
    lock = place.var_dir / "locks" / "cpu.lock"
    upstream.commit(**{"build.sh": f"flock -n {lock} echo free || echo held; touch value.txt\n"})
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    run = measure(place, register(upstream, build_command="sh build.sh"))
    assert "free" in place.text(run).splitlines()


def test_it_gives_a_build_no_secret(place: Bench, upstream: Upstream) -> None:
    place.environment.setenv("SECRET_KEY", "canary-secret")
    place.environment.setenv("BROKER_URL", "redis://:canary@secret")
    upstream.commit(**{"value.txt": "x"})
    run = measure(place, register(upstream, build_command="env"))
    assert "PYTHONPATH=" in place.text(run)
    assert "canary" not in place.text(run)


def test_it_says_that_a_commit_left_the_allowed_branches(place: Bench, upstream: Upstream) -> None:
    upstream.commit()
    upstream.commit()
    row = register(upstream)
    run = queue(row)
    upstream.git("reset", "--quiet", "--hard", "HEAD~1")
    row.wanted_at = row.created_at
    row.save()
    Fetcher(threading.Event()).fetch_due()
    place.duty().handle(run.pk, 1)
    run.refresh_from_db()
    assert failure(run) == ("failed", "outside_refs")
    assert "outside of the branches" in run.failure_message


def test_it_tries_again_while_the_repository_is_away(place: Bench, upstream: Upstream) -> None:
    upstream.commit(**{"value.txt": "x"})
    row = register(upstream)
    run = queue(row)
    remove(place.var_dir / MIRROR_FOLDER)
    upstream.folder.rename(upstream.folder.with_name("away"))
    for attempt in range(1, 4):
        Run.objects.filter(pk=run.pk).update(not_before=run.created_at)
        assert place.duty().handle(run.pk, attempt)
    run.refresh_from_db()
    assert failure(run) == ("lost", "no_repository")
    assert "is no git repository" in run.failure_message


def test_it_removes_trees_whose_folders_are_closed(place: Bench, upstream: Upstream) -> None:
    script = "touch value.txt; mkdir -p closed/inner; touch closed/inner/x; chmod 0 closed\n"
    upstream.commit(**{"build.sh": script})
    run = measure(place, register(upstream, build_command="sh build.sh"))
    assert run.state == "succeeded", run.failure_message
    assert_invariants(place.var_dir)


def test_it_cancels_a_build(place: Bench, upstream: Upstream) -> None:
    upstream.commit(**{"build.sh": "sleep 600"})
    run = queue(register(upstream, build_command="sh build.sh"))
    thread = threading.Thread(target=place.duty().handle, args=(run.pk, 1))
    thread.start()
    wait_for(lambda: Run.objects.get(pk=run.pk).phase == "building")
    Run.objects.filter(pk=run.pk).update(cancel_requested_at=run.created_at)
    thread.join(60)
    assert Run.objects.get(pk=run.pk).state == "cancelled"
    assert_invariants(place.var_dir)


def test_it_cleans_up_after_a_worker_that_was_killed_in_a_build(
    system: System, upstream: Upstream
) -> None:
    upstream.commit(**{"build.sh": "test -e /dev/null && sleep 600"})
    run = queue(register(upstream, build_command="sh build.sh"))
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_for(lambda: Run.objects.get(pk=run.pk).phase == "building")
    system.kill(worker)
    wait_for(lambda: not own_marked(run), limit_s=20)
    Run.objects.filter(pk=run.pk).update(cancel_requested_at=run.created_at)
    system.start_worker()
    wait_for(lambda: Run.objects.get(pk=run.pk).is_terminal)
    assert_invariants(system.var_dir)
