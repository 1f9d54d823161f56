"""Make Django use a SQLite without the WAL-reset corruption bug.

Versions 3.7.0 to 3.51.2 can corrupt a WAL database; most systems ship one of
them. The pysqlite3 wheel bundles a fixed version, so it takes the place of the
standard module before Django loads its back-end. Where the wheel does not
exist the system's version is used and the `daybreak.W003` check says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


def use_bundled() -> None:
    """Put pysqlite3 in the place of sqlite3, where it is installed."""
    if importlib.util.find_spec("pysqlite3") is None:
        return
    sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
    sys.modules["sqlite3.dbapi2"] = importlib.import_module("pysqlite3.dbapi2")


def is_safe(version: tuple[int, int, int]) -> bool:
    """Whether `version` is free of the WAL-reset bug (fixed in 3.51.3, 3.50.7 and 3.44.6)."""
    newest = FIXED[0]
    return version >= newest or any(
        version[:2] == fixed[:2] and version >= fixed for fixed in FIXED[1:]
    )
