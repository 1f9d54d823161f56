"""The panels of a trace in the order of its page. A new panel is added here."""

from __future__ import annotations

from dashboard.panels import (
    collectives,
    critical,
    idle,
    kernels,
    launches,
    memory,
    modules,
    quality,
    roofline,
    shapes,
    splits,
    steps,
    streams,
    threads,
)
from dashboard.panels.base import Panel

ORDER: tuple[Panel, ...] = (
    critical.PANEL,
    idle.PANEL,
    splits.PANEL,
    steps.PANEL,
    kernels.PANEL,
    shapes.PANEL,
    roofline.PANEL,
    modules.PANEL,
    collectives.PANEL,
    launches.PANEL,
    memory.PANEL,
    streams.PANEL,
    threads.PANEL,
    quality.PANEL,
)
PANELS: dict[str, Panel] = {panel.name: panel for panel in ORDER}
