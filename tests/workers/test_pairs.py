"""Two commits, measured pair by pair through real supervisors, to a verdict."""

from __future__ import annotations

import gzip
import shlex
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboard.models import Comparison, Launch, Pair, Repository, Run, Trace
from dashboard.queries.differences import difference_of
from dashboard.services import catalog, comparisons
from dashboard.services.comparisons import NewComparison, create_comparison, extend_comparison
from dashboard.services.repositories import NewRepository, register_repository
from profiler.analysis.ladder import Settings, orders
from profiler.types import RunSpec
from tests.factories import make_user
from tests.profiler.analysis.layered import Layered
from tests.workers.bench import Bench
from tests.workers.repository import Upstream
from tests.workers.system import System, wait_for
from workers.fetch import Fetcher

pytestmark = pytest.mark.fault
SPEC = RunSpec(model="llama-small", scenario="prefill")
PAIR_BENCH = Path(__file__).resolve().parent / "pair_bench.py"
COMMAND = shlex.join([sys.executable, "-B", str(PAIR_BENCH), "{spec}", "{out}"])
SMALL = Settings(rungs=(8,))


@dataclass
class Scene:
    """An upstream with two commits, its row, and a worker in this process."""

    bench: Bench
    upstream: Upstream
    row: Repository

    def commit(self, value: str, **files: str) -> str:
        return self.upstream.commit(f"value {value}", **{"value.txt": value, **files})

    def compare(self, base: str, candidate: str, settings: Settings = SMALL) -> Comparison:
        """Ask for a comparison and give it its commits."""
        made = create_comparison(
            NewComparison(
                repository=self.row,
                baseline=base,
                candidate=candidate,
                platform=catalog.ensure_platform(),
                specs=(SPEC,),
                settings=settings,
                seed=5,
            ),
            make_user(),
        )
        Fetcher(threading.Event()).step()
        made.refresh_from_db()
        return made

    def work(self, limit: int = 5) -> None:
        """Handle what is queued, like a worker that polls."""
        for _ in range(limit):
            waiting = self.bench.duty().next()
            if waiting is None:
                return
            self.bench.duty().handle(*waiting)

    def measured(self, base: str, candidate: str, settings: Settings = SMALL) -> Comparison:
        made = self.compare(base, candidate, settings)
        self.work()
        made.refresh_from_db()
        return made


@pytest.fixture
def scene(bench: Bench, tmp_path: Path) -> Iterator[Scene]:
    bench.environment.setenv("BENCHMARK_COMMAND", COMMAND)
    upstream = Upstream.make(tmp_path / "upstream")
    upstream.commit(**{"value.txt": "1000000"})
    plain = NewRepository(slug="models", address=str(upstream.folder))
    yield Scene(bench=bench, upstream=upstream, row=register_repository(plain, None))


def test_it_tells_a_faster_candidate(scene: Scene) -> None:
    made = scene.measured(scene.commit("1000000"), scene.commit("900000"))
    compared = made.workloads.get()
    assert (made.state, compared.verdict) == ("ended", "faster"), compared.sentence
    assert compared.effect == pytest.approx(-0.1, abs=0.005)
    assert Pair.objects.count() == 8 and Launch.objects.count() == 16
    assert_sessions_left_nothing(scene)


def assert_sessions_left_nothing(scene: Scene) -> None:
    for run in Run.objects.all():
        assert run.is_terminal and not hasattr(run, "result")
    assert not list((scene.bench.var_dir / "spool").glob("run-*"))


@pytest.mark.parametrize(("value", "verdict"), [("1100000", "slower"), ("1000000", "no change")])
def test_it_tells_slower_and_no_change(scene: Scene, value: str, verdict: str) -> None:
    made = scene.measured(scene.commit("1000000"), scene.commit(value, other="x"))
    assert made.workloads.get().verdict == verdict


def test_it_measures_in_the_order_of_the_seed(scene: Scene, tmp_path: Path) -> None:
    scene.bench.environment.setenv("FAKE_BENCH_MARKS", str(tmp_path / "marks"))
    scene.measured(scene.commit("1000000"), scene.commit("900000"))
    sides = [line.split()[0] for line in (tmp_path / "marks").read_text().splitlines()]
    wanted = {"AB": ["baseline", "candidate"], "BA": ["candidate", "baseline"]}
    assert sides[:16] == [side for order in orders(5, 8) for side in wanted[order]]


def test_it_records_one_profiled_launch_per_side(scene: Scene) -> None:
    made = scene.measured(scene.commit("1000000"), scene.commit("900000"))
    compared = made.workloads.get()
    traces = {compared.baseline_trace, compared.candidate_trace}
    assert None not in traces and traces == set(Trace.objects.all())


def test_it_counts_the_pairs_of_a_candidate_that_crashes(scene: Scene) -> None:
    made = scene.measured(scene.commit("1000000"), scene.commit("crash"))
    compared = made.workloads.get()
    assert (made.state, compared.verdict) == ("ended", "not comparable")
    assert "the candidate produced no result in any of 3 pairs" in compared.sentence
    failed = Launch.objects.filter(failure_kind="crashed")
    assert failed.count() == 3
    assert "the kernel launch failed" in failed[0].message


def test_it_gives_no_verdict_across_environments(scene: Scene) -> None:
    base = scene.commit("1000000")
    made = scene.measured(base, scene.commit("900000", **{"environment.txt": "d"}))
    compared = made.workloads.get()
    assert compared.verdict == "not comparable"
    assert "the environments of the launches differ in torch" in compared.sentence
    assert compared.effect is None


def test_it_climbs_the_ladder_in_one_reservation_while_it_is_unsure(scene: Scene) -> None:
    settings = Settings(rungs=(6, 10), margin=0.0005)
    made = scene.measured(scene.commit("1000000"), scene.commit("1000300"), settings)
    assert Pair.objects.count() == 10
    assert (made.state, Run.objects.count()) == ("ended", 1)


def test_it_can_measure_more_pairs_later(scene: Scene) -> None:
    made = scene.measured(scene.commit("1000000"), scene.commit("900000"))
    extend_comparison(made.pk, 4, None)
    scene.work()
    made.refresh_from_db()
    assert (made.state, Pair.objects.count()) == ("ended", 12)
    assert [pair.order for pair in Pair.objects.order_by("number")] == list(orders(5, 12))


def test_it_says_which_side_does_not_build(scene: Scene) -> None:
    Repository.objects.update(build_command="sh build.sh")
    base = scene.commit("1000000", **{"build.sh": "true"})
    made = scene.measured(base, scene.commit("900000", **{"build.sh": "exit 3"}))
    assert (made.state, made.failure_kind) == ("failed", "build_failed")
    assert made.message.startswith("The candidate: The build of ")


@pytest.mark.parametrize(
    ("base", "kind", "words"),
    [("nowhere", "unknown_commit", "nowhere"), ("0" * 40, "unknown_commit", "0" * 40)],
)
def test_it_says_which_commit_is_unknown(scene: Scene, base: str, kind: str, words: str) -> None:
    made = scene.compare(base, "main")
    assert (made.state, made.failure_kind) == ("failed", kind)
    assert words in made.message


def test_it_says_that_the_repository_is_away(scene: Scene) -> None:
    scene.upstream.folder.rename(scene.upstream.folder.with_name("away"))
    made = scene.compare("main", "HEAD")
    assert (made.state, made.failure_kind) == ("failed", "no_repository")


def test_it_resolves_a_branch_once(scene: Scene) -> None:
    first = scene.commit("1000000")
    made = scene.compare("main", "HEAD")
    scene.commit("900000")
    Fetcher(threading.Event()).step()
    made.refresh_from_db()
    assert made.candidate is not None and made.candidate.sha == first


def test_it_cancels_what_waits(scene: Scene) -> None:
    made = scene.compare("main", "HEAD")
    comparisons.cancel_comparison(made.pk, make_user())
    made.refresh_from_db()
    assert made.state == "cancelled"
    assert not Run.objects.filter(state="queued").exists()


def test_it_goes_on_with_the_pair_that_a_killed_worker_had_reached(
    system: System, tmp_path: Path
) -> None:
    upstream = Upstream.make(tmp_path / "upstream")
    base = upstream.commit(**{"value.txt": "1000000"})
    candidate = upstream.commit(**{"value.txt": "900000"})
    row = register_repository(NewRepository(slug="models", address=str(upstream.folder)), None)
    system.variables["BENCHMARK_COMMAND"] = COMMAND
    system.variables["FAKE_BENCH_MARKS"] = str(tmp_path / "marks")
    wanted = NewComparison(
        repository=row,
        baseline=base,
        candidate=candidate,
        platform=catalog.ensure_platform(),
        specs=(SPEC,),
        settings=Settings(rungs=(8,)),
    )
    made = create_comparison(wanted, None)
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_for(lambda: Launch.objects.count() >= 3)
    system.kill(worker)
    reached = set(Launch.objects.values_list("pk", flat=True))
    system.start_worker()
    wait_for(lambda: Comparison.objects.get(pk=made.pk).is_terminal)
    assert made.workloads.get().verdict == "faster", system.logs()
    assert len(reached & set(Launch.objects.values_list("pk", flat=True))) >= 2
    assert Launch.objects.count() == 16
    wait_for(lambda: not list((system.var_dir / "spool").glob("run-*")), limit_s=20)


def test_it_keeps_what_the_profiled_launches_differ_in(scene: Scene, tmp_path: Path) -> None:
    fused = Layered(operators=("aten::linear>aten::addmm", "my::fused"))
    for side, made in (("baseline", Layered()), ("candidate", fused)):
        trace = made.build().write(tmp_path / f"{side}.json")
        (tmp_path / f"{side}.gz").write_bytes(gzip.compress(trace.read_bytes()))
    scene.bench.environment.setenv("FAKE_BENCH_TRACES", str(tmp_path))
    made_row = scene.measured(scene.commit("1000000"), scene.commit("900000"))
    found = difference_of(made_row.workloads.get())
    assert found is not None
    assert any("fused" in row.operator for row in found.diff.rows)


def test_a_trace_that_cannot_be_read_costs_no_verdict(scene: Scene) -> None:
    made = scene.measured(scene.commit("1000000"), scene.commit("900000"))
    compared = made.workloads.get()
    assert (compared.verdict, compared.difference) == ("faster", None)
