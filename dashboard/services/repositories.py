"""Verbs on repositories: register, ask for a fetch, and a fetcher's claim and delivery.

The web process never runs git: it writes what is wanted, a keeper fetches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max, Q

from dashboard.models import Commit, FetchState, Repository, User
from dashboard.services import audit
from dashboard.services.addresses import (
    SHA,
    check_inner_path,
    check_pattern,
    check_ref,
    parse_address,
)
from dashboard.services.clock import db_now
from dashboard.services.contract import (
    FetchClaim,
    Fetched,
    FoundCommit,
    SupersededError,
)
from dashboard.services.sources import RegisterError, build_words, origin_of
from profiler import spec as specs
from profiler.errors import UserError, printable
from profiler.types import RunSpec

BUILD_LIMIT_S = 1800.0
REFRESH = timedelta(minutes=5)
"""A repository that somebody looks at is fetched again when the last fetch is older."""

_FETCH_LEASE = timedelta(minutes=15)
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRepository:
    """What an admin says about a repository."""

    slug: str
    address: str
    allowed_refs: tuple[str, ...] = ("main",)
    import_paths: tuple[str, ...] = (".",)
    build_command: str = ""
    build_limit_s: float = BUILD_LIMIT_S
    build_memory_bytes: int = 0
    factory: str = ""
    private_network: bool = False


def register_repository(wanted: NewRepository, user: User | None) -> Repository:
    """Store a repository and ask for its first fetch; raises `UserError` saying what is wrong."""
    _check(wanted)
    now = db_now()
    try:
        with transaction.atomic():
            row = Repository.objects.create(
                slug=wanted.slug,
                address=parse_address(wanted.address).text,
                private_network=wanted.private_network,
                allowed_refs=list(wanted.allowed_refs),
                import_paths=list(wanted.import_paths),
                build_command=wanted.build_command,
                build_limit_s=wanted.build_limit_s,
                build_memory_bytes=wanted.build_memory_bytes,
                factory=wanted.factory,
                wanted_at=now,
                created_by=user,
                created_at=now,
            )
            audit.note(user, "repository.register", row.slug, {"address": row.address})
    except IntegrityError:
        raise RegisterError(
            f"A repository named {wanted.slug} exists already", "choose another name"
        ) from None
    return row


def _check(wanted: NewRepository) -> None:
    if not wanted.slug or not wanted.slug.replace("-", "").replace("_", "").isalnum():
        raise RegisterError("The name needs letters, digits, - or _", "for example my-models")
    if not wanted.slug.isascii() or len(wanted.slug) > 40:
        raise RegisterError("The name is too long or not plain ASCII", "at most 40 characters")
    if not wanted.allowed_refs:
        raise RegisterError("No branch may be measured", "name one, for example main")
    for pattern in wanted.allowed_refs:
        check_pattern(pattern)
    for path in wanted.import_paths:
        check_inner_path(path)
    if wanted.factory:
        label = RunSpec(model=wanted.slug, scenario="prefill", factory=wanted.factory)
        specs.check_model(specs.check(label))
    if not 1 <= wanted.build_limit_s <= 86_400:
        raise RegisterError("The build's time limit cannot be", "allowed: 1 to 86,400 s")
    build_words(wanted.build_command)


def request_fetch(repository_id: int, user: User | None) -> None:
    """Ask for a fetch; asking twice before it starts is one fetch."""
    now = db_now()
    with transaction.atomic():
        row = Repository.objects.get(pk=repository_id)
        Repository.objects.filter(pk=row.pk).update(wanted_at=now)
        audit.note(user, "repository.fetch", row.slug)


def claim_fetch() -> FetchClaim | None:
    """A repository that wants to be fetched; also one whose fetcher died."""
    now = db_now()
    open_ = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    row = Repository.objects.filter(open_, wanted_at__isnull=False).order_by("wanted_at").first()
    if row is None:
        return None
    taken = Repository.objects.filter(open_, pk=row.pk, fence=row.fence).update(
        state=FetchState.FETCHING,
        fence=row.fence + 1,
        lease_until=now + _FETCH_LEASE,
    )
    if not taken:
        return None
    return FetchClaim(
        origin=origin_of(row), fence=row.fence + 1, known=frozenset(row.heads.values())
    )


@transaction.atomic
def store_fetch(claim: FetchClaim, found: Fetched) -> None:
    """Store the refs and the new commits; raises `SupersededError` when another fetch took over."""
    _finish(
        claim,
        state=FetchState.READY,
        fetched_at=db_now(),
        heads=found.heads,
        default_branch=found.default_branch[:200],
        head_sha=found.head_sha,
        reason="",
        hint="",
    )
    store_commits(claim.origin.repository_id, found.commits)


@transaction.atomic
def fail_fetch(claim: FetchClaim, error: UserError) -> None:
    """Note why it could not be fetched; what was known before stays."""
    _finish(
        claim,
        state=FetchState.FAILED,
        reason=printable(error.message, 1000),
        hint=printable(error.hint, 500),
    )


def give_back_fetch(claim: FetchClaim) -> None:
    """The keeper stops: the fetch waits again."""
    Repository.objects.filter(pk=claim.origin.repository_id, fence=claim.fence).update(
        state=FetchState.WAITING, lease_until=None
    )


def _finish(claim: FetchClaim, **values: object) -> None:
    mine = Repository.objects.filter(
        pk=claim.origin.repository_id, fence=claim.fence, state=FetchState.FETCHING
    )
    row = mine.first()
    if row is None or row.lease_until is None:
        raise SupersededError(f"repository {claim.origin.repository_id} fence {claim.fence}")
    claimed_at = row.lease_until - _FETCH_LEASE
    asked_since = row.wanted_at if row.wanted_at and row.wanted_at > claimed_at else None
    mine.update(lease_until=None, wanted_at=asked_since, **values)


def store_commits(repository_id: int, commits: Sequence[FoundCommit]) -> None:
    """Append commits that are not stored yet, in the order given."""
    shas = [commit.sha for commit in commits]
    known: set[str] = set()
    for start in range(0, len(shas), 500):
        part = shas[start : start + 500]
        known |= set(
            Commit.objects.filter(repository_id=repository_id, sha__in=part).values_list(
                "sha", flat=True
            )
        )
    top = Commit.objects.filter(repository_id=repository_id).aggregate(Max("position"))
    first = (top["position__max"] or 0) + 1
    fresh = [commit for commit in commits if commit.sha not in known]
    Commit.objects.bulk_create(
        (_row(repository_id, commit, place) for place, commit in enumerate(fresh, start=first)),
        batch_size=500,
    )


def _row(repository_id: int, commit: FoundCommit, position: int) -> Commit:
    return Commit(
        repository_id=repository_id,
        sha=commit.sha,
        parents=list(commit.parents),
        position=position,
        author=commit.author[:200],
        authored_at=_moment(commit.authored_s),
        committed_at=_moment(commit.committed_s),
        subject=commit.subject[:500],
    )


def _moment(seconds: int) -> datetime:
    """A commit may claim any time; one outside of 1970 to 2100 is set to the nearer end."""
    span = (_LATEST - _EARLIEST).total_seconds()
    return _EARLIEST + timedelta(seconds=min(max(0, seconds), span))


class UnknownCommitError(UserError):
    """A commit that no allowed branch reaches, or a branch that is not there."""

    kind = "unknown_commit"


def resolve(repository: Repository, text: str) -> Commit:
    """The commit that a branch, a tag, HEAD or a whole hash means now.

    Reads what the last fetch stored. Raises `RefError` for what can be no name
    and `UnknownCommitError` for what no allowed ref reaches.
    """
    name = check_ref(text)
    sha = _sha_of(repository, name)
    found = Commit.objects.filter(repository=repository, sha=sha).first() if sha else None
    if found is None:
        allowed = ", ".join(repository.allowed_refs)
        raise UnknownCommitError(
            f"{printable(name, 80)} is no commit that the allowed branches of "
            f"{repository.slug} reach",
            f"allowed: {printable(allowed, 200)}; push it there, or ask an admin to allow its "
            "branch",
        )
    return found


def _sha_of(repository: Repository, name: str) -> str:
    heads: dict[str, str] = repository.heads
    if name == "HEAD":
        return repository.head_sha
    for full in (name, f"refs/heads/{name}", f"refs/tags/{name}", f"refs/{name}"):
        if full in heads:
            return heads[full]
    return name if SHA.fullmatch(name) else ""


def fetch_is_stale(repository: Repository) -> bool:
    """Whether the last fetch is old enough to look again."""
    fresh_since = db_now() - REFRESH / settings.TIME_SCALE
    return repository.fetched_at is None or repository.fetched_at < fresh_since
