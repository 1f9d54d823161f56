"""Where a difference comes from: the page of one workload, its figures and its table."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.figures.diff_flame import FlameWish, flame_view
from dashboard.figures.waterfall import waterfall_view
from dashboard.queries.differences import difference_of, get_compared
from dashboard.services.difference import Difference
from profiler.analysis.diffflame import DiffFlame, DiffFrame
from profiler.analysis.waterfall import Bar, Waterfall
from tests.factories import store_artifact
from tests.sources import make_comparison, make_explained, make_pair


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def bar(name: str, change: int, kind: str = "operator") -> Bar:
    return Bar(kind=kind, name=name, baseline_ns=0, candidate_ns=change, change_ns=change)


def frame(name: str, baseline: int, candidate: int, parent: int = -1) -> DiffFrame:
    return DiffFrame(
        parent=parent,
        name=name,
        baseline_ns=baseline,
        candidate_ns=candidate,
        baseline_self_ns=baseline,
        candidate_self_ns=candidate,
    )


def flame(*frames: DiffFrame, vanished: tuple[int, ...] = ()) -> DiffFlame:
    return DiffFlame(
        measure="device",
        frames=frames,
        vanished=vanished,
        appeared=(),
        baseline_ns=100,
        candidate_ns=90,
        unmatched=(0.1, 0.0),
        without_frames=(0, 0),
        merged=0,
    )


TREE = flame(
    frame("model", 100, 90),
    frame("mlp", 60, 40, 0),
    frame("attention", 30, 50, 0),
    frame("gone", 10, 0, 0),
    frame("inner", 50, 35, 1),
    vanished=(3,),
)


def test_it_places_each_bar_where_the_last_ended() -> None:
    found = Waterfall(
        baseline_ns=1000, candidate_ns=900, bars=(bar("a", -300), bar("b", 200), bar("c", 0))
    )
    view = waterfall_view(found)
    first, a, b, _, last = view.rows
    assert a.left + a.width == pytest.approx(first.left + first.width)
    assert b.left == pytest.approx(a.left)
    assert b.left + b.width == pytest.approx(last.left + last.width)
    assert [row.kind for row in view.rows] == ["baseline", "less", "more", "same", "candidate"]
    assert 0 < view.from_ns < 700 and last.width < 100


@pytest.mark.parametrize("level", [0, 1, 10**12])
def test_its_waterfall_stands_without_a_difference(level: int) -> None:
    view = waterfall_view(Waterfall(baseline_ns=level, candidate_ns=level, bars=()))
    assert [row.name for row in view.rows] == ["baseline", "candidate"]
    assert all(0 <= row.left <= 100 and row.width <= 100 for row in view.rows)


def test_its_boxes_are_as_wide_as_the_side_that_is_chosen() -> None:
    wide = {side: flame_view(TREE, FlameWish(side=side)) for side in ("candidate", "baseline")}
    after = {box.name: box.width for box in wide["candidate"].boxes}
    before = {box.name: box.width for box in wide["baseline"].boxes}
    assert after["mlp"] == pytest.approx(100 * 40 / 90)
    assert before["mlp"] == pytest.approx(60.0)
    assert "gone" in before and "gone" not in after
    assert wide["candidate"].folded == 1


def test_its_colour_is_the_change() -> None:
    colours = {box.name: box.colour for box in flame_view(TREE, FlameWish(side="baseline")).boxes}
    assert colours["mlp"].startswith("less") and colours["attention"].startswith("more")
    assert colours["gone"] == "gone"


def test_it_zooms_into_a_frame() -> None:
    view = flame_view(TREE, FlameWish(root=1))
    assert [(box.name, round(box.width)) for box in view.boxes] == [("mlp", 100), ("inner", 88)]
    assert [name for _, name in view.path] == ["model", "mlp"]


@pytest.mark.parametrize("root", [99, -5])
def test_it_shows_everything_for_a_frame_that_is_not_there(root: int) -> None:
    assert flame_view(TREE, FlameWish(root=root)).root is None


def test_children_never_leave_the_frame_around_them() -> None:
    boxes = {box.at: box for box in flame_view(TREE, FlameWish()).boxes}
    for at, box in boxes.items():
        around = boxes.get(TREE.frames[at].parent)
        if around is not None:
            assert box.left >= around.left - 1e-9
            assert box.left + box.width <= around.left + around.width + 1e-9


@pytest.mark.django_db
def test_it_shows_waterfall_operators_and_frames(viewer_client: Client) -> None:
    made = make_explained(make_comparison())
    make_pair(made.workloads.get())
    page = text(viewer_client, f"/compare/{made.pk}/workloads/0/")
    assert "Where the difference comes from" in page
    assert "my::fused" in page and "my::fused<b>" not in page
    assert re.search(r'<rect class="(new|more\d|less\d|same)"', page)
    assert "Unmatched:" in page and "only in the candidate" in page
    assert f'href="/compare/{made.pk}/workloads/0/"' in text(viewer_client, f"/compare/{made.pk}/")


@pytest.mark.django_db
def test_its_address_holds_the_whole_view(viewer_client: Client) -> None:
    made = make_explained(make_comparison())
    page = text(viewer_client, f"/compare/{made.pk}/workloads/0/?width=baseline&by=share&root=1")
    assert "width is the baseline" in page and "the share of the step" in page
    assert "whole step" in page
    assert re.search(r'href="\?width=baseline&amp;by=share&amp;root=\d+#flame"', page)


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["width=x", "by=x", "root=-1", "root=x", "root=999999"])
def test_it_shows_the_plain_view_for_what_cannot_be(viewer_client: Client, query: str) -> None:
    made = make_explained(make_comparison())
    assert "width is the candidate" in text(
        viewer_client, f"/compare/{made.pk}/workloads/0/?{query}"
    )


@pytest.mark.django_db
def test_it_says_that_nothing_was_recorded(viewer_client: Client) -> None:
    made = make_comparison()
    page = text(viewer_client, f"/compare/{made.pk}/workloads/0/")
    assert "The profiled launches were not compared" in page
    assert viewer_client.get(f"/compare/{made.pk}/workloads/7/").status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("data", [b"no gzip", b"\x1f\x8b\x08\x00truncated", b""])
def test_it_says_that_a_difference_is_damaged(viewer_client: Client, data: bytes) -> None:
    made = make_comparison()
    made.workloads.update(difference=store_artifact(data))
    response = viewer_client.get(f"/compare/{made.pk}/workloads/0/")
    assert response.status_code == 410
    assert "cannot be read" in response.content.decode()


@pytest.mark.django_db
def test_its_operators_are_a_csv(viewer_client: Client) -> None:
    made = make_explained(make_comparison())
    response = viewer_client.get(f"/compare/{made.pk}/workloads/0/operators.csv")
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(body)))
    assert {"operator", "change_ns", "baseline_calls"} <= set(rows[0])
    assert any("fused" in row["operator"] for row in rows)


@pytest.mark.django_db
def test_the_stored_bars_add_up_to_the_candidate() -> None:
    made = make_explained(make_comparison())
    compared = get_compared(made.pk, 0)
    assert compared is not None
    report = difference_of(compared)
    assert isinstance(report, Difference)
    total = report.waterfall.baseline_ns + sum(bar.change_ns for bar in report.waterfall.bars)
    assert total == report.waterfall.candidate_ns


@pytest.mark.django_db
def test_it_needs_few_queries(viewer_client: Client) -> None:
    made = make_explained(make_comparison())
    with CaptureQueriesContext(connection) as queries:
        text(viewer_client, f"/compare/{made.pk}/workloads/0/")
    assert len(queries) <= 12
