"""Reads behind the pages of repositories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from dashboard.models import Commit, FetchState, Repository

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryRow:
    """One repository of the list."""

    id: int
    slug: str
    address: str
    branches: int
    commits: int
    state: str
    fetched_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A branch or tag and the commit it is at; `commit` is None for one not stored."""

    name: str
    sha: str
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryView:
    """A repository with its branches and one page of its commits."""

    row: Repository
    heads: tuple[Head, ...]
    commits: tuple[Commit, ...]
    total: int
    page: int
    pages: int


def is_waiting(row: Repository) -> bool:
    """Whether a fetch is wanted or under way."""
    return row.state == FetchState.FETCHING or row.wanted_at is not None


def repositories() -> tuple[RepositoryRow, ...]:
    """Every repository, by name."""
    rows = Repository.objects.annotate(commit_count=Count("commits"))
    return tuple(
        RepositoryRow(
            id=row.pk,
            slug=row.slug,
            address=row.address,
            branches=len(row.heads),
            commits=row.commit_count,
            state=row.state,
            fetched_at=row.fetched_at,
        )
        for row in rows
    )


def get_repository(repository_id: int) -> Repository | None:
    """The repository, or None."""
    return Repository.objects.filter(pk=repository_id).select_related("created_by").first()


def repository_view(row: Repository, *, text: str = "", page: int = 1) -> RepositoryView:
    """Branches, and the commits whose subject, author or hash holds `text`, newest first."""
    found = Commit.objects.filter(repository=row)
    if text:
        found = found.filter(
            Q(subject__icontains=text) | Q(author__icontains=text) | Q(sha__startswith=text)
        )
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(page, pages)
    start = (page - 1) * PAGE_SIZE
    return RepositoryView(
        row=row,
        heads=_heads(row),
        commits=tuple(found[start : start + PAGE_SIZE]),
        total=total,
        page=page,
        pages=pages,
    )


def _heads(row: Repository) -> tuple[Head, ...]:
    heads: dict[str, str] = row.heads
    at = Commit.objects.filter(repository=row, sha__in=set(heads.values()))
    commits = {commit.sha: commit for commit in at}
    names = {ref.removeprefix("refs/heads/").removeprefix("refs/"): ref for ref in heads}
    return tuple(
        Head(name=name, sha=heads[ref], commit=commits.get(heads[ref]))
        for name, ref in sorted(names.items())
    )
