"""Questions to stored steps get the answers that the steps in memory give."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.findings import scene_of, what_if
from profiler.analysis.findings.ranking import measured_path
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.stored import Replayed, pack, replayed, unpack
from profiler.analysis.findings.what_if import WhatIf, price
from profiler.analysis.ingest import analyse, ingest
from profiler.analysis.questions import (
    ALLOWED,
    CHANGES,
    SUBJECTS,
    Question,
    answer,
    parse_question,
    request_of,
)
from profiler.analysis.questions import what_if as asked
from profiler.analysis.replay.change import Change
from profiler.analysis.replay.schedule import spans_ns
from profiler.errors import TraceError, UserError
from tests.profiler.analysis.findings import planted as plant
from tests.profiler.analysis.findings.program import Case, Size
from tests.profiler.trace.build import busy
from tests.profiler.trace.shared import TRACES, golden_names, needs_traces

CASE = Case("", "", Size(layers=3, tokens=512), plant.slow_mm(3.0))
GRAPH = Case("", "", Size(layers=3, tokens=512), whole=plant.graph_replay)
FORM = {"change": "faster", "subject": "operator", "name": "aten::mm", "times": "3"}


def scene(case: Case = CASE) -> Scene:
    made = scene_of(*case.recorded())
    assert made is not None
    return made


def stored(of: Scene) -> Replayed:
    return unpack(pack(replayed(of, measured_path(of.graph))))


@pytest.mark.parametrize("factor", [0, 0.5, 2])
@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("operator", "aten::mm"),
        ("module", "layers.*.mlp"),
        ("module", "layers.1.attention"),
        ("kernel", "kernel_mm"),
        ("host_of_operator", "aten::mm"),
        ("host_of_module", "layers.*.mlp"),
    ],
)
def test_it_answers_as_the_steps_in_memory_do(target: str, name: str, factor: float) -> None:
    request = WhatIf(target=target, name=name, factor=factor)  # type: ignore[arg-type]
    made = scene()
    assert price(stored(made), request) == what_if(made, request)


def test_it_keeps_how_sure_an_answer_is() -> None:
    made = scene(GRAPH)
    found = price(stored(made), WhatIf(target="kernel", name="gemm", factor=0.5))
    assert found.confidence == "low"
    assert found == what_if(made, WhatIf(target="kernel", name="gemm", factor=0.5))


@needs_traces
@pytest.mark.parametrize("name", golden_names())
def test_stored_steps_of_real_traces_replay_to_the_nanosecond(name: str) -> None:
    found = analyse(TRACES / f"{name}.json.gz")
    if found.scene is None:
        assert found.report.pricing is None
        return
    kept = stored(found.scene)
    assert spans_ns(kept.graph, [Change("")]) == [found.scene.graph.span_ns]


def test_it_is_stored_at_ingest_and_asked_by_path(tmp_path: Path) -> None:
    report = ingest([busy().write(tmp_path / "t.json")], tmp_path / "out")
    question = Question(change="faster", subject="operator", name="aten::addmm", times=4)
    found = asked(tmp_path / "out" / "replay.bin", question)
    assert report.pricing is not None
    assert found.step_ns + found.gain_ns_per_step == report.pricing.step_ns
    assert found.calls == 36


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\xff\xfe", b'{"schema": 9}\n'])
def test_it_refuses_a_damaged_file(content: bytes) -> None:
    with pytest.raises(TraceError, match="damaged"):
        unpack(content)


def test_it_refuses_a_file_that_was_cut(tmp_path: Path) -> None:
    whole = pack(replayed(scene(), measured_path(scene().graph)))
    with pytest.raises(TraceError, match="damaged"):
        unpack(whole[:-10])
    with pytest.raises(UserError, match="cannot be read"):
        asked(tmp_path / "absent", parse_question(FORM))


def test_it_reads_a_question() -> None:
    found = parse_question(FORM | {"times": " 2,5"})
    assert found == Question(change="faster", subject="operator", name="aten::mm", times=2.5)
    assert request_of(found) == WhatIf(target="operator", name="aten::mm", factor=0.4)


@pytest.mark.parametrize(("change", "subject"), [(c, s) for c in CHANGES for s in SUBJECTS])
def test_it_asks_only_what_makes_sense(change: str, subject: str) -> None:
    fields = FORM | {"change": change, "subject": subject}
    if subject in ALLOWED[change]:  # type: ignore[index]
        assert parse_question(fields).subject == subject
        return
    with pytest.raises(UserError, match="cannot be asked"):
        parse_question(fields)


@pytest.mark.parametrize(
    "wrong",
    [
        {"change": "__class__"},
        {"subject": "host_of_operator"},
        {"name": "  "},
        {"name": "x" * 501},
        {"times": "0"},
        {"times": "-2"},
        {"times": "nan"},
        {"times": "inf"},
        {"times": "1e9"},
        {"times": "two"},
    ],
)
def test_it_refuses_other_values_in_one_line(wrong: dict[str, str]) -> None:
    with pytest.raises(UserError):
        parse_question(FORM | wrong)


def test_several_questions_are_answered_together() -> None:
    kept = stored(scene())
    one = parse_question(FORM)
    both = answer(kept, one, Question(change="no_host", subject="operator", name="aten::mm"))
    assert both.gain_ns_per_step >= answer(kept, one).gain_ns_per_step
