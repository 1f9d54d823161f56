"""What `profiler run` left behind, read back: one launch, or a folder of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from profiler.errors import UserError
from profiler.types import SCHEMA, Environment, Failure, Result

RESULT, ENVIRONMENT, ERROR = "result.json", "env.json", "error.json"
_MOST_BYTES = 256 << 20
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One fresh process; `result` is None when it failed, `failure` says how."""

    name: str
    result: Result | None
    environment: Environment | None
    failure: str = ""


def load_launches(path: Path) -> tuple[Launch, ...]:
    """The launches of one side, in the order of their names.

    `path` is a `result.json`, the folder of a run, or a folder of such
    folders. Raises `UserError` when there is none or one is damaged.
    """
    if path.is_file():
        return (_launch(path, path.parent),)
    if _holds_run(path):
        return (_launch(path / RESULT, path),)
    folders = sorted((f for f in _folders(path) if _holds_run(f)), key=_natural)
    if not folders:
        raise UserError(f"{path} holds no {RESULT}", "name what `profiler run --out` made")
    return tuple(_launch(folder / RESULT, folder) for folder in folders)


def _folders(path: Path) -> list[Path]:
    try:
        return [entry for entry in path.iterdir() if entry.is_dir()]
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path} cannot be read: {reason}", "check the path") from None


def _holds_run(folder: Path) -> bool:
    return (folder / RESULT).is_file() or (folder / ERROR).is_file()


def _natural(path: Path) -> tuple[tuple[int, str], ...]:
    """`pair-2` before `pair-10`."""
    parts = re.findall(r"\d{1,18}|\D+", path.name)
    return tuple((int(p), "") if p.isdecimal() else (-1, p) for p in parts)


def _launch(file: Path, folder: Path) -> Launch:
    if not file.is_file():
        failure = _read(folder / ERROR, Failure)
        return Launch(name=folder.name, result=None, environment=None, failure=failure.message)
    result = _read(file, Result)
    if result.schema != SCHEMA:
        raise UserError(
            f"{file} has schema {result.schema}, this version reads {SCHEMA}", "measure again"
        )
    stored = folder / ENVIRONMENT
    environment = _read(stored, Environment) if stored.is_file() else None
    return Launch(name=folder.name, result=result, environment=environment)


def _read(file: Path, kind: type[_Read]) -> _Read:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UserError(f"{file} is larger than 256 MiB", "no run leaves such a file")
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{file} cannot be read: {reason}", "check the path") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file} is damaged: {error}", "measure again") from None
