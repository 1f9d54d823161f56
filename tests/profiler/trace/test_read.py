"""The reader: clocks, containers, layouts, limits."""

from __future__ import annotations

import gzip
import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.errors import TraceError
from profiler.trace.clock import NeedsExactTimes, text_to_ns, to_ns
from profiler.trace.limits import Limits
from profiler.trace.normalise import normalise
from profiler.trace.raw import RawTrace
from profiler.trace.read import read
from tests.profiler.trace.build import TraceBuilder, busy, small

SMALL_BLOCKS = Limits(block_bytes=2048)


def one_event(tmp_path: Path, **fields: object) -> RawTrace:
    made = TraceBuilder()
    made.op("aten::relu", 1.0, 2.0)
    made.events[0] |= fields
    return read(made.write(tmp_path / "one.json"))


@pytest.mark.parametrize(
    ("ts", "ns"),
    [
        (1694128201442995, 1694128201442995000),
        (5121388438957.479, 5121388438957479),
        (4458676522690.655, 4458676522690655),
        ("1736408883688177.930", 1736408883688177930),
        ("7", 7000),
        (8796093022207.999, 8796093022207999),
        (0.0005, 0),
        (0.0015, 2),
    ],
)
def test_it_reads_any_spelling_of_a_time_exactly(tmp_path: Path, ts: object, ns: int) -> None:
    assert one_event(tmp_path, ts=ts).complete.ts.tolist() == [ns]


def test_it_reads_absolute_fractions_that_no_double_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "absolute.json"
    events = '{"ph":"X","name":"a","pid":1,"tid":1,"ts":1736408883688177.931,"dur":0.007}'
    path.write_text('{"traceEvents": [' + events + "]}")
    assert read(path).complete.ts.tolist() == [1736408883688177931]
    assert read(path).complete.dur.tolist() == [7]


@given(st.lists(st.integers(0, 2**43 * 1000 - 1), min_size=1))
def test_it_keeps_every_nanosecond_of_a_float_clock(times_ns: list[int]) -> None:
    assert to_ns([ns / 1000 for ns in times_ns]).tolist() == times_ns


def test_it_asks_for_text_when_floats_lose_digits() -> None:
    with pytest.raises(NeedsExactTimes):
        to_ns([1736408883688177.930])


def test_it_calls_a_word_no_time() -> None:
    assert text_to_ns("soon") == text_to_ns("nan") == text_to_ns("1e400")


def test_it_counts_events_without_a_usable_time(tmp_path: Path) -> None:
    assert one_event(tmp_path, dur=None).dropped == {"no usable time": 1}


def same(one: RawTrace, other: RawTrace) -> bool:
    """Equal events, whatever numbers their strings have."""
    names = [[raw.strings[n] for n in raw.complete.name.tolist()] for raw in (one, other)]
    columns = ("ts", "dur", "correlation", "external_id")
    equal = [np.array_equal(getattr(one.complete, c), getattr(other.complete, c)) for c in columns]
    return names[0] == names[1] and all(equal) and one.events == other.events


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_it_reads_the_same_in_small_blocks(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(busy().data(), indent=indent))
    assert same(read(path, SMALL_BLOCKS), read(path))


def test_it_reads_the_same_with_helper_processes(tmp_path: Path) -> None:
    path = busy().write(tmp_path / "t.json.gz")
    shared = read(path, Limits(block_bytes=4096, processes=3))
    alone = read(path, Limits(processes=1))
    assert same(shared, alone)
    assert shared.sha256 == alone.sha256


def test_it_decodes_itself_what_a_dead_helper_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = busy().write(tmp_path / "t.json")
    monkeypatch.setattr("profiler.trace.helpers._PROGRAM", "raise SystemExit(9)")
    assert same(read(path, Limits(block_bytes=4096, processes=2)), read(path))


@settings(max_examples=25)
@given(st.lists(st.integers(0, 20_000), max_size=5))
def test_it_reads_gzip_members_like_one_stream(cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_members(Path(folder), cuts)


def check_members(folder: Path, cuts: list[int]) -> None:
    text = json.dumps(small().data()).encode()
    edges = sorted({0, len(text), *(cut % len(text) for cut in cuts)})
    members = b"".join(gzip.compress(text[a:b]) for a, b in itertools.pairwise(edges))
    path = folder / "members.json.gz"
    path.write_bytes(members)
    whole = path.with_suffix(".json")
    whole.write_bytes(text)
    assert same(read(path), read(whole))


def test_it_reads_a_list_and_keys_behind_the_events(tmp_path: Path) -> None:
    made = small().data()
    (tmp_path / "list.json").write_text(json.dumps(made["traceEvents"]))
    tail = {"traceEvents": made["traceEvents"], "deviceProperties": [{"id": 0, "name": "A"}] * 4}
    tail["baseTimeNanoseconds"] = 12
    (tmp_path / "tail.json").write_text(json.dumps(tail))
    assert same(read(tmp_path / "list.json"), read(tmp_path / "tail.json"))
    assert read(tmp_path / "tail.json", SMALL_BLOCKS).header.base_ns == 12
    assert read(tmp_path / "tail.json").header.device_names == ["A"] * 4


def test_it_pairs_begin_and_end_events(tmp_path: Path) -> None:
    path = tmp_path / "be.json"
    rows = [("B", "outer", 1), ("B", "inner", 2), ("E", "", 3), ("B", "next", 3), ("E", "", 4)]
    rows += [("E", "", 9), ("E", "", 10)]
    events = [{"ph": p, "name": n, "pid": 1, "tid": 1, "ts": t} for p, n, t in rows]
    path.write_text(json.dumps({"traceEvents": events}))
    trace = normalise(read(path))
    names = [trace.strings[n] for n in trace.events.name.tolist()]
    spans = zip(names, trace.events.ts.tolist(), trace.events.dur.tolist(), strict=True)
    assert sorted(spans) == [("inner", 2000, 1000), ("next", 3000, 1000), ("outer", 1000, 8000)]
    assert trace.quality.dropped == {"end without begin": 1}


def test_it_keeps_ids_beyond_64_bits_apart(tmp_path: Path) -> None:
    made = TraceBuilder()
    for n in range(2):
        made.kernel("k", 1.0 + n, 1.0, correlation=2**70 + n)
    ids = read(made.write(tmp_path / "t.json")).complete.correlation
    assert len(set(ids.tolist())) == 2


def test_it_survives_arguments_of_any_type_and_depth(tmp_path: Path) -> None:
    deep: object = 1
    for _ in range(800):
        deep = [deep]
    raw = one_event(tmp_path, args={"External id": [1], "Sequence number": True, "x": deep})
    assert raw.events == 1


def test_it_cuts_endless_names_and_counts_them(tmp_path: Path) -> None:
    raw = one_event(tmp_path, name="x" * 20_000)
    assert raw.repaired == {"name cut to its limit": 1}
    assert max(map(len, raw.strings)) == 16_384


def test_it_keeps_names_of_five_thousand_characters(tmp_path: Path) -> None:
    assert "y" * 5123 in one_event(tmp_path, name="y" * 5123).strings


def test_it_joins_objects_nested_in_arguments(tmp_path: Path) -> None:
    made = small()
    made.events[3]["args"] = {"External id": 3, "parts": [{"name": "a"}, {"name": "b"}]}
    path = made.write(tmp_path / "t.json")
    text = path.read_text().replace('"dur": 20', '"dur": NaN', 1)
    path.write_text(text)
    raw = read(path)
    assert raw.events == len(made.events)


REFUSED = [
    (b"", Limits(), "empty"),
    (b"not json", Limits(), "not JSON"),
    (b"{}", Limits(), "no traceEvents"),
    (b'{"traceEvents": []}', Limits(), "no events"),
    (b'{"traceEvents": [{"ph": "M"}]}', Limits(events=0), "more than 0 events"),
    (b"[" + b" " * 4096 + b"]", Limits(inflated_bytes=1024), "of text"),
    ("\ufeff[]".encode("utf-16-le"), Limits(), "UTF-16"),
    (b"\x28\xb5\x2f\xfd", Limits(), "zstd"),
    (b'[{"name": "' + b"x" * 3_000_000, Limits(block_bytes=4096, event_bytes=4096), "single event"),
    (gzip.compress(b"[" * 40_000_000), Limits(ratio_after_bytes=1 << 20), "bomb"),
]


@pytest.mark.parametrize(("content", "limits", "words"), REFUSED)
def test_it_refuses_in_one_line(tmp_path: Path, content: bytes, limits: Limits, words: str) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(TraceError) as caught:
        read(tmp_path / "bad.json", limits)
    assert words in caught.value.line()


def test_it_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        read(tmp_path / "none.json")


def test_it_keeps_events_before_damage_in_gzip(tmp_path: Path) -> None:
    text = json.dumps(busy(30).data()).encode()
    stored = bytearray(gzip.compress(text))
    stored[len(stored) * 3 // 4] ^= 0xFF
    (tmp_path / "t.json.gz").write_bytes(bytes(stored))
    raw = read(tmp_path / "t.json.gz")
    assert 0 < raw.events < len(busy(30).events)
    assert any("damaged" in text for text in raw.warnings)
