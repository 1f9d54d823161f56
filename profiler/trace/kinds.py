"""The kinds of event every vendor's trace is mapped to."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What an event is; stored as one byte per event."""

    OTHER = 0
    HOST_OP = 1
    RUNTIME = 2
    KERNEL = 3
    COPY = 4
    FILL = 5
    COMMUNICATION = 6
    WAIT = 7
    SYNC = 8
    PYTHON = 9
    ANNOTATION = 10
    DEVICE_ANNOTATION = 11
    MODULE = 12
    OVERHEAD = 13
    SPAN = 14
    MEMORY = 15
    COUNTER = 16
    VENDOR_TIMELINE = 17
    GROUP_COMMUNICATION = 18


DEVICE_KINDS: tuple[Kind, ...] = (
    Kind.KERNEL,
    Kind.COPY,
    Kind.FILL,
    Kind.COMMUNICATION,
    Kind.WAIT,
)
"""Kinds that occupy a device stream."""

DEVICE_CLASSES: dict[Kind, str] = {
    Kind.KERNEL: "compute",
    Kind.COPY: "copy",
    Kind.FILL: "fill",
    Kind.COMMUNICATION: "communication",
    Kind.WAIT: "wait",
}
"""How the report names the kinds of device work."""
