"""A worker's side of a comparison: what a session measures, rung by rung, told once or twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.models import ComparedWorkload, Run, Trace
from dashboard.services import lifecycle, pairs
from dashboard.services.clock import db_now
from dashboard.services.contract import Claim, Launched, Session, StoredFile, SupersededError
from profiler import spec as specs
from tests.dashboard.services import scene
from tests.factories import make_platform, store_artifact
from tests.sources import make_comparison, make_pair

pytestmark = pytest.mark.django_db
RUNGS = [8, 12]
UNSURE = (9e5, 11e5)
"""Values of candidates that leave it open which side is faster."""


@pytest.fixture
def compared() -> ComparedWorkload:
    made = make_comparison(rungs=RUNGS, platform=make_platform("cpu")).workloads.get()
    made.pairs_wanted = RUNGS[0]
    made.save()
    return made


def claimed(compared: ComparedWorkload) -> Claim:
    run = pairs.queue_session(compared, db_now())
    claim = lifecycle.claim_run(run.pk, 1, scene.WORKER)
    assert claim is not None
    return claim


def session_of(compared: ComparedWorkload) -> Session:
    session = claimed(compared).session
    assert session is not None
    return session


def measure(compared: ComparedWorkload, count: int, *candidates: float) -> None:
    for number in range(count):
        make_pair(compared, 1e6, candidates[number % len(candidates)])


def recorded(folder: Path, content: bytes, side: str = "baseline") -> Launched:
    path = folder / "trace.json.gz"
    path.write_bytes(content)
    file = StoredFile(name="trace.json.gz", path=path)
    return Launched(pair=None, side=side, took_ns=1, files=(file,))


def test_it_climbs_while_the_verdict_is_open(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    measure(compared, 8, *UNSURE)
    rung = pairs.climb(claim.run_id, claim.fence)
    assert [pair.number for pair in rung.pairs] == [8, 9, 10, 11]
    assert rung.total == 12


def test_it_answers_the_same_when_it_is_asked_again(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    measure(compared, 8, *UNSURE)
    first = pairs.climb(claim.run_id, claim.fence)
    assert pairs.climb(claim.run_id, claim.fence) == first


def test_it_stops_where_the_ladder_ends(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    measure(compared, 8, *UNSURE)
    pairs.climb(claim.run_id, claim.fence)
    measure(compared, 4, *UNSURE)
    assert pairs.climb(claim.run_id, claim.fence).pairs == ()


def test_it_stops_at_a_verdict(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    measure(compared, 8, 9e5, 9.01e5)
    rung = pairs.climb(claim.run_id, claim.fence)
    assert (rung.pairs, rung.total) == ((), 8)


def test_it_answers_no_session_that_was_replaced(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    with pytest.raises(SupersededError):
        pairs.climb(claim.run_id, claim.fence + 1)


def test_it_goes_on_at_the_rung_that_was_reached(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    measure(compared, 8, *UNSURE)
    pairs.climb(claim.run_id, claim.fence)
    compared.refresh_from_db()
    make_pair(compared, 1e6, 1e6).launches.filter(side="candidate").delete()
    session = session_of(compared)
    assert [pair.number for pair in session.pairs] == [8, 9, 10, 11]
    assert (session.done, session.total, session.most) == (8, 12, 12)


def test_it_allows_time_for_the_whole_ladder(compared: ComparedWorkload) -> None:
    claim = claimed(compared)
    run = Run.objects.select_related("compared__comparison__repository").get(pk=claim.run_id)
    launches = 2 * RUNGS[-1] + 2
    assert pairs.longest_s(run) == launches * run.limit_s + 2 * 60.0


def test_it_records_until_the_reasons_are_known(compared: ComparedWorkload) -> None:
    assert session_of(compared).profiled_steps == pairs.PROFILED_STEPS
    compared.difference = store_artifact(b"known")
    compared.save()
    assert session_of(compared).profiled_steps == 0


def test_it_times_no_operators_alone(compared: ComparedWorkload) -> None:
    compared.spec |= {"micro": 5, "profiled_steps": 3}
    compared.save()
    spec = specs.parse(claimed(compared).spec)
    assert (spec.micro, spec.profiled_steps) == (0, 0)


def test_it_keeps_a_recording_once_however_often_it_is_told(
    compared: ComparedWorkload, tmp_path: Path
) -> None:
    claim = claimed(compared)
    for _ in range(2):
        pairs.store_launch(claim.run_id, claim.fence, recorded(tmp_path, b"one"))
    assert Trace.objects.count() == 1


def test_it_replaces_what_an_earlier_session_recorded(
    compared: ComparedWorkload, tmp_path: Path
) -> None:
    claim = claimed(compared)
    for content in (b"one", b"other"):
        pairs.store_launch(claim.run_id, claim.fence, recorded(tmp_path, content))
    compared.refresh_from_db()
    assert Trace.objects.get() == compared.baseline_trace
