"""Compare the traces of two profiled launches: `python -m workers.difference BASE CAND OUT`.

A process of its own with limits, because the traces come from foreign code.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import msgspec

from dashboard.services.difference import difference_between
from profiler.errors import UserError


def write(base: Path, candidate: Path, out: Path) -> None:
    """Raises `UserError` when a trace cannot be read."""
    data = msgspec.json.encode(difference_between(base, candidate))
    out.write_bytes(gzip.compress(data, mtime=0))


def main(arguments: list[str] | None = None) -> int:
    """Command line: two traces and where to write."""
    base, candidate, out = sys.argv[1:] if arguments is None else arguments
    try:
        write(Path(base), Path(candidate), Path(out))
    except UserError as error:
        sys.stderr.write(f"{error.line()}\n")
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
