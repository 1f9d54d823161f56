"""Rows of repositories and commits for tests."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from django.utils import timezone

from dashboard.models import Commit, FetchState, Repository


def make_repository(slug: str = "models", **fields: Any) -> Repository:
    """A repository that was fetched, without commits."""
    now = timezone.now()
    values = {
        "address": "https://example.org/models.git",
        "allowed_refs": ["main"],
        "import_paths": ["."],
        "build_limit_s": 60.0,
        "state": FetchState.READY,
        "fetched_at": now,
        "default_branch": "main",
        "created_at": now,
    }
    return Repository.objects.create(slug=slug, **(values | fields))


def make_commit(repository: Repository, subject: str = "a change", **fields: Any) -> Commit:
    """The next commit of `main`, child of the one before."""
    before = Commit.objects.filter(repository=repository).order_by("-position").first()
    position = before.position + 1 if before else 1
    moment = timezone.now() - timedelta(days=1)
    values = {
        "sha": hashlib.sha1(f"{repository.slug} {position}".encode()).hexdigest(),
        "parents": [before.sha] if before else [],
        "position": position,
        "author": "Ann Author",
        "authored_at": moment,
        "committed_at": moment,
        "subject": subject,
    }
    commit = Commit.objects.create(repository=repository, **(values | fields))
    repository.heads = {**repository.heads, "refs/heads/main": commit.sha}
    repository.head_sha = commit.sha
    repository.save()
    return commit
