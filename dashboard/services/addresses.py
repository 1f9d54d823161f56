"""Addresses of repositories and names of refs: what is accepted at all. Pure text, no git.

Everything here is checked again before git sees it, so a row that was changed
behind our back is no way around it.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from profiler.errors import UserError, printable

SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HEX = re.compile(r"[0-9a-fA-F]{7,64}")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=@#%,!-]{0,199}")
_PATTERN = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_./+=@#%,!*-]{0,199}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")
_URL_PATH = re.compile(r"/[A-Za-z0-9_~][A-Za-z0-9_.~/+@-]{0,300}")
_SCP = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):(?!/)(.+)")
_INNER_PATH = re.compile(r"(?!/)(?!.*(?:^|/)\.\.(?:/|$))[A-Za-z0-9_.][A-Za-z0-9_./-]{0,199}")
ALLOWED = "https://host/path, ssh://user@host/path or the full path of a repository on this machine"


class AddressError(UserError):
    """An address that is not fetched from, whoever asks."""

    kind = "bad_address"


class RefError(UserError):
    """A name that cannot be a branch, a tag or a commit."""

    kind = "bad_ref"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A checked address: `host` is empty for a folder of this machine."""

    text: str
    scheme: str
    host: str = ""
    port: int | None = None

    @property
    def is_local(self) -> bool:
        return self.scheme == "path"


def parse_address(text: str) -> Address:
    """A checked address; raises `AddressError` saying what is wrong with it."""
    if text != text.strip() or not text.isprintable() or len(text) > 400:
        raise AddressError("The address holds spaces, control characters or is too long", ALLOWED)
    if text.startswith("/"):
        return _local(text)
    found = _SCP.fullmatch(text)
    if found:
        text = f"ssh://{found[1]}@{found[2]}/{found[3]}"
    return _remote(text)


def _local(text: str) -> Address:
    path = Path(text)
    if ".." in path.parts:
        raise AddressError(f"The path {printable(text, 200)} goes upwards", "write the full path")
    if not any((path / inner / "objects").is_dir() for inner in ("", ".git")):
        raise AddressError(
            f"{printable(text, 200)} is no git repository", "name its top folder, or a bare one"
        )
    return Address(text=str(path), scheme="path")


def _remote(text: str) -> Address:
    shown = printable(text, 200)
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise AddressError(f"{shown} is no address", ALLOWED) from None
    if parts.scheme not in {"https", "ssh"}:
        raise AddressError(f"Addresses such as {shown} are not fetched from", ALLOWED)
    user = parts.username or ""
    if parts.password or (user and parts.scheme == "https"):
        raise AddressError("The address holds a name or password", "leave credentials out of it")
    if user and not _USER.fullmatch(user):
        raise AddressError("The user name in the address cannot be", ALLOWED)
    if not _HOST.fullmatch(parts.netloc.rpartition("@")[2].removesuffix(f":{port}")):
        raise AddressError(f"The host of {shown} cannot be", ALLOWED)
    if not _URL_PATH.fullmatch(parts.path) or parts.query or parts.fragment:
        raise AddressError(f"The path of {shown} cannot be", ALLOWED)
    if _is_link_local(host):
        raise AddressError(f"{host} is an address of this machine's link", "name another host")
    return Address(text=text, scheme=parts.scheme, host=host, port=port)


def _is_link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False


def check_ref(text: str) -> str:
    """`text` if it can name a branch, a tag, HEAD or a whole commit; else `RefError`.

    An abbreviated hash is refused: a branch could carry its name.
    """
    shown = printable(text, 80)
    if SHA.fullmatch(text):
        return text
    if _HEX.fullmatch(text):
        raise RefError(f"{shown} is a part of a commit's hash", "write all 40 digits of it")
    if not _REF.fullmatch(text) or not _is_ref_path(text):
        raise RefError(
            f"{shown!r} can be no branch, tag or commit", "write a branch name or 40 hex digits"
        )
    return text


def check_pattern(text: str) -> str:
    """`text` if it can say which branches may be measured (`main`, `release/*`, `tags/v*`, `*`)."""
    if not _PATTERN.fullmatch(text) or not _is_ref_path(text.replace("*", "x")):
        raise RefError(f"{printable(text, 80)!r} can be no branch", "for example main or release/*")
    return text


def _is_ref_path(text: str) -> bool:
    """git's own rules for names, as far as the characters let through leave anything to rule."""
    parts = text.split("/")
    return (
        ".." not in text
        and "@{" not in text
        and text != "@"
        and all(part and not part.startswith(".") for part in parts)
        and not any(part.endswith((".", ".lock")) for part in parts)
    )


def is_allowed(ref: str, patterns: tuple[str, ...]) -> bool:
    """Whether a full ref (`refs/heads/main`, `refs/tags/v1`) is one of those that may be measured.

    `*` alone means every branch; tags are named with `tags/` in front.
    """
    if ref.startswith("refs/heads/"):
        name = ref.removeprefix("refs/heads/")
    elif ref.startswith("refs/tags/"):
        name = ref.removeprefix("refs/")
    else:
        return False
    if not _REF.fullmatch(name) or not _is_ref_path(name):
        return False
    wanted = (p for p in patterns if p.startswith("tags/") or not name.startswith("tags/"))
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)


def check_inner_path(text: str) -> str:
    """`text` if it is a folder inside a repository; `.` is its top."""
    if not _INNER_PATH.fullmatch(text):
        raise AddressError(
            f"{printable(text, 80)!r} is no folder inside the repository", "for example . or src"
        )
    return text
