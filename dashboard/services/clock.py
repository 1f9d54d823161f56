"""The one clock of leases: the database server's."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.utils import timezone


def db_now() -> datetime:
    """Now, as the database server sees it; hosts with a skewed clock cannot steal a lease."""
    return server_clock()


def server_clock() -> datetime:
    """The database's clock. SQLite lives on this host, so this host's clock is the database's."""
    if connection.vendor == "sqlite":
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]
