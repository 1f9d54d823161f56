"""Which rank a trace is of, as far as its file name tells."""

from __future__ import annotations

import re

_IN_NAME = re.compile(r"(?:rank|worker|[^a-z0-9]r)[-_]?(\d{1,6})(?!\d)", re.I)


def rank_in_name(name: str) -> int | None:
    """The number in `rank3`, `worker-3` or `-r3`; None where the name has none."""
    found = _IN_NAME.search(name)
    return int(found.group(1)) if found else None
