"""The speedscope file: valid by the format's rules, bounded, and saying what was cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from profiler.analysis import speedscope
from profiler.analysis.analyse import flame_of
from profiler.analysis.ingest import analyse, ingest
from profiler.cli import main
from tests.profiler.trace.build import TraceBuilder, busy, small

Document = dict[str, Any]


def document(tmp_path: Path, made: TraceBuilder) -> Document:
    loaded: Document = json.loads(flame_of(analyse(made.write(tmp_path / "t.json"))).content)
    return loaded


def stacks(loaded: Document, title: str) -> dict[tuple[str, ...], int]:
    names = [frame["name"] for frame in loaded["shared"]["frames"]]
    (profile,) = [p for p in loaded["profiles"] if p["name"] == title]
    return {
        tuple(names[i] for i in stack): weight
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
    }


def test_it_has_modules_operators_and_calls_on_the_stack(tmp_path: Path) -> None:
    loaded = document(tmp_path, small())
    host = stacks(loaded, "Host self time")
    assert host["net", "net.fc", "aten::linear"] == 20_000
    assert host["net", "net.fc", "aten::linear", "aten::addmm"] == 30_000
    assert host["(between operators)",] > 0
    device = stacks(loaded, "Device self time")
    path = ("net", "net.fc", "aten::linear", "aten::addmm", "cudaLaunchKernel", "gemm")
    assert device[path] == 51_000


def test_it_puts_backward_work_under_the_module_of_its_forward(tmp_path: Path) -> None:
    device = stacks(document(tmp_path, busy()), "Device self time")
    backward = [path for path in device if "gemm_grad" in path]
    assert {path[0] for path in backward} == {f"model.layers.{n}" for n in range(12)}


def test_it_weighs_what_the_report_says(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "t.json")
    report = ingest([path], None)
    loaded = json.loads(flame_of(analyse(path)).content)
    total = sum(stacks(loaded, "Device self time").values())
    assert total == sum(row.total_ns for row in report.streams)


def test_it_keeps_the_rules_of_the_format(tmp_path: Path) -> None:
    loaded = document(tmp_path, busy())
    assert loaded["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = len(loaded["shared"]["frames"])
    for profile in loaded["profiles"]:
        assert profile["unit"] == "nanoseconds"
        check_sampled(profile, frames) if profile["type"] == "sampled" else check_evented(profile)


SCHEMA = Path(__file__).parents[3] / "static/vendor/speedscope/file-format-schema.json"
TYPES = {
    "string": str,
    "number": int | float,
    "array": list,
    "object": dict,
}


def fits(value: object, rule: Document, known: Document) -> bool:
    """Whether a value keeps to a rule, for the part of JSON Schema the format is written in."""
    assert rule.keys() <= KEYWORDS, f"the schema uses {rule.keys() - KEYWORDS}"
    if "$ref" in rule:
        return fits(value, known[rule["$ref"].rpartition("/")[2]], known)
    if "anyOf" in rule:
        return any(fits(value, one, known) for one in rule["anyOf"])
    if value != rule.get("const", value) or value not in rule.get("enum", [value]):
        return False
    if not isinstance(value, TYPES[rule["type"]]):
        return False
    if isinstance(value, list):
        return all(fits(one, rule["items"], known) for one in value)
    return not isinstance(value, dict) or (
        value.keys() >= set(rule.get("required", ()))
        and all(fits(value[k], r, known) for k, r in rule["properties"].items() if k in value)
    )


KEYWORDS = {"$ref", "anyOf", "const", "enum", "items", "properties", "required", "title", "type"}


def test_it_keeps_to_the_schema_of_the_viewer(tmp_path: Path) -> None:
    schema = json.loads(SCHEMA.read_text())
    loaded = document(tmp_path, busy())
    assert {profile["type"] for profile in loaded["profiles"]} == {"sampled", "evented"}
    assert fits(loaded, {"$ref": schema["$ref"]}, schema["definitions"])


def test_it_would_notice_what_is_no_document(tmp_path: Path) -> None:
    schema = json.loads(SCHEMA.read_text())
    loaded = document(tmp_path, busy())
    loaded["profiles"][-1]["events"][0]["at"] = "soon"
    assert not fits(loaded, {"$ref": schema["$ref"]}, schema["definitions"])


def check_sampled(profile: Document, frames: int) -> None:
    assert len(profile["samples"]) == len(profile["weights"])
    assert profile["endValue"] == sum(profile["weights"])
    assert all(0 <= i < frames for stack in profile["samples"] for i in stack)


def check_evented(profile: Document) -> None:
    times = [event["at"] for event in profile["events"]]
    assert times == sorted(times)
    assert profile["startValue"] <= times[0] and times[-1] <= profile["endValue"]
    stack: list[int] = []
    for event in profile["events"]:
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    assert stack == []


def test_it_cuts_the_smallest_stacks_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speedscope, "SAMPLE_LIMIT", 10)
    path = busy().write(tmp_path / "t.json")
    report = ingest([path], tmp_path / "out")
    loaded = json.loads(gzip.decompress((tmp_path / "out/flame.speedscope.json.gz").read_bytes()))
    assert sum(len(p.get("samples", [])) for p in loaded["profiles"]) == 10
    assert "cut" in loaded["name"]
    assert any("smallest stacks left out" in text for text in report.quality.warnings)


def test_it_keeps_to_the_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speedscope, "BYTES_LIMIT", 2500)
    flame = flame_of(analyse(busy().write(tmp_path / "t.json")))
    assert len(flame.content) <= 2500
    assert flame.cuts


def test_it_folds_frames_deeper_than_the_limit(tmp_path: Path) -> None:
    made = TraceBuilder()
    for depth in range(700):
        made.op(f"op{depth}", float(depth), 2000.0 - 2 * depth)
    flame = flame_of(analyse(made.write(tmp_path / "t.json")))
    loaded = json.loads(flame.content)
    assert max(map(len, stacks(loaded, "Host self time"))) <= 501
    assert any("deeper" in cut for cut in flame.cuts)


def test_it_writes_equal_files_for_equal_traces(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "t.json")
    assert flame_of(analyse(path)).compressed() == flame_of(analyse(path)).compressed()


@pytest.mark.parametrize("name", ["x.speedscope.json", "x.speedscope.json.gz"])
def test_it_writes_a_file_from_the_command_line(tmp_path: Path, name: str) -> None:
    path = small().write(tmp_path / "t.json")
    assert main(["flame", str(path), "-o", str(tmp_path / name)]) == 0
    raw = (tmp_path / name).read_bytes()
    assert json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)["profiles"]


def test_it_shows_every_queue_of_a_device_in_the_order_of_time(tmp_path: Path) -> None:
    made = small()
    made.kernel("beside", 1030, 30, correlation=10, stream=7)
    made.kernel("other", 1040, 5, correlation=10, stream=9)
    loaded = document(tmp_path, made)
    names = [frame["name"] for frame in loaded["shared"]["frames"]]
    queues = {
        profile["name"]: [
            (change["type"], change["at"], names[change["frame"]]) for change in profile["events"]
        ]
        for profile in loaded["profiles"]
        if profile["name"].startswith("Device 0")
    }
    assert queues["Device 0, stream 9"] == [("O", 40_000, "other"), ("C", 45_000, "other")]
    assert queues["Device 0, stream 7"][:4] == [
        ("O", 20_000, "gemm"),
        ("C", 45_500, "gemm"),
        ("O", 80_000, "Memcpy DtoH"),
        ("C", 84_000, "Memcpy DtoH"),
    ]
    assert [c[2] for c in queues["Device 0, stream 7, beside the above (2)"]] == ["beside"] * 2


def test_it_says_how_much_ran_beside_what_it_shows(tmp_path: Path) -> None:
    made = small()
    for _ in range(speedscope.LANES + 3):
        made.kernel("at once", 1500, 10, correlation=10)
    loaded = document(tmp_path, made)
    queues = [p["name"] for p in loaded["profiles"] if p["name"].startswith("Device 0")]
    assert len(queues) == speedscope.LANES
    assert queues[-1].endswith(f"({speedscope.LANES}), 3 more left out")
