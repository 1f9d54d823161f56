"""The workloads that a comparison measures: of a template, of a run, or of a file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dashboard.models import Run, TemplateVersion
from dashboard.services.templates import ensure_shipped, newest_version, runs_of
from profiler import spec as specs
from profiler.errors import UserError, printable
from profiler.types import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """Specifications, and the version of the template they come from, if any."""

    specs: tuple[RunSpec, ...]
    version: TemplateVersion | None = None


def of_template(name: str, device: str) -> Workloads:
    """Every run of the newest version; raises `UserError` when there is none."""
    version = newest_version(name)
    if version is None:
        ensure_shipped()
        version = newest_version(name)
    if version is None:
        raise UserError(f"There is no template {printable(name, 60)}", "see the page Templates")
    return Workloads(specs=runs_of(version, device=device), version=version)


def of_run(run_id: int, device: str) -> Workloads:
    """What an earlier run measured; raises `UserError` when there is none."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise UserError(f"There is no run {run_id}", "see the page Runs")
    spec = msgspec.convert(run.spec, RunSpec)
    return Workloads(specs=(dataclasses.replace(spec, device=device),))


def of_spec(path: Path, device: str) -> Workloads:
    """One specification from a file; raises `SpecError` when it cannot work."""
    return Workloads(specs=(dataclasses.replace(specs.load(path), device=device),))
