"""The mirror of a repository: what it takes, what it refuses, what a commit tells."""

from __future__ import annotations

import dataclasses
import os
import tarfile
import threading
from pathlib import Path

import pytest

from dashboard.services.contract import Origin
from tests.workers.repository import Upstream
from workers import gitsafe
from workers.gitsafe import FetchError, StoppedError
from workers.mirror import CommitError, Mirror, OutsideError

pytestmark = pytest.mark.fault


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "upstream")


def origin(upstream: Upstream, *allowed: str) -> Origin:
    return Origin(
        repository_id=7,
        address=str(upstream.folder),
        private_network=False,
        allowed_refs=allowed or ("main",),
    )


def mirror(upstream: Upstream, tmp_path: Path, *allowed: str) -> Mirror:
    return Mirror(tmp_path / "var", origin(upstream, *allowed))


def test_it_takes_allowed_branches_only(upstream: Upstream, tmp_path: Path) -> None:
    first = upstream.commit()
    upstream.git("branch", "secret")
    upstream.git("branch", "release/2")
    found = mirror(upstream, tmp_path, "main", "release/*").update(frozenset())
    assert found.heads == {"refs/heads/main": first, "refs/heads/release/2": first}
    assert (found.default_branch, found.head_sha) == ("main", first)


def test_it_tells_parents_before_children(upstream: Upstream, tmp_path: Path) -> None:
    shas = [upstream.commit(f"step {n}") for n in range(4)]
    found = mirror(upstream, tmp_path).update(frozenset())
    assert [commit.sha for commit in found.commits] == shas
    assert found.commits[1].parents == (shas[0],)
    assert (found.commits[3].subject, found.commits[3].author) == ("step 3", "Ann Author")
    assert found.commits[0].authored_s == 1_700_000_060


def test_it_tells_only_what_is_new(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    copy = mirror(upstream, tmp_path)
    known = frozenset(copy.update(frozenset()).heads.values())
    newer = upstream.commit("newer")
    assert [commit.sha for commit in copy.update(known).commits] == [newer]


def test_it_keeps_hostile_subjects_as_text(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit("<img src=x onerror=alert(1)>\x1b[31m \u202e --output=x")
    (commit,) = mirror(upstream, tmp_path).update(frozenset()).commits
    assert commit.subject == "<img src=x onerror=alert(1)>\x1b[31m \u202e --output=x"


def test_it_names_the_commit_that_an_annotated_tag_means(
    upstream: Upstream, tmp_path: Path
) -> None:
    sha = upstream.commit()
    upstream.git("tag", "-a", "v1", "-m", "one")
    assert mirror(upstream, tmp_path, "tags/v*").fetch().refs == {"refs/tags/v1": sha}


def test_it_drops_a_branch_that_is_gone(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    upstream.git("branch", "gone")
    copy = mirror(upstream, tmp_path, "*")
    copy.fetch()
    upstream.git("branch", "-D", "gone")
    assert list(copy.fetch().refs) == ["refs/heads/main"]
    assert not (copy.folder / "refs/heads/gone").exists()


def test_it_follows_a_branch_that_was_rewritten(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    old = upstream.commit("old")
    copy = mirror(upstream, tmp_path)
    copy.fetch()
    upstream.git("reset", "--hard", "--quiet", "HEAD~1")
    copy.fetch()
    with pytest.raises(OutsideError, match="outside of the branches"):
        copy.require(old)


def test_it_refuses_a_commit_of_another_branch(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    upstream.git("checkout", "--quiet", "-b", "fork")
    foreign = upstream.commit("not merged")
    mirror(upstream, tmp_path, "*").fetch()
    with pytest.raises(OutsideError):
        mirror(upstream, tmp_path, "main").require(foreign)
    mirror(upstream, tmp_path, "fork").require(foreign)


@pytest.mark.parametrize("sha", ["0" * 40, "f" * 64])
def test_it_says_that_a_commit_is_not_there(upstream: Upstream, tmp_path: Path, sha: str) -> None:
    upstream.commit()
    copy = mirror(upstream, tmp_path)
    copy.fetch()
    with pytest.raises(CommitError, match="not in the repository"):
        copy.require(sha)


@pytest.mark.parametrize("text", ["--output=x", "HEAD", "HEAD^{/x}", "a" * 39, "main", ""])
def test_it_takes_whole_hashes_only(upstream: Upstream, tmp_path: Path, text: str) -> None:
    with pytest.raises(CommitError, match="no commit hash"):
        mirror(upstream, tmp_path).archive(text, tmp_path / "out.tar")


def test_it_writes_every_file_as_it_was_committed(upstream: Upstream, tmp_path: Path) -> None:
    sha = upstream.commit(
        **{
            ".gitattributes": "*.py export-ignore\n*.txt export-subst filter=evil text eol=crlf\n",
            "model.py": "x = 1\n",
            "note.txt": "$Format:%H$\n",
        }
    )
    copy = mirror(upstream, tmp_path)
    copy.fetch()
    copy.archive(sha, tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as tar:
        content = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
    assert content["model.py"] == b"x = 1\n"
    assert content["note.txt"] == b"$Format:%H$\n"


def test_it_runs_no_hook_and_reads_no_configuration(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "ran"
    hook = f"#!/bin/sh\ntouch {proof}\n"
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "hook").write_text(hook)
    (tmp_path / "hook").chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {tmp_path}\n\tfsmonitor = {tmp_path}/hook\n"
        f"[uploadpack]\n\tpackObjectsHook = {tmp_path}/hook\n"
    )
    monkeypatch.setenv("HOME", str(home))
    for name in ("post-checkout", "pre-receive", "reference-transaction", "post-index-change"):
        path = upstream.folder / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(hook)
        path.chmod(0o755)
    sha = upstream.commit()
    proof.unlink(missing_ok=True)
    upstream.git("config", "core.fsmonitor", f"{tmp_path}/hook")
    upstream.git("config", "uploadpack.packObjectsHook", f"{tmp_path}/hook")
    copy = mirror(upstream, tmp_path)
    copy.update(frozenset())
    copy.archive(sha, tmp_path / "out.tar")
    assert not proof.exists()


def test_it_fetches_no_submodule(upstream: Upstream, tmp_path: Path) -> None:
    inner = Upstream.make(tmp_path / "inner")
    inner.commit()
    upstream.git(
        "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(inner.folder), "sub"
    )
    sha = upstream.commit()
    copy = mirror(upstream, tmp_path)
    copy.fetch()
    copy.archive(sha, tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as tar:
        assert not [name for name in tar.getnames() if name.startswith("sub/")]
    assert not (copy.folder / "modules").exists()


def test_it_starts_anew_when_the_address_changes(upstream: Upstream, tmp_path: Path) -> None:
    old = upstream.commit()
    mirror(upstream, tmp_path).fetch()
    other = Upstream.make(tmp_path / "other")
    other.commit("elsewhere", **{"other.txt": "x"})
    moved = dataclasses.replace(origin(upstream), address=str(other.folder))
    copy = Mirror(tmp_path / "var", moved)
    copy.fetch()
    assert not copy.has(old)


def test_it_names_what_git_says(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    (upstream.folder / ".git/HEAD").unlink()
    with pytest.raises(FetchError, match=r"cannot be reached: .*does not appear to be a git"):
        mirror(upstream, tmp_path).fetch()


def test_it_holds_a_repository_to_its_size(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (upstream.folder / "large.bin").write_bytes(os.urandom(1 << 20))
    upstream.commit()
    monkeypatch.setattr(gitsafe, "SIZE_LIMIT_BYTES", 1 << 18)
    with pytest.raises(FetchError, match="larger than 0 MiB"):
        mirror(upstream, tmp_path).fetch()


def test_it_ends_git_when_time_is_up(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.commit()
    monkeypatch.setattr(gitsafe, "FETCH_LIMIT_S", 0.0)
    with pytest.raises(FetchError, match="did not finish"):
        mirror(upstream, tmp_path).fetch()


def test_it_stops_when_told(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    stop = threading.Event()
    stop.set()
    with pytest.raises(StoppedError):
        Mirror(tmp_path / "var", origin(upstream), stop.is_set).fetch()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.8", "192.168.1.1", "169.254.169.254", "[::1]", "localhost"]
)
def test_it_stays_out_of_private_networks(upstream: Upstream, tmp_path: Path, host: str) -> None:
    local = dataclasses.replace(origin(upstream), address=f"https://{host}/repository.git")
    with pytest.raises((FetchError, Exception), match=r"private network|this machine's link"):
        Mirror(tmp_path / "var", local).fetch()
