"""Output of any kind and any amount becomes a short printable log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.capture import LINE_LIMIT_BYTES, Log, Stream, printable_text

HOSTILE = st.lists(
    st.sampled_from([b"\x1b[31m", b"\x1b]0;x\x07", b"\x00", b"\xff", b"\r", b"\n", b"\x9b", b"a"])
).map(b"".join)


@given(st.one_of(st.binary(max_size=200), HOSTILE))
def test_it_leaves_nothing_that_drives_a_terminal(raw: bytes) -> None:
    text = printable_text(raw)
    assert all(c in "\n\t" or (ord(c) >= 32 and not 127 <= ord(c) < 160) for c in text)
    text.encode()


@given(st.text(alphabet="abc äé漢\n\t", max_size=200))
def test_it_leaves_ordinary_text_alone(text: str) -> None:
    assert printable_text(text.encode()) == text


def test_it_cuts_long_lines_and_says_by_how_much() -> None:
    text = printable_text(b"x" * (LINE_LIMIT_BYTES + 7) + b"\nshort")
    assert text.endswith("x [7 characters of it cut]\nshort")


def test_it_shows_a_progress_bar_line_by_line() -> None:
    assert printable_text(b"10%\r20%\r\nend") == "10%\n20%\nend"


def test_it_keeps_everything_below_the_limit(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.txt", limit_bytes=100)
    for number in range(20):
        log.write(b"%04d\n" % number)
    assert log.finish().read_text() == "".join(f"{number:04d}\n" for number in range(20))


def test_it_keeps_head_and_tail_above_the_limit(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.txt", limit_bytes=1000)
    for number in range(2000):
        log.write(b"%04d\n" % number)
    text = log.finish().read_text()
    assert text.startswith("0000\n")
    assert text.endswith("1999\n")
    assert f"{log.cut_bytes:,} bytes of output cut here" in text
    assert 0 <= 10_000 - log.cut_bytes - 1000 <= 5


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=60))
def test_it_accounts_for_every_byte(pieces: list[bytes]) -> None:
    log = Log(Path(os.environ.get("TMPDIR", "/tmp")) / f"log-{os.getpid()}", limit_bytes=200)
    for piece in pieces:
        log.write(piece)
    held = sum(map(len, log._tail)) + log._head_path.stat().st_size
    log.finish().unlink()
    assert held + log.cut_bytes == sum(map(len, pieces))
    assert held <= 200 + 50


def stream_of(tmp_path: Path, *, progress: bool) -> tuple[Stream, int, Log]:
    reader, writer = os.pipe()
    log = Log(tmp_path / "log.txt")
    return Stream(reader, log, progress=progress), writer, log


def test_it_takes_progress_out_of_the_log(tmp_path: Path) -> None:
    stream, writer, log = stream_of(tmp_path, progress=True)
    os.write(writer, b'one\n{"event":"progress","phase":"timed","step":2,"steps":9}\n{"a":1}\ntw')
    os.close(writer)
    assert stream.read()
    assert not stream.read()
    assert stream.latest is not None
    assert (stream.latest.phase, stream.latest.step, stream.latest.steps) == ("timed", 2, 9)
    assert log.finish().read_text() == 'one\n{"a":1}\ntw'


@pytest.mark.parametrize("line", [b'{"event":"progress"}\n', b'{"phase":"\xff"}\n', b"{{{\n"])
def test_it_logs_lines_that_only_look_like_progress(tmp_path: Path, line: bytes) -> None:
    stream, writer, log = stream_of(tmp_path, progress=True)
    os.write(writer, line)
    stream.read()
    os.close(writer)
    assert stream.latest is None
    assert log.finish().read_text() == printable_text(line)
