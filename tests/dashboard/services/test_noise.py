"""A/A control: equal launches make a group, and its last end stores the noise floor."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest

from dashboard.models import NoiseFloor, Run, RunGroup, RunState
from dashboard.services import lifecycle, noise, runs, sweep
from profiler.errors import SpecError
from tests.dashboard.services import scene
from tests.dashboard.services.scene import Clock

pytestmark = pytest.mark.django_db


def control(launches: int = 4) -> list[Run]:
    return noise.start_control(
        scene.SPEC, launches, platform=scene.platform(), user=scene.user(), key="k"
    )


def finish(run: Run, value: float, folder: Path, environment: str = "c" * 64) -> None:
    """A worker measures `run`; its first token took `value` nanoseconds."""
    claim = lifecycle.claim_run(run.pk, 1, scene.WORKER)
    assert claim is not None
    answer = dataclasses.replace(scene.result(), metrics=(scene.metric(value=value),))
    outcome = scene.succeeded(folder / str(run.pk), answer)
    path = folder / str(run.pk) / "env.json"
    told = dataclasses.replace(scene.ENVIRONMENT, comparable_hash=environment)
    path.write_bytes(msgspec.json.encode(told))
    lifecycle.deliver_run(run.pk, claim.fence, outcome)


def test_it_queues_equal_launches_once_as_a_group() -> None:
    made = control()
    assert [run.pk for run in control()] == [run.pk for run in made]
    group = RunGroup.objects.get()
    assert (group.kind, group.version, group.runs.count()) == ("noise", None, 4)
    assert len({run.spec_hash for run in made}) == 1


@pytest.mark.parametrize("launches", [0, 1, 3, 42])
def test_it_refuses_a_number_that_makes_no_pairs(launches: int) -> None:
    with pytest.raises(SpecError, match=f"launches is {launches}"):
        control(launches)


@pytest.mark.usefixtures("store_root")
def test_it_stores_the_floor_when_the_last_launch_ends(tmp_path: Path, clock: Clock) -> None:
    made = control()
    for run, value in zip(made[:3], (100.0, 101.0, 100.0), strict=True):
        finish(run, value, tmp_path)
        clock.advance(10)
        assert not NoiseFloor.objects.exists()
    finish(made[3], 103.0, tmp_path)
    floor = NoiseFloor.objects.get()
    assert floor.floor == pytest.approx(0.02)
    assert floor.worst == pytest.approx(0.03)
    assert (floor.metric, floor.n, floor.platform.slug) == ("ttft", 4, "cpu")
    assert (floor.workload, floor.comparable_hash) == (made[0].workload, "c" * 64)
    assert floor.measured_at == clock.now


@pytest.mark.usefixtures("store_root")
def test_it_pairs_what_was_measured_when_a_launch_is_cancelled(
    tmp_path: Path, clock: Clock
) -> None:
    made = control()
    for run, value in zip(made[:3], (100.0, 110.0, 500.0), strict=True):
        finish(run, value, tmp_path)
        clock.advance(10)
    runs.cancel_run(made[3].pk, scene.user())
    floor = NoiseFloor.objects.get()
    assert floor.n == 2
    assert floor.floor == pytest.approx(0.1)


@pytest.mark.usefixtures("store_root")
def test_it_leaves_launches_in_another_environment_out(tmp_path: Path, clock: Clock) -> None:
    made = control()
    hashes = ("c", "d", "c", "c")
    for run, value, digest in zip(made, (100.0, 900.0, 105.0, 105.0), hashes, strict=True):
        finish(run, value, tmp_path, digest * 64)
        clock.advance(10)
    floor = NoiseFloor.objects.get()
    assert floor.n == 2
    assert floor.floor == pytest.approx(0.05)


@pytest.mark.usefixtures("store_root")
def test_it_stores_no_floor_of_a_single_launch(tmp_path: Path) -> None:
    made = control(2)
    finish(made[0], 100.0, tmp_path)
    runs.cancel_run(made[1].pk, scene.user())
    assert not NoiseFloor.objects.exists()


def test_it_settles_when_the_server_ends_the_last_launch(clock: Clock) -> None:
    made = control(2)
    for run in made:
        run.refresh_from_db()
        assert sweep.end_run(run, RunState.EXPIRED, "no_worker", "nobody came")  # type: ignore[arg-type]
    assert not NoiseFloor.objects.exists()
    assert not Run.objects.filter(state=RunState.QUEUED).exists()


def test_it_leaves_other_groups_alone(tmp_path: Path) -> None:
    run = scene.queued()
    runs.cancel_run(run.pk, scene.user())
    assert not NoiseFloor.objects.exists()
