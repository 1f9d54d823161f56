"""Migrations that change rows, run against the rows of before."""

from __future__ import annotations

import pytest
from django.apps.registry import Apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

BEFORE, AFTER = ("dashboard", "0002_templates"), ("dashboard", "0003_flame_graph")


def migrated(target: tuple[str, str]) -> Apps:
    executor = MigrationExecutor(connection)
    executor.migrate([target])
    return MigrationExecutor(connection).loader.project_state([target]).apps


@pytest.mark.django_db(transaction=True)
def test_operators_of_before_get_their_own_name_across_vendors() -> None:
    latest = MigrationExecutor(connection).loader.graph.leaf_nodes("dashboard")
    old = migrated(BEFORE)
    now = timezone.now()
    raw = old.get_model("dashboard", "Artifact").objects.create(
        sha256="e" * 64, size_bytes=1, created_at=now
    )
    trace = old.get_model("dashboard", "Trace").objects.create(raw=raw, name="t", created_at=now)
    times = dict.fromkeys(("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"), 0)
    old.get_model("dashboard", "Operator").objects.create(
        trace=trace, name="aten::mm", count=1, **times
    )
    new = migrated(AFTER)
    assert new.get_model("dashboard", "Operator").objects.get().canonical == "aten::mm"
    MigrationExecutor(connection).migrate(latest)
