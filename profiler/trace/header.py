"""The keys of a trace file around its events: versions, devices, rank, clock base."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import msgspec

_BARE = re.compile(r"(?<=[:\[,])(\s*)(?:-?inf(?:inity)?|-?nan|N/A)(?=\s*[,}\]])", re.I)
_NUMBER_KEY = re.compile(
    rb'"(schemaVersion|baseTimeNanoseconds|cuda_runtime_version|hip_runtime_version|'
    rb'record_shapes|with_stack|profile_memory|with_flops|with_modules)"\s*:\s*(-?[0-9]+)'
)
_RANK = re.compile(rb'"rank"\s*:\s*([0-9]+)')
_WORLD = re.compile(rb'"world_size"\s*:\s*([0-9]+)')
_DEVICE_NAME = re.compile(rb'"id"\s*:\s*\d+\s*,\s*"name"\s*:\s*"([^"\\]{0,200})"')


@dataclass(slots=True)
class Header:
    """What the file says about itself; unknown is None. `keys` are its top-level names."""

    base_ns: int = 0
    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    device_names: list[str] = field(default_factory=list)
    device_ids: list[int] = field(default_factory=list)
    torch_version: str | None = None
    trace_name: str | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    readable: bool = True


def parse_header(head: bytes, tail: bytes) -> Header:
    """Both ends of the object; what cannot be parsed is searched for single keys."""
    header = Header()
    values: dict[str, object] = {}
    for text in (closed_head(head), closed_tail(tail)):
        parsed = parsed_object(text)
        if parsed is None:
            header.readable = False
            _search(header, text)
        else:
            values.update(parsed)
    header.values = values
    header.keys = list(values)
    _take(header, values)
    return header


def closed_head(head: bytes) -> bytes:
    """The text before the event array as an object of its own."""
    text = head.strip().rstrip(b",").rstrip()
    return text + b"}" if text else b"{}"


def closed_tail(tail: bytes) -> bytes:
    """The text after the event array as an object of its own."""
    text = tail.strip().lstrip(b",").strip()
    if not text or text == b"}":
        return b"{}"
    return b"{" + text if text.endswith(b"}") else b"{" + text + b"}"


def parsed_object(text: bytes) -> dict[str, object] | None:
    """Parsed keys, with the usual repairs; None when that is not enough."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            plain = text.decode("utf-8", errors="replace")
            value = json.loads(_BARE.sub(r"\1null", plain), strict=False)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _search(header: Header, text: bytes) -> None:
    for key, number in _NUMBER_KEY.findall(text):
        if len(number) < 20:
            header.numbers[key.decode()] = int(number)
    header.base_ns = header.numbers.get("baseTimeNanoseconds", header.base_ns)
    if found := _RANK.search(text):
        header.rank = int(found.group(1)[:9])
    if found := _WORLD.search(text):
        header.world_size = int(found.group(1)[:9])
    names = [name.decode("utf-8", errors="replace") for name in _DEVICE_NAME.findall(text)]
    header.device_names += names
    header.device_ids += list(range(len(names)))


def _take(header: Header, values: dict[str, object]) -> None:
    for key, value in values.items():
        if isinstance(value, int) and not isinstance(value, bool):
            header.numbers[key] = value
    header.base_ns = header.numbers.get("baseTimeNanoseconds", header.base_ns)
    _take_ranks(header, values.get("distributedInfo"))
    devices = values.get("deviceProperties")
    for device in devices if isinstance(devices, list) else []:
        if isinstance(device, dict):
            header.device_names.append(str(device.get("name") or ""))
            number = device.get("id")
            header.device_ids.append(number if isinstance(number, int) else -1)
    name = values.get("traceName")
    header.trace_name = name if isinstance(name, str) else None
    header.torch_version = _torch_version(values)


def _take_ranks(header: Header, info: object) -> None:
    if not isinstance(info, dict):
        return
    rank, world, backend = info.get("rank"), info.get("world_size"), info.get("backend")
    header.rank = rank if isinstance(rank, int) else header.rank
    header.world_size = world if isinstance(world, int) else header.world_size
    header.backend = backend if isinstance(backend, str) else header.backend


def _torch_version(values: dict[str, object]) -> str | None:
    """`torch_version` where our own runs put it, or a pip list in a foreign `metadata`."""
    own = values.get("torch_version") or values.get("pytorch_version")
    if isinstance(own, str):
        return own
    text = str(values.get("metadata", ""))
    found = re.search(r"['\"]?\btorch['\"]?\s*(?:==|:|,)\s*['\"]?(\d+\.\d+[0-9A-Za-z.+]*)", text)
    return found.group(1) if found else None
