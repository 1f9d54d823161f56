"""What a worker is told of a repository and of a commit in it."""

from __future__ import annotations

import shlex

from dashboard.models import Commit, Repository
from dashboard.services.contract import Origin, Source
from profiler.errors import UserError


class RegisterError(UserError):
    """A repository that cannot be registered as it was described."""

    kind = "bad_repository"


def build_words(command: str) -> tuple[str, ...]:
    """The words of a build command; no shell reads it. Raises `RegisterError` for open quotes."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        raise RegisterError(
            "The build command has an open quote", "write it as on a command line"
        ) from None


def origin_of(row: Repository) -> Origin:
    """What git needs to know of a repository."""
    return Origin(
        repository_id=row.pk,
        address=row.address,
        private_network=row.private_network,
        allowed_refs=tuple(row.allowed_refs),
    )


def source_of(commit: Commit) -> Source:
    """What a worker needs to make a commit ready to run."""
    row = commit.repository
    return Source(
        origin=origin_of(row),
        sha=commit.sha,
        import_paths=tuple(row.import_paths),
        build_command=build_words(row.build_command),
        build_limit_s=row.build_limit_s,
        build_memory_bytes=row.build_memory_bytes,
    )
