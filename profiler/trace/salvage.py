"""Decoding of event text, strict first, then with repairs that each have a public bug behind them.

What strict parsers refuse costs one event here, never a file: blocks are
narrowed down to the event at fault, that event is repaired if a known repair
helps, and dropped and counted otherwise.
"""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from profiler.trace.schema import (
    NO_ARGUMENTS,
    Begin,
    Complete,
    Counter,
    End,
    Event,
    EventLike,
    FlowEnd,
    FlowStart,
    Instant,
    Metadata,
    Unread,
)

BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|id|args|dur|bp|s)"\s*:)')
_BYTE = re.compile(r"trailing characters \(byte (\d+)\)")
_AFTER_ARRAY = re.compile(rb'\s*(?:,\s*(?:"[^"]*"\s*:|\}|$)|\}|$)')
_BARE = re.compile(
    r"(?<=[:\[,])(\s*)(?:-?inf(?:inity)?|-?nan|N/A|None|undefined)(?=\s*[,}\]])", re.I
)
_LONE_BACKSLASH = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_WINDOWS_PATH = re.compile(r'\\(?!["\\])')
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_NAME_VALUE = re.compile(
    r'("name"\s*:\s*")(.*?)("\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|id|args|s|bp)"\s*:|\}\s*$))', re.S
)
_INNER_QUOTE = re.compile(r'(?<!\\)"')
_JOINED = 8

_events = msgspec.json.Decoder(list[Event])
_anything = msgspec.json.Decoder()


@dataclass
class Decoded:
    """Events of one block and what had to be done to get them.

    `tail` is the text after the end of the event array, None while the array
    goes on.
    """

    events: Sequence[EventLike]
    tail: bytes | None = None
    repaired: collections.Counter[str] = field(default_factory=collections.Counter)
    dropped: collections.Counter[str] = field(default_factory=collections.Counter)


def decode_block(framed: memoryview) -> Decoded:
    """All events in `framed`: whole ones joined by commas, perhaps with the file's tail behind.

    The text is in brackets of its own. Raw arguments of the events point into it.
    """
    quick = _strict(framed)
    return quick if quick is not None else _piecewise(bytes(framed[1:-1]))


def _strict(array: bytes | memoryview) -> Decoded | None:
    """The array by the typed decoder, None when it refuses."""
    try:
        return Decoded(_events.decode(array))
    except msgspec.ValidationError:
        return None
    except RecursionError:
        return None
    except msgspec.DecodeError as error:
        found = _BYTE.search(str(error))
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    end = int(found.group(1)) - 1
    if not _AFTER_ARRAY.match(array, end, len(array) - 1):
        return None
    try:
        return Decoded((_events.decode(array[:end])), tail=bytes(array[end:-1]))
    except (msgspec.DecodeError, RecursionError):
        return None


def _piecewise(text: bytes) -> Decoded:
    """Narrow a refused block down to the events at fault by a window that shrinks and grows."""
    starts = [0, *(match.end() for match in BOUNDARY.finditer(text))]
    ends = [*(match.start() + 1 for match in BOUNDARY.finditer(text)), len(text)]
    out = Decoded([])
    events: list[EventLike] = []
    at, window = 0, max(1, len(starts) // 2)
    while at < len(starts):
        window = min(window, len(starts) - at)
        got = _strict(b"[%b]" % text[starts[at] : ends[at + window - 1]])
        if got is None and window > 1:
            window = max(1, window // 4)
            continue
        used = window
        if got is None:
            got, used = _one(text, starts, ends, at)
        events += got.events
        out.repaired += got.repaired
        out.dropped += got.dropped
        at += used
        if got.tail is not None:
            rest = text[ends[at - 1] :]
            out.tail = got.tail + rest
            break
        window *= 2
    out.events = events
    return out


def _one(text: bytes, starts: list[int], ends: list[int], at: int) -> tuple[Decoded, int]:
    """One event at fault: join pieces of nested lists, else repair, else drop."""
    piece = text[starts[at] : ends[at]]
    if (event := _loose(piece)) is not None:
        return Decoded([event]), 1
    for more in range(1, min(_JOINED, len(starts) - at)):
        joined = text[starts[at] : ends[at + more]]
        if (got := _strict(b"[%b]" % joined)) is not None:
            return got, more + 1
        if (event := _loose(joined)) is not None:
            return Decoded([event]), more + 1
    return _repair(piece), 1


def _loose(piece: bytes) -> EventLike | None:
    """Valid JSON whose values have unexpected types."""
    try:
        value = _anything.decode(piece)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return coerce(value) if isinstance(value, dict) else None


def _repair(piece: bytes) -> Decoded:
    """Try the known repairs in order; the first that yields an event is counted by name."""
    last = piece.rstrip()
    body, closed, tail = last, False, b""
    if not last.endswith(b"}") or last.count(b"{") < last.count(b"}"):
        body, closed, tail = _before_tail(last)
    for name, text in _attempts(body):
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            out = Decoded([coerce(value)], tail=tail if closed else None)
            out.repaired[name] += 1
            return out
    out = Decoded([], tail=tail if closed else None)
    if body.strip(b" \r\n\t,[]{}"):
        out.dropped["unreadable event"] += 1
    return out


def _before_tail(piece: bytes) -> tuple[bytes, bool, bytes]:
    """Split a last event from the `]` and the keys behind it."""
    found = re.search(rb'\}\s*\](?=\s*(?:,\s*"|\}?\s*$))', piece)
    if not found:
        return piece, False, b""
    return piece[: found.start() + 1], True, piece[found.end() :]


def _attempts(piece: bytes) -> list[tuple[str, str]]:
    text = piece.decode("utf-8", errors="replace").strip().rstrip(",")
    null = _BARE.sub(r"\1null", text)
    slashes = _WINDOWS_PATH if "\\u" not in null else _LONE_BACKSLASH
    lone = slashes if _LONE_BACKSLASH.search(null) else _LONE_BACKSLASH
    doubled = lone.sub(r"\\\\", null)
    quoted = _NAME_VALUE.sub(_escaped_name, doubled, count=1)
    return [
        ("control character or invalid text", text),
        ("not-a-number value", null),
        ("unescaped backslash", doubled),
        ("unescaped quote", quoted),
        ("trailing comma", _TRAILING_COMMA.sub(r"\1", quoted)),
    ]


def _escaped_name(found: re.Match[str]) -> str:
    inner = _INNER_QUOTE.sub(lambda _: '\\"', found.group(2))
    return found.group(1) + inner + found.group(3)


def coerce(value: dict[str, object]) -> EventLike:
    """An event from untyped JSON: unusable values become absent, not an error."""
    phase = str(value.get("ph", ""))
    cat = None if value.get("cat") is None else str(value["cat"])
    pid, tid = _identity(value.get("pid")), _identity(value.get("tid"))
    ts = _scalar(value.get("ts"))
    if phase in ("s", "f"):
        made = FlowStart if phase == "s" else FlowEnd
        return made(cat=cat, id=_scalar(value.get("id")), pid=pid, tid=tid, ts=ts)
    args = value.get("args")
    raw = msgspec.Raw(msgspec.json.encode(args)) if isinstance(args, dict) else NO_ARGUMENTS
    name = str(value.get("name", ""))
    if phase == "X":
        dur = _scalar(value.get("dur"))
        return Complete(cat=cat, name=name, pid=pid, tid=tid, ts=ts, dur=dur, args=raw)
    named = _NAMED.get(phase)
    if named is None:
        return Counter() if phase == "C" else Unread()
    return named(name=name, pid=pid, tid=tid, ts=ts, args=raw)


_NAMED: dict[str, type[Instant | Metadata | Begin | End]] = {
    "i": Instant,
    "I": Instant,
    "M": Metadata,
    "B": Begin,
    "E": End,
}


def _identity(value: object) -> int | str:
    if isinstance(value, int | str):
        return value
    return "" if value is None else str(value)


def _scalar(value: object) -> int | float | str | None:
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value if isinstance(value, int | float | str) else None
