"""One record, one line: foreign text cannot forge log lines or drive a terminal."""

from __future__ import annotations

import logging

from profiler.errors import printable


class LineFormatter(logging.Formatter):
    """`2026-01-01 10:00:00,000 INFO dashboard.x message`, line breaks shown escaped."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), limit=20_000)
