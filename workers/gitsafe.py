"""git with everything switched off that a repository could use to run code or reach elsewhere.

No hooks, no configuration but ours, no submodules, no prompts, no protocol
but the one of the registered address, no redirects, limits on time and on the
size of a pack.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dashboard import environ
from dashboard.services.addresses import Address
from profiler.errors import UserError, printable
from workers.hosts import HostError, look_up
from workers.launch import command_line

FETCH_LIMIT_S = environ.number("FETCH_LIMIT_S", 300, low=1)
SIZE_LIMIT_BYTES = int(environ.number("REPOSITORY_LIMIT_BYTES", 2 * 2**30, low=1 << 16))

_ANSWER_LIMIT_BYTES = 64 << 20
_WORDS_LIMIT_BYTES = 1 << 20
_POLL_S = 0.02
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.askPass=",
    "credential.helper=",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "transfer.bundleURI=false",
    "fetch.unpackLimit=1",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
)
_SSH = (
    "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes -oPermitLocalCommand=no -oForwardAgent=no "
    "-oClearAllForwardings=yes"
)


class FetchError(UserError):
    """A repository that could not be reached, or that is beyond the limits."""

    kind = "no_repository"


class StoppedError(Exception):
    """The process was told to stop while git ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Which way git may go for one command; nowhere unless told."""

    protocol: str = "none"
    options: tuple[str, ...] = ()
    ssh: str = _SSH
    trusted_folder: str = ""
    """A registered repository of this machine; it may belong to another user."""


NOWHERE = Reach()


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended."""

    code: int
    output: bytes
    last_words: str


def reach_of(address: Address, *, private_network: bool) -> Reach:
    """The way to `address`, nailed to the IP address looked up here: DNS cannot turn round later.

    Raises `FetchError` when the host lies in a network it must not.
    """
    if address.is_local:
        return Reach(protocol="file", trusted_folder=address.text)
    port = address.port or (443 if address.scheme == "https" else 22)
    ip = _look_up(address.host, port, private_network=private_network)
    if address.scheme == "https":
        pin = f"http.curloptResolve={address.host}:{port}:{ip}"
        return Reach(protocol="https", options=("-c", pin))
    return Reach(protocol="ssh", ssh=f"{_SSH} -oHostName={ip} -oHostKeyAlias={address.host}")


def _look_up(host: str, port: int, *, private_network: bool) -> str:
    try:
        return look_up(host, port, private_network=private_network)
    except HostError as error:
        raise FetchError(error.message, f"{error.hint} for this repository") from None


def git(
    words: Sequence[str],
    *,
    stopped: Callable[[], bool],
    reach: Reach = NOWHERE,
    stdin: str = "",
) -> Done:
    """Run git to its end; raises `FetchError` over the limits and `StoppedError` when stopped."""
    options = [word for setting in _SETTINGS for word in ("-c", setting)]
    with tempfile.TemporaryDirectory(prefix="daybreak-git-") as home:
        environment = _environment(Path(home), reach)
        command = ["git", *options, *reach.options, *words]
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as said,
        ):
            given.write(stdin.encode())
            given.seek(0)
            code = _run(command, environment, (given, out, said), stopped)
            told = _last_words(_content(said, _WORDS_LIMIT_BYTES), code)
            return Done(code=code, output=_content(out, _ANSWER_LIMIT_BYTES), last_words=told)


def checked(done: Done, what: str) -> bytes:
    """The answer of a command that has to succeed; raises `FetchError` with git's own words."""
    if done.code != 0:
        raise FetchError(f"{what}: {done.last_words}", "check the address and that it answers")
    return done.output


def _environment(home: Path, reach: Reach) -> dict[str, str]:
    """All the variables git gets; nothing of this process but its path."""
    configuration = home / "config"
    folder = reach.trusted_folder.replace("\\", "\\\\").replace('"', '\\"')
    trusted = [place for place in (folder, f"{folder}/.git") if folder]
    lines = [f'[safe]\n\tdirectory = "{place}"\n' for place in trusted]
    configuration.write_text("".join(lines))
    return {
        "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "GIT_ALLOW_PROTOCOL": reach.protocol,
        "GIT_ASKPASS": "/bin/false",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(configuration),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_SSH_COMMAND": reach.ssh,
        "GIT_TERMINAL_PROMPT": "0",
    }


def _run(
    command: list[str],
    environment: dict[str, str],
    files: tuple[BinaryIO, BinaryIO, BinaryIO],
    stopped: Callable[[], bool],
) -> int:
    """In a session of its own; its whole group ends when time is up or we are stopped."""
    stdin, stdout, stderr = files
    limits = {"core": 0, "fsize": SIZE_LIMIT_BYTES}
    process = subprocess.Popen(
        command_line(command, on_parent_end=signal.SIGKILL, session=True, limits=limits),
        env=environment,
        cwd="/",
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )
    deadline = time.monotonic() + FETCH_LIMIT_S
    while process.poll() is None:
        late = time.monotonic() > deadline
        if late or stopped():
            with suppress(ProcessLookupError):  # it has not yet made its session
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()
            if late:
                raise FetchError(
                    f"git did not finish within {FETCH_LIMIT_S:g} s",
                    "the repository is too large or too slow; FETCH_LIMIT_S gives it more time",
                )
            raise StoppedError
        time.sleep(_POLL_S)
    return process.returncode


def _content(file: BinaryIO, limit: int) -> bytes:
    file.seek(0)
    data = file.read(limit + 1)
    if len(data) > limit:
        raise FetchError("git's answer is too long", "the repository has too many branches")
    return data


def _last_words(said: bytes, code: int) -> str:
    """What git complained of first, on one line."""
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    if code == 128 + signal.SIGXFSZ or any("File too large" in line for line in lines):
        return f"it is larger than {SIZE_LIMIT_BYTES >> 20} MiB"
    told = next((line for line in lines if line.startswith("fatal: ")), lines[-1] if lines else "")
    return printable(told.removeprefix("fatal: ") or f"exit code {code}", 400)
