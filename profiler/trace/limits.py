"""How much of a file the engine is willing to take in."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that keep a hostile or broken file from eating the machine.

    `inflated_bytes` text after decompression; `ratio` inflated to compressed
    bytes, looked at once `ratio_after_bytes` have come out; `events` of all
    phases; `event_bytes` text of one event; `name_chars` kept of one name;
    `string_bytes` over all distinct strings.
    """

    inflated_bytes: int = 4 * GIB
    ratio: int = 200
    ratio_after_bytes: int = 64 * MIB
    events: int = 60_000_000
    event_bytes: int = 16 * MIB
    name_chars: int = 16_384
    string_bytes: int = GIB
    block_bytes: int = 4 * MIB
    processes: int | None = None
