"""Lay out a commit's files, or keep what its build made: `python -m workers.checkout ACTION ...`.

A process below the supervisor, so that it ends with its run. `lay-out FOLDER
NAME` makes FOLDER/NAME from the cache of builds or from the mirror, which is
fetched when the commit is not in it. `keep FOLDER NAME` stores a built tree.
What a person can mend is left in FOLDER/NAME.error.json, exit code 65.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import secrets
import shutil
import sys
import tarfile
from pathlib import Path

import msgspec

from dashboard import environ
from dashboard.services.contract import Source
from profiler.errors import ExitCode, UserError, printable
from profiler.types import Failure
from workers.gitsafe import SIZE_LIMIT_BYTES
from workers.job import Spool, Tree, remove, write_durably
from workers.mirror import Mirror

BUILDS_FOLDER = "builds"
BUILD_CACHE_BYTES = int(environ.number("BUILD_CACHE_BYTES", 10 * 2**30))
FILES_LIMIT = 200_000
_NAMED = ("CC", "CXX", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
_PREFIXES = ("CUDA_", "TORCH", "PYTORCH_", "HIP_", "ROCM_", "ASCEND_", "ONEAPI_")


class CheckoutError(UserError):
    """A commit whose files cannot be laid out."""

    kind = "checkout_failed"


def lay_out(var_dir: Path, source: Source, target: Path) -> bool:
    """Make `target` from the commit; True when it is built already.

    Raises `UserError`: the repository cannot be reached, the commit is unknown
    or outside of the allowed branches, or its files cannot be laid out.
    """
    mirror = Mirror(var_dir, source.origin)
    if not mirror.has(source.sha):
        mirror.fetch()
    mirror.require(source.sha)
    if source.build_command and _take_kept(kept_path(var_dir, source), target):
        return True
    packed = target.with_name(f"{target.name}.tar")
    mirror.archive(source.sha, packed)
    extract(packed, target)
    packed.unlink()
    return False


def extract(packed: Path, target: Path) -> None:
    """Unpack a tar of files, folders and links that stay inside; raises `CheckoutError`."""
    target.mkdir(mode=0o700)
    size = count = 0
    try:
        with tarfile.open(packed) as tar:
            for member in tar:
                size, count = size + member.size, count + 1
                if size > SIZE_LIMIT_BYTES or count > FILES_LIMIT:
                    raise CheckoutError(
                        f"The commit's files are more than {SIZE_LIMIT_BYTES >> 20} MiB or "
                        f"{FILES_LIMIT:,}",
                        "REPOSITORY_LIMIT_BYTES allows more",
                    )
                tar.extract(member, target, filter="data")
    except tarfile.FilterError as error:
        raise CheckoutError(
            f"The commit holds what must not be laid out: {printable(str(error), 200)}",
            "remove links that lead out of the tree",
        ) from None
    except tarfile.TarError as error:
        raise CheckoutError(f"The commit's files cannot be read: {error}", "try again") from None


def keep(var_dir: Path, source: Source, tree: Path) -> None:
    """Store a built tree for later runs of the same commit in the same environment."""
    path = kept_path(var_dir, source)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with tarfile.open(draft, "w", format=tarfile.PAX_FORMAT) as tar:
            for child in sorted(tree.iterdir()):
                tar.add(child, arcname=child.name)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    forget_builds(var_dir, BUILD_CACHE_BYTES)


def forget_builds(var_dir: Path, limit_bytes: int) -> int:
    """Delete the builds that were not used for longest, until the rest fits; how many."""
    found = []
    for path in (var_dir / BUILDS_FOLDER).glob("*.tar"):
        try:
            found.append((path.stat().st_mtime, path.stat().st_size, path))
        except FileNotFoundError:  # somebody else deletes at the same time
            continue
    total, gone = 0, 0
    for _, size, path in sorted(found, reverse=True):
        total += size
        if total > limit_bytes:
            path.unlink(missing_ok=True)
            gone += 1
    return gone


def kept_path(var_dir: Path, source: Source) -> Path:
    """Where the build of a commit in this environment is kept."""
    parts = [
        str(source.origin.repository_id),
        source.origin.address,
        source.sha,
        *source.build_command,
        environment_hash(),
    ]
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
    return var_dir / BUILDS_FOLDER / f"{digest}.tar"


def environment_hash() -> str:
    """Covers what a build depends on: interpreter, machine, installed packages, compilers."""
    packages = sorted(
        f"{found.name}=={found.version}" for found in importlib.metadata.distributions()
    )
    named = {n: v for n, v in os.environ.items() if n in _NAMED or n.startswith(_PREFIXES)}
    compilers = [shutil.which(os.environ.get(name, word)) for name, word in _COMPILERS]
    facts = [
        sys.version,
        sys.prefix,
        platform.machine(),
        platform.libc_ver(),
        packages,
        sorted(named.items()),
        [(path, os.stat(path).st_mtime_ns) if path else None for path in compilers],
    ]
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()


_COMPILERS = (("CC", "cc"), ("CXX", "c++"), ("CUDACXX", "nvcc"))


def _take_kept(path: Path, target: Path) -> bool:
    """Unpack a kept build; one that cannot be unpacked is forgotten."""
    try:
        os.utime(path)
        extract(path, target)
    except FileNotFoundError:
        return False
    except (CheckoutError, OSError) as error:
        sys.stderr.write(f"the kept build is not used: {printable(str(error))}\n")
        path.unlink(missing_ok=True)
        if target.exists():
            remove(target)
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Command line: action, spool folder, name of the tree."""
    action, folder, name = sys.argv[1:] if arguments is None else arguments
    spool = Spool(Path(folder))
    job = spool.read_job()
    tree = next(tree for tree in job.trees if tree.name == name)
    target = spool.folder / name
    var_dir = Path(job.var_dir)
    if action == "keep":
        keep(var_dir, tree.source, target)
        return int(ExitCode.FINE)
    return _lay_out(var_dir, tree, target)


def _lay_out(var_dir: Path, tree: Tree, target: Path) -> int:
    try:
        built = lay_out(var_dir, tree.source, target)
    except UserError as error:
        told = Failure(kind=error.kind, message=error.message, hint=error.hint)
        write_durably(target.with_name(f"{tree.name}.error.json"), msgspec.json.encode(told))
        sys.stderr.write(f"{error.line()}\n")
        return int(ExitCode.BAD_INPUT)
    if built:
        target.with_name(f"{tree.name}.built").touch()
    return int(ExitCode.FINE)


if __name__ == "__main__":
    sys.exit(main())
