"""The file of collectives: what comes back is what went in, and damage is a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.calls import dump_calls, load_calls
from profiler.analysis.collectives import Calls
from profiler.errors import TraceError


def calls(count: int) -> Calls:
    numbers = np.arange(count, dtype=np.int64)
    return Calls(
        kind=["all_reduce" if n % 2 else "broadcast" for n in range(count)],
        group=numbers - 1,
        size=numbers + 2,
        payload=numbers * 4,
        ts=numbers * 1000 + 2**60,
        dur=numbers + 7,
        exposed=numbers,
    )


def test_it_reads_back_what_it_wrote() -> None:
    written = calls(5)
    read = load_calls(dump_calls(written))
    assert read.kind == written.kind
    for name in ("group", "size", "payload", "ts", "dur", "exposed"):
        np.testing.assert_array_equal(getattr(read, name), getattr(written, name))


def test_it_reads_no_more_than_asked_for() -> None:
    read = load_calls(dump_calls(calls(9)), most=4)
    assert (len(read.kind), len(read.ts)) == (4, 4)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        dump_calls(calls(3)).replace(b'"kind":[1', b'"kind":[9'),
        dump_calls(calls(3)).replace(b"[7,", b"["),
    ],
)
def test_it_says_that_a_file_is_damaged(data: bytes) -> None:
    with pytest.raises(TraceError, match="damaged"):
        load_calls(data)
