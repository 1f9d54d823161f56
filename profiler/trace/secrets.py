"""Finds credentials and personal details that writers put into traces, and removes them.

Nothing found here is ever repeated: warnings name kinds and keys, not values.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import msgspec

from profiler.errors import TraceError
from profiler.trace.blocks import Blocks
from profiler.trace.header import closed_head, closed_tail, parsed_object
from profiler.trace.intern import encodable
from profiler.trace.limits import Limits
from profiler.trace.privacy import CLEAN_COPY, HOLDS
from profiler.trace.salvage import decode_block
from profiler.trace.source import Source

REDACTED = "[redacted]"
_TOKEN_TEXT = (
    r"hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|"
    r"glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|"
    r"AIza[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_USER_INFO_TEXT = r"(?<=://)[^/\s:@\"\\]{1,64}:[^/\s@\"\\]{1,256}(?=@)"
_HOME_TEXT = r"(?:/home/|/Users/|[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/))[^/\\\"\s:,;()<>]{1,64}"
_TOKEN = re.compile(f"{_TOKEN_TEXT}|{_USER_INFO_TEXT}")
_HOME = re.compile(_HOME_TEXT)
_TOKEN_BYTES = re.compile(f"{_TOKEN_TEXT}|{_USER_INFO_TEXT}".encode())
_HOME_BYTES = re.compile(_HOME_TEXT.encode())
_SECRET_KEY = re.compile(
    r"token|secret|passw|api_?key|access_?key|private_?key|credential|auth(?!or)|cookie|session",
    re.I,
)
_HARMLESS_KEY = re.compile(r"tokenizers?_parallelism|max_.*tokens?|num_.*tokens?|tokens_per", re.I)
_PERSONAL_KEY = re.compile(
    r"^(host_?name|hostname|user_?name|user|login|started_by|tw_.*|node|e?mail|ip|ip_address)$",
    re.I,
)
_ENVIRONMENT_KEY = re.compile(r"^[A-Z][A-Z0-9_]{1,60}$")
_ENVIRONMENT_KEYS = 5


def clean(text: str) -> str:
    """`text` without credentials and with home folders as `~`."""
    return _HOME.sub("~", _TOKEN.sub(REDACTED, text))


def clean_names(strings: list[str]) -> int:
    """Clean event names in place; returns how many changed."""
    changed = 0
    for at, text in enumerate(strings):
        if ("/" in text or "\\" in text or "_" in text or "-" in text) and (
            (safe := clean(text)) != text
        ):
            strings[at] = safe
            changed += 1
    return changed


def findings(values: dict[str, object]) -> list[str]:
    """What the keys around the events give away, in words without values."""
    found: Counter[str] = Counter()
    for path, kind in _walk(values, ""):
        found[kind] += 1
        if kind == "credential":
            found[f"credential under {path[:80]}"] += 1
    named = [f"a {kind}" for kind in sorted(found) if kind.startswith("credential under")]
    named += [
        f"{found[kind]} x {kind}"
        for kind in ("environment block", "home folder", "host, user or address")
        if found[kind]
    ]
    if not named:
        return []
    text = encodable(", ".join(named))
    return [f"{HOLDS}{text}{CLEAN_COPY}"]


def _walk(value: object, path: str) -> Iterator[tuple[str, str]]:
    """(path of keys, kind) of everything sensitive in parsed JSON."""
    if isinstance(value, dict):
        upper = sum(1 for key in value if _ENVIRONMENT_KEY.match(str(key)))
        if upper >= _ENVIRONMENT_KEYS and upper * 2 > len(value):
            yield path, "environment block"
        for key, inner in value.items():
            yield from _walk_key(str(key), inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value[:10_000]:
            yield from _walk(inner, path)
    elif isinstance(value, str):
        if _TOKEN.search(value):
            yield path, "credential"
        elif _HOME.search(value):
            yield path, "home folder"


def _walk_key(key: str, value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and value and _is_secret(key):
        yield path, "credential"
    elif isinstance(value, str) and value and _PERSONAL_KEY.match(key):
        yield path, "host, user or address"
    else:
        yield from _walk(value, path)


def _is_secret(key: str) -> bool:
    return bool(_SECRET_KEY.search(key)) and not _HARMLESS_KEY.search(key)


def cleaned(value: object) -> object:
    """Parsed JSON without environment values, credentials, names of people and machines."""
    if isinstance(value, dict):
        upper = sum(1 for key in value if _ENVIRONMENT_KEY.match(str(key)))
        if upper >= _ENVIRONMENT_KEYS and upper * 2 > len(value):
            return dict.fromkeys(value, REDACTED)
        return {key: _cleaned_key(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [cleaned(inner) for inner in value]
    return clean(value) if isinstance(value, str) else value


def _cleaned_key(key: str, value: object) -> object:
    if isinstance(value, str) and value and (_is_secret(key) or _PERSONAL_KEY.match(key)):
        return REDACTED
    return cleaned(value)


def redact(path: Path, out: Path, limits: Limits | None = None) -> None:
    """Write a copy of the trace without what `findings` reports; streams, any size.

    The keys around the events are rewritten, event text is kept but for
    credentials and home folders. Raises `TraceError` on unusable files.
    """
    try:
        with Source(path, limits or Limits(), hashed=False) as source, _opened(out) as file:
            _write(Blocks(source), file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"{out} cannot be written: {reason}", "check the folder") from None


def _opened(out: Path) -> IO[bytes]:
    if out.suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(out, "wb", compresslevel=6, mtime=0))
    return out.open("wb")


def _write(blocks: Blocks, file: IO[bytes]) -> None:
    last = b""
    for number, block in enumerate(blocks):
        text = bytes(block()[1:-1])
        if number == 0:
            file.write(b"[" if blocks.is_list else _head(blocks.header) + b'"traceEvents":[')
        elif number == 1:
            file.write(clean_bytes(last))
        else:
            file.write(b",\n" + clean_bytes(last))
        last = text
    tail = decode_block(memoryview(b"[%b]" % last)).tail
    events = last if tail is None else last[: len(last) - len(tail)]
    file.write((b",\n" if blocks.count > 1 else b"") + clean_bytes(events))
    if tail is None:
        file.write(b"]" if blocks.is_list else b"]}")
    elif not blocks.is_list:
        keys = _object(closed_tail(tail))
        file.write(b"," + keys[1:] if keys != b"{}" else b"}")


def _head(header: bytes) -> bytes:
    keys = _object(closed_head(header))
    return keys[:-1] + b"," if keys != b"{}" else b"{"


def _object(text: bytes) -> bytes:
    """The cleaned object; one that cannot be parsed is left out, since it cannot be checked."""
    values = parsed_object(text)
    return b"{}" if values is None else msgspec.json.encode(cleaned(values))


def clean_bytes(text: bytes) -> bytes:
    """Event text without credentials and home folders; stays the JSON it was."""
    return _HOME_BYTES.sub(b"~", _TOKEN_BYTES.sub(REDACTED.encode(), text))
