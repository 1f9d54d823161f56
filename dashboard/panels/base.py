"""What every panel of a trace is: a title, when it is empty and why, and its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dashboard.panels.table import Table
from profiler.analysis.report import Report

PLAIN = "dashboard/partials/panel_table.html"


KERNELS_MISSING = "Kernels are missing."
"""How the reason begins where launches were recorded without their work."""


def no_table(report: Report) -> Table[Any] | None:
    """For panels without a table."""
    return None


def no_facts(report: Report) -> object:
    """For panels that are all table."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One part of a trace's page, loaded by itself under its own address.

    `why_empty` says why the report has nothing for it, or is empty. `facts` is
    what its template shows beside the table.
    """

    name: str
    title: str
    about: str
    why_empty: Callable[[Report], str]
    table: Callable[[Report], Table[Any] | None] = no_table
    facts: Callable[[Report], object] = no_facts
    template: str = PLAIN
    redrawn: bool = False
    """Whether it holds charts: they are drawn anew when it changes, never patched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of a panel: what it is, its value, the exact value, and what to know about it."""

    term: str
    shown: str
    exact: str = ""
    note: str = ""


MOST_DEVICES = 4_096
"""Numbers beyond are no places of devices: some vendors name a device by the id of its process."""


def device_title(name: str) -> str:
    """`Device 0` for a place, `Device of process 3170820512` for an id, else the name itself."""
    if not name.isdecimal():
        return name
    place = len(name) < 10 and int(name) < MOST_DEVICES
    return f"Device {name}" if place else f"Device of process {name}"


def no_device_work(report: Report) -> str:
    """Why a trace has no device work; empty when it has some."""
    if report.timeline:
        return ""
    if report.launches.calls:
        return (
            f"{KERNELS_MISSING} Calls that launch device work were recorded, the work itself was "
            "not. Record it again with the activity of the device switched on, and with no other "
            "profiler holding it."
        )
    return "No device took part: only the host was recorded."
