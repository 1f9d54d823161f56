"""The bare copy of a repository on this host: fetched by allowed ref, read by whole hash."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboard.services.addresses import SHA, Address, AddressError, is_allowed, parse_address
from dashboard.services.contract import Fetched, FoundCommit, Origin
from profiler.errors import UserError, printable
from workers.gitsafe import NOWHERE, Done, FetchError, Reach, StoppedError, checked, git, reach_of
from workers.job import FileLock, remove

COMMITS_LIMIT = 50_000
"""Newest commits whose author, date and subject are stored."""

REFS_LIMIT = 2_000
MIRROR_FOLDER = "mirrors"

_SHA_LINE = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\t(\S+)")
_PEELED = "^{}"
_SHAPE = "%H%x00%P%x00%an%x00%at%x00%ct%x00%s"
_FIELDS = 6
_POLL_S = 0.1
_ATTRIBUTES = "* -export-ignore -export-subst -filter -ident -text\n"
"""What a commit says about its own files changes nothing about what is checked out."""


class CommitError(UserError):
    """A commit that is not there."""

    kind = "unknown_commit"


class OutsideError(UserError):
    """A commit that is there, but that no allowed branch reaches."""

    kind = "outside_refs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """What the other side has; allowed refs only, tags by the commit they mean."""

    refs: dict[str, str]
    default_branch: str
    head_sha: str


def never() -> bool:
    """Nothing stops it."""
    return False


class Mirror:
    """One repository's mirror below `root`; `stopped` says when to give up."""

    def __init__(self, root: Path, origin: Origin, stopped: Callable[[], bool] = never) -> None:
        self._origin = origin
        self._stopped = stopped
        self.folder = root / MIRROR_FOLDER / f"{origin.repository_id}.git"

    def update(self, known: frozenset[str]) -> Fetched:
        """Fetch, and tell the refs and the commits that `known` does not reach."""
        heads = self.fetch()
        return Fetched(
            heads=heads.refs,
            default_branch=heads.default_branch,
            head_sha=heads.head_sha,
            commits=self.commits_beyond(known),
        )

    def fetch(self) -> Heads:
        """Take over every allowed ref, drop those that are gone; raises `FetchError`."""
        address = _address(self._origin.address)
        reach = reach_of(address, private_network=self._origin.private_network)
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(self.folder.with_suffix(".lock"))
        self._wait_for(lock)
        try:
            self._make(address)
            return self._fetch(address, reach)
        finally:
            lock.release()

    def commits_beyond(self, known: frozenset[str]) -> tuple[FoundCommit, ...]:
        """Commits that the refs reach and `known` does not, parents before children."""
        present = [sha for sha in sorted(known) if SHA.fullmatch(sha) and self.has(sha)]
        words = ["log", "-z", "--topo-order", f"--max-count={COMMITS_LIMIT}", "--no-mailmap"]
        answer = self._git(
            [*words, "--no-show-signature", f"--format={_SHAPE}", "--all", "--stdin"],
            stdin="".join(f"^{sha}\n" for sha in present),
        )
        return _commits(checked(answer, "The commits cannot be listed"))

    def has(self, sha: str) -> bool:
        """Whether the commit is in this mirror, reached by a branch or not."""
        _require_sha(sha)
        if not self.folder.is_dir():
            return False
        return self._git(["cat-file", "-e", f"{sha}^{{commit}}"]).code == 0

    def require(self, sha: str) -> None:
        """Raise `CommitError` or `OutsideError` unless an allowed ref reaches the commit.

        The refs of the mirror are the allowed ones at the last fetch; that each
        still is allowed is checked again.
        """
        if not self.has(sha):
            raise CommitError(
                f"Commit {sha[:10]} is not in the repository", "push it, or choose another"
            )
        answer = self._git(["for-each-ref", "--format=%(refname)", f"--contains={sha}"])
        reaching = checked(answer, "The branches cannot be listed").decode("utf-8", "replace")
        if not any(is_allowed(ref, self._origin.allowed_refs) for ref in reaching.split("\n")):
            raise OutsideError(
                f"Commit {sha[:10]} is outside of the branches that may be measured",
                "merge it into one of them, or ask an admin to allow its branch",
            )

    def archive(self, sha: str, target: Path) -> None:
        """Write the commit's files to `target` as a tar."""
        _require_sha(sha)
        checked(
            self._git(["archive", "--format=tar", f"--output={target}", sha]),
            f"Commit {sha[:10]} cannot be checked out",
        )

    def _wait_for(self, lock: FileLock) -> None:
        while not lock.take():
            if self._stopped():
                raise StoppedError
            time.sleep(_POLL_S)

    def _make(self, address: Address) -> None:
        """An address that changed starts anew: commits of another repository are not ours."""
        note = self.folder / "daybreak-origin"
        if note.is_file() and note.read_text() == address.text:
            return
        if self.folder.is_dir():
            remove(self.folder)
        made = git(
            ["init", "--quiet", "--bare", "--template=", str(self.folder)], stopped=self._stopped
        )
        checked(made, "The mirror cannot be made")
        (self.folder / "info").mkdir(exist_ok=True)
        (self.folder / "info" / "attributes").write_text(_ATTRIBUTES)
        note.write_text(address.text)

    def _fetch(self, address: Address, reach: Reach) -> Heads:
        listed = self._git(["ls-remote", "--symref", "--end-of-options", address.text], reach)
        answer = checked(listed, "The repository cannot be reached")
        heads = _heads(answer.decode("utf-8", "replace"), self._origin.allowed_refs)
        if heads.refs:
            words = ["fetch", "--no-tags", "--no-write-fetch-head", "--quiet", "--stdin"]
            wanted = "".join(f"+{ref}:{ref}\n" for ref in heads.refs)
            done = self._git([*words, "--end-of-options", address.text], reach, stdin=wanted)
            checked(done, "The repository cannot be fetched")
        self._drop_refs_but(heads.refs)
        return heads

    def _drop_refs_but(self, wanted: dict[str, str]) -> None:
        answer = self._git(["for-each-ref", "--format=%(refname)"])
        names = checked(answer, "The branches cannot be listed").decode("utf-8", "replace")
        gone = [ref for ref in names.splitlines() if ref not in wanted]
        if gone:
            lines = "".join(f"delete {ref}\n" for ref in gone)
            checked(self._git(["update-ref", "--stdin"], stdin=lines), "Old branches stay")

    def _git(self, words: Sequence[str], reach: Reach = NOWHERE, *, stdin: str = "") -> Done:
        place = f"--git-dir={self.folder}"
        return git([place, *words], stopped=self._stopped, reach=reach, stdin=stdin)


def _address(text: str) -> Address:
    """A registered address that is none any more: a folder that was moved away, for example."""
    try:
        return parse_address(text)
    except AddressError as error:
        raise FetchError(error.message, error.hint) from None


def _heads(answer: str, patterns: tuple[str, ...]) -> Heads:
    refs: dict[str, str] = {}
    default = head = ""
    for line in answer.splitlines():
        if line.startswith("ref: refs/heads/") and line.endswith("\tHEAD"):
            default = line.removeprefix("ref: refs/heads/").removesuffix("\tHEAD")
            continue
        found = _SHA_LINE.fullmatch(line)
        if found is None:
            continue
        sha, ref = found[1], found[2]
        if ref == "HEAD":
            head = sha
        elif is_allowed(ref.removesuffix(_PEELED), patterns):
            refs[ref.removesuffix(_PEELED)] = sha  # the peeled line of a tag comes second
    if len(refs) > REFS_LIMIT:
        raise FetchError(
            f"{len(refs):,} branches may be measured, more than {REFS_LIMIT:,}",
            "allow fewer of them",
        )
    return Heads(refs=refs, default_branch=printable(default, 200), head_sha=head)


def _commits(answer: bytes) -> tuple[FoundCommit, ...]:
    """The records of `git log -z`, turned round so that parents come first."""
    fields = answer.decode("utf-8", "replace").split("\0")
    starts = range(0, len(fields) - _FIELDS + 1, _FIELDS)
    found = [_commit(fields[start : start + _FIELDS]) for start in starts]
    return tuple(reversed(found))


def _commit(fields: Sequence[str]) -> FoundCommit:
    sha, parents, author, authored, committed, subject = fields
    return FoundCommit(
        sha=sha,
        parents=tuple(parents.split()),
        author=author,
        authored_s=_whole(authored),
        committed_s=_whole(committed),
        subject=subject,
    )


def _whole(text: str) -> int:
    """Seconds; a commit without a readable time has 0."""
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else 0


def _require_sha(sha: str) -> None:
    if not SHA.fullmatch(sha):
        raise CommitError(f"{printable(sha, 80)!r} is no commit hash", "write all 40 digits")
