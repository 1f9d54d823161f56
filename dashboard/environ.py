"""Settings come from the environment alone; a wrong value is a loud, named error."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str = "") -> str:
    """The variable, or the content of the file that `<name>_FILE` names."""
    file = os.environ.get(f"{name}_FILE")
    if file:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE={file}: {error.strerror}") from None
    return os.environ.get(name, default)


def flag(name: str, *, default: bool = False) -> bool:
    """0/1, false/true, no/yes, off/on."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no")


def number(name: str, default: float, *, low: float = 0, high: float = 1e12) -> float:
    """A number between `low` and `high`."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        parsed = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a number") from None
    if not low <= parsed <= high:
        raise ImproperlyConfigured(f"{name}={value} is outside {low:g} to {high:g}")
    return parsed


def names(name: str, default: str) -> list[str]:
    """A comma-separated list."""
    return [part.strip() for part in os.environ.get(name, default).split(",") if part.strip()]


def folder(path: Path) -> str:
    """`path` as a private folder that exists."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"folder {path} cannot be made: {error.strerror}") from None
    return str(path)


def private_secret(path: Path) -> str:
    """The secret kept in `path` (0600), made on first use; safe when several processes race."""
    folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(secrets.token_urlsafe(48))
        try:
            os.link(draft, path)
        except FileExistsError:
            return path.read_text()
        finally:
            draft.unlink()
    return path.read_text()
