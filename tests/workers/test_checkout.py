"""A commit's files on the worker: laid out, built once, never outside of their folder."""

from __future__ import annotations

import dataclasses
import io
import os
import tarfile
from pathlib import Path

import pytest

from dashboard.services.contract import Origin, Source
from tests.workers.repository import Upstream
from workers import checkout
from workers.checkout import CheckoutError, extract, forget_builds, keep, kept_path, lay_out
from workers.mirror import CommitError, OutsideError

pytestmark = pytest.mark.fault


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "upstream")


def source(upstream: Upstream, sha: str, **changes: object) -> Source:
    origin = Origin(
        repository_id=1,
        address=str(upstream.folder),
        private_network=False,
        allowed_refs=("main",),
    )
    return dataclasses.replace(Source(origin=origin, sha=sha), **changes)  # type: ignore[arg-type]


def packed(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_it_lays_a_commit_out(upstream: Upstream, tmp_path: Path) -> None:
    sha = upstream.commit(src__model__py="", run="echo hi\n")
    os.chmod(upstream.folder / "run", 0o755)
    sha = upstream.commit(run="echo ho\n")
    assert not lay_out(tmp_path / "var", source(upstream, sha), tmp_path / "tree")
    assert (tmp_path / "tree/run").read_text() == "echo ho\n"
    assert os.access(tmp_path / "tree/run", os.X_OK)
    assert not (tmp_path / "tree/.git").exists()


def test_it_fetches_a_commit_that_is_newer_than_its_mirror(
    upstream: Upstream, tmp_path: Path
) -> None:
    for number in range(2):
        sha = upstream.commit()
        lay_out(tmp_path / "var", source(upstream, sha), tmp_path / f"tree{number}")
    assert (tmp_path / "tree1/count.txt").read_text() == "2"


def test_it_needs_no_network_for_a_commit_it_has(upstream: Upstream, tmp_path: Path) -> None:
    sha = upstream.commit()
    lay_out(tmp_path / "var", source(upstream, sha), tmp_path / "one")
    upstream.folder.rename(tmp_path / "moved")
    lay_out(tmp_path / "var", source(upstream, sha), tmp_path / "two")
    assert (tmp_path / "two/count.txt").exists()


def test_it_says_what_is_wrong_with_a_commit(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit()
    upstream.git("checkout", "--quiet", "-b", "fork")
    foreign = upstream.commit()
    with pytest.raises(CommitError):
        lay_out(tmp_path / "var", source(upstream, foreign), tmp_path / "tree")
    upstream.git("checkout", "--quiet", "main")
    upstream.git("merge", "--quiet", "fork")
    lay_out(tmp_path / "var", source(upstream, foreign), tmp_path / "tree")
    upstream.git("reset", "--quiet", "--hard", "HEAD~1")
    later = upstream.commit()
    lay_out(tmp_path / "var", source(upstream, later), tmp_path / "later")
    with pytest.raises(OutsideError):
        lay_out(tmp_path / "var", source(upstream, foreign), tmp_path / "again")


@pytest.mark.parametrize(
    "bad",
    [
        member("../escape"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("link", tarfile.SYMTYPE, "../../x"),
        member("hard", tarfile.LNKTYPE, "/etc/passwd"),
        member("pipe", tarfile.FIFOTYPE),
        member("device", tarfile.CHRTYPE),
    ],
    ids=lambda info: f"{info.name}-{info.linkname}",
)
def test_it_lays_nothing_outside_of_its_folder(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    with pytest.raises(CheckoutError, match="must not be laid out"):
        extract(packed(tmp_path / "x.tar", member("a"), bad), tmp_path / "tree")


def test_it_refuses_a_link_that_was_committed(upstream: Upstream, tmp_path: Path) -> None:
    (upstream.folder / "link").symlink_to("/etc")
    sha = upstream.commit(**{"other.txt": "x"})
    with pytest.raises(CheckoutError):
        lay_out(tmp_path / "var", source(upstream, sha), tmp_path / "tree")


def test_it_takes_a_link_that_stays_inside(upstream: Upstream, tmp_path: Path) -> None:
    (upstream.folder / "alias.txt").symlink_to("real.txt")
    sha = upstream.commit(**{"real.txt": "x"})
    lay_out(tmp_path / "var", source(upstream, sha), tmp_path / "tree")
    assert (tmp_path / "tree/alias.txt").read_text() == "x"


def test_it_refuses_more_files_than_it_may_lay_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "FILES_LIMIT", 2)
    with pytest.raises(CheckoutError, match="more than"):
        extract(packed(tmp_path / "x.tar", *map(member, "abc")), tmp_path / "tree")


def test_it_keeps_a_build_for_the_next_run(upstream: Upstream, tmp_path: Path) -> None:
    built = source(upstream, upstream.commit(), build_command=("make",))
    assert not lay_out(tmp_path / "var", built, tmp_path / "one")
    (tmp_path / "one/made.so").write_text("machine code")
    keep(tmp_path / "var", built, tmp_path / "one")
    assert lay_out(tmp_path / "var", built, tmp_path / "two")
    assert (tmp_path / "two/made.so").read_text() == "machine code"


def test_it_builds_anew_for_another_command_or_environment(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = source(upstream, "a" * 40, build_command=("make",))
    other = dataclasses.replace(plain, build_command=("make", "-O3"))
    paths = {kept_path(tmp_path, plain), kept_path(tmp_path, other)}
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda-13")
    paths.add(kept_path(tmp_path, plain))
    assert len(paths) == 3


def test_it_forgets_a_damaged_build(upstream: Upstream, tmp_path: Path) -> None:
    built = source(upstream, upstream.commit(), build_command=("make",))
    path = kept_path(tmp_path / "var", built)
    path.parent.mkdir(parents=True)
    packed(path, member("link", tarfile.SYMTYPE, "/etc"))
    assert not lay_out(tmp_path / "var", built, tmp_path / "tree")
    assert (tmp_path / "tree/count.txt").exists()
    assert not path.exists()


def test_it_forgets_the_builds_that_were_not_used_for_longest(tmp_path: Path) -> None:
    folder = tmp_path / checkout.BUILDS_FOLDER
    folder.mkdir()
    for age in range(4):
        path = folder / f"{age}.tar"
        path.write_bytes(bytes(1000))
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert forget_builds(tmp_path, 2500) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["0.tar", "1.tar"]
