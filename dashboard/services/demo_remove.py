"""Taking the demo away again: every row that hangs on its names, and every file only it names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import SET_NULL, ForeignKey, ForeignObjectRel, QuerySet
from django.db.models import Model as Row

from dashboard.models import Artifact, Audit, Change, Model, Platform, Repository, Trace, User
from dashboard.services import artifacts
from dashboard.services import demo_story as story
from dashboard.services.demo_seed import DemoError, is_seeded
from dashboard.services.retention_due import references

_PART = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """How much went."""

    rows: int
    files: int


@dataclass(slots=True)
class _Wipe:
    """Deletes rows with all that cannot be without them, the outermost first."""

    rows: int = 0
    artifacts: set[int] = field(default_factory=set)

    def wipe(self, rows: QuerySet[Row]) -> None:
        """Delete `rows` after whatever names them; what may stay without them loses its link."""
        keys = list(rows.order_by().values_list("pk", flat=True))
        for start in range(0, len(keys), _PART):
            self._part(rows.model, keys[start : start + _PART])

    def _part(self, model: type[Row], keys: list[object]) -> None:
        manager = model._default_manager
        for relation in _relations(model):
            name, other = relation.field.name, relation.related_model
            naming = other._default_manager.filter(**{f"{name}__in": keys})
            if other is model or relation.on_delete is SET_NULL:
                naming.update(**{name: None})
            else:
                self.wipe(naming)
        found = manager.filter(pk__in=keys)
        for one in model._meta.concrete_fields:
            if isinstance(one, ForeignKey) and one.related_model is Artifact:
                self.artifacts |= set(found.values_list(f"{one.name}_id", flat=True))
        self.rows += found.count()
        found.delete()


def _relations(model: type[Row]) -> Iterable[ForeignObjectRel]:
    """What names rows of `model`, hidden relations and those of many-to-many tables too."""
    for one in model._meta.get_fields(include_hidden=True):
        if isinstance(one, ForeignObjectRel) and not one.many_to_many:
            yield one


def remove_demo() -> Removed:
    """Delete the demo; raises `DemoError` when there is none.

    Files go after the rows; a crash between the two leaves files that nobody
    names, which the hourly collection takes a day later.
    """
    if not is_seeded():
        raise DemoError("There is no demo data", "make it by `manage.py seed_demo`")
    with transaction.atomic():
        names = _remove_rows()
    gone = sum(artifacts.drop_file(sha256, age=timedelta(0)) for sha256 in names.files)
    return Removed(rows=names.rows, files=gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    rows: int
    files: tuple[str, ...]


def _remove_rows() -> _Gone:
    work = _Wipe()
    changes = Change.objects.filter(platform__slug=story.PLATFORM).values_list("pk", flat=True)
    by_nobody = [f"change {number}" for number in changes]
    people = User.objects.filter(username=story.PERSON)
    work.wipe(Trace.objects.filter(name__startswith=story.MARK))
    work.wipe(Platform.objects.filter(slug=story.PLATFORM))
    work.wipe(Model.objects.filter(name=story.MODEL))
    work.wipe(Repository.objects.filter(slug=story.REPOSITORY))
    # Deeds of people on demo data stay on record, as all of theirs do.
    work.wipe(Audit.objects.filter(user__in=people))
    work.wipe(Audit.objects.filter(user__isnull=True, subject__in=by_nobody))
    work.wipe(people)
    unused = Artifact.objects.filter(pk__in=work.artifacts - {None})
    for model, name in references(Artifact):
        used = model._default_manager.filter(**{f"{name}__in": work.artifacts})
        unused = unused.exclude(pk__in=used.values(name))
    files = tuple(unused.values_list("sha256", flat=True))
    work.rows += len(files)
    Artifact.objects.filter(sha256__in=files).delete()
    return _Gone(rows=work.rows, files=files)
