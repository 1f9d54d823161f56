"""Which software stacks the workers of a platform reported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from dashboard.models import Repository, Result, Run, Stack
from dashboard.services.clock import db_now
from profiler.errors import printable
from profiler.types import EXACT_ONLY, Environment

OF_THE_WORKLOAD = frozenset(
    {
        "deterministic_algorithms",
        "env.CUBLAS_WORKSPACE_CONFIG",
        "env.OMP_NUM_THREADS",
        "env.WORLD_SIZE",
        "float32_matmul_precision",
        "torch_interop_threads",
        "torch_threads",
    }
)
"""Comparable fields that a run sets for itself: another value is another workload, no new stack."""


def note_stack(run: Run, environment: Environment) -> None:
    """Keep the stack that the result of `run` reports, once per platform and repository.

    Call it in the transaction that stores the result.
    """
    repository = run.commit.repository if run.commit else None
    known = Stack.objects.filter(platform=run.platform_id, repository=repository)
    fields = stack_fields(environment.fields)
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    if known.filter(hash=digest).exists():
        return
    before = known.order_by("-id").values_list("fields", flat=True).first()
    if before is None:
        before = _reported_before(run, repository)
    Stack.objects.get_or_create(
        platform_id=run.platform_id,
        repository=repository,
        hash=digest,
        defaults={
            "fields": fields,
            "is_change": before is not None and before != fields,
            "difference": _difference(before or {}, fields),
            "run": run,
            "seen_at": db_now(),
        },
    )


def stack_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields that make up a stack."""
    left_out = EXACT_ONLY | OF_THE_WORKLOAD
    return {name: value for name, value in sorted(fields.items()) if name not in left_out}


def _reported_before(run: Run, repository: Repository | None) -> dict[str, str] | None:
    """Of the last result from before stacks were kept."""
    earlier = Result.objects.filter(run__platform=run.platform_id, run_id__lt=run.pk)
    if repository is None:
        earlier = earlier.filter(run__commit__isnull=True)
    else:
        earlier = earlier.filter(run__commit__repository=repository)
    found = earlier.order_by("-run_id").values_list("environment", flat=True).first()
    return stack_fields(found["fields"]) if found else None


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """`torch 2.12.0 -> 2.13.0, driver 570 -> 580`."""
    changed = [
        f"{name} {before.get(name, 'none')} -> {after.get(name, 'none')}"
        for name in sorted(before.keys() | after.keys())
        if before and before.get(name) != after.get(name)
    ]
    return printable(", ".join(changed), 300)
