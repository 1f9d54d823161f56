"""Verbs on templates: seed the shipped ones, save a new version, queue what one expands to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from django.db import transaction

from dashboard.models import Commit, GroupKind, Platform, Run, Template, TemplateVersion, User
from dashboard.services import audit, template_text
from dashboard.services.clock import db_now
from dashboard.services.runs import NewGroup, create_runs
from profiler.bench import templates as matrices
from profiler.bench.templates import Template as Matrix
from profiler.bench.templates import Value
from profiler.errors import SpecError, UserError
from profiler.spec import SOURCES
from profiler.types import RunSpec

SEED_BITS = 32


class StaleTemplateError(UserError):
    """Somebody saved another version since the page was opened."""

    kind = "stale_template"


class UnchangedTemplateError(UserError):
    """The text says the same as the newest version."""

    kind = "unchanged_template"


def ensure_shipped() -> None:
    """A row for every shipped template, and a new version where the shipped one moved on.

    A template that somebody changed since keeps that change.
    """
    with transaction.atomic():
        for matrix in matrices.SHIPPED.values():
            newest = newest_version(matrix.name)
            if newest is None or (newest.shipped and _differs(newest, matrix)):
                _store(matrix, template_text.write(matrix), user=None, shipped=True)


def newest_version(name: str) -> TemplateVersion | None:
    """The last version of the template of that name."""
    versions = TemplateVersion.objects.filter(template__name=name)
    return versions.select_related("template").order_by("-number").first()


def save_template(
    text: str, user: User, *, base: int | None = None, name: str = ""
) -> TemplateVersion:
    """Store `text` as the next version of the template it names, made if there is none.

    `base` is the version the change started from, `name` the template it is of.
    Raises `SpecError` for a text that cannot work, `StaleTemplateError` when
    `base` is not the newest any more, `UnchangedTemplateError` when it changes
    nothing.
    """
    matrix = template_text.read(text)
    if name and matrix.name != name:
        hint = f"allowed: {name}; another name makes another template, by New or import"
        raise SpecError(f"name is {matrix.name!r}", hint)
    with transaction.atomic():
        Template.objects.select_for_update().filter(name=matrix.name).first()
        newest = newest_version(matrix.name)
        if newest is not None and base is not None and newest.number != base:
            raise StaleTemplateError(
                f"Version {newest.number} of {matrix.name} was saved meanwhile",
                "copy your change, open the newest version and apply it there",
            )
        if newest is not None and not _differs(newest, matrix):
            raise UnchangedTemplateError(
                f"This says the same as version {newest.number} of {matrix.name}",
                "change a value first",
            )
        row = _store(matrix, text, user=user, shipped=False)
        audit.note(user, "template.save", f"{matrix.name} v{row.number}")
    return row


def matrix_of(version: TemplateVersion) -> Matrix:
    """What a stored version holds."""
    return template_text.stored(version.text)


def models_of(matrix: Matrix) -> tuple[str, ...]:
    """The built-in models of a template, which others may replace; none where it brings its own."""
    given = {**matrix.fields, **matrix.axes}
    if given.keys() & set(SOURCES):
        return ()
    found = given.get("model", [])
    return tuple(map(str, found)) if isinstance(found, list) else (str(found),)


def runs_of(
    version: TemplateVersion, *, models: Sequence[str] = (), device: str = "cpu"
) -> tuple[RunSpec, ...]:
    """What `version` expands to on `device`, in the order of its axes.

    `models` take the place of the template's own; none keep them. Raises
    `SpecError` when a run cannot work.
    """
    matrix = matrix_of(version)
    if models:
        others = {name: value for name, value in matrix.fields.items() if name != "model"}
        axes: dict[str, list[Value]] = {**matrix.axes, "model": list(models)}
        matrix = dataclasses.replace(matrix, fields=others, axes=axes)
    specs = matrices.expand(matrix)
    return tuple(dataclasses.replace(spec, device=device) for spec in specs)


def queue_template(
    version: TemplateVersion,
    specs: Sequence[RunSpec],
    *,
    platform: Platform,
    user: User | None,
    seed: int,
    key: str | None,
    commit: Commit | None = None,
) -> list[Run]:
    """Queue `specs` as one group in the random order of `seed`, all or none, once per `key`.

    With `commit` it is checked out for them.
    """
    group = NewGroup(kind=GroupKind.TEMPLATE, version=version, seed=seed)
    order = matrices.shuffled(specs, seed)
    return create_runs(order, platform=platform, user=user, key=key, group=group, commit=commit)


def _differs(version: TemplateVersion, matrix: Matrix) -> bool:
    return dataclasses.replace(matrix_of(version), version=matrix.version) != matrix


def _store(matrix: Matrix, text: str, *, user: User | None, shipped: bool) -> TemplateVersion:
    now = db_now()
    row, _ = Template.objects.get_or_create(name=matrix.name, defaults={"created_at": now})
    newest = row.versions.order_by("-number").first()
    number = newest.number + 1 if newest else 1
    return TemplateVersion.objects.create(
        template=row,
        number=number,
        title=matrix.title,
        about=matrix.about,
        text=template_text.numbered(text, number),
        runs=matrices.size(matrix),
        created_by=user,
        shipped=shipped,
        created_at=now,
    )
