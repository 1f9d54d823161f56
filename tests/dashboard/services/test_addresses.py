"""What may be fetched from, and what can name a commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.services.addresses import (
    AddressError,
    RefError,
    check_inner_path,
    check_pattern,
    check_ref,
    is_allowed,
    parse_address,
)


@pytest.mark.parametrize(
    ("text", "scheme", "host"),
    [
        ("https://example.org/team/models.git", "https", "example.org"),
        ("https://example.org:8443/models", "https", "example.org"),
        ("ssh://git@example.org/team/models.git", "ssh", "example.org"),
        ("git@example.org:team/models.git", "ssh", "example.org"),
    ],
)
def test_it_takes_https_and_ssh(text: str, scheme: str, host: str) -> None:
    address = parse_address(text)
    assert (address.scheme, address.host) == (scheme, host)


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c id",
        "ext::sh",
        "fd::17",
        "file:///srv/models",
        "git://example.org/models.git",
        "http://example.org/models.git",
        "ftp://example.org/x",
        "--upload-pack=x",
        "-oProxyCommand=x",
        "ssh://-oProxyCommand=touch/x",
        "ssh://git@-oProxyCommand=x/models",
        "git@-host:models",
        "https://user:secret@example.org/models.git",
        "https://token@example.org/models.git",
        "https://example.org",
        "https://example.org/models.git?x=1",
        "https://example.org/models.git#x",
        "https://example.org:99999/models.git",
        "https://exa mple.org/models.git",
        "https://example.org/models.git\n",
        "https://example.org/mod\x00els",
        "https://169.254.169.254/latest",
        "https://[fe80::1]/x",
        "/etc",
        "/srv/../etc",
        "relative/path",
        "",
        "https://example.org/" + "x" * 500,
    ],
)
def test_it_refuses_every_other_address(text: str) -> None:
    with pytest.raises(AddressError):
        parse_address(text)


def test_it_takes_a_repository_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "bare.git" / "objects").mkdir(parents=True)
    (tmp_path / "work" / ".git" / "objects").mkdir(parents=True)
    assert parse_address(str(tmp_path / "bare.git")).is_local
    assert parse_address(str(tmp_path / "work")).is_local
    with pytest.raises(AddressError, match="is no git repository"):
        parse_address(str(tmp_path))


@pytest.mark.parametrize("text", ["main", "release/2.1", "HEAD", "v1.0", "a" * 40, "0" * 64, "x#1"])
def test_it_takes_branches_and_whole_hashes(text: str) -> None:
    assert check_ref(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "--output=x",
        "-x",
        "HEAD^{/x}",
        "main~1",
        "a..b",
        "a:b",
        "@",
        "main@{1}",
        "a b",
        "a\n",
        "",
        "a" * 39,
        "A" * 40,
        "deadbeef",
        "x.lock",
        "/main",
        "main/",
        "a//b",
        ".hidden",
        "x/.y",
        "x" * 300,
        "\u202emain",
    ],
)
def test_it_refuses_what_names_no_commit(text: str) -> None:
    with pytest.raises(RefError):
        check_ref(text)


@pytest.mark.parametrize("text", ["--all", "a b", "", "[a]", "a?b", "..", "-*"])
def test_it_refuses_a_pattern_that_no_branch_can_match(text: str) -> None:
    with pytest.raises(RefError):
        check_pattern(text)


@pytest.mark.parametrize(
    ("ref", "patterns", "allowed"),
    [
        ("refs/heads/main", ("main",), True),
        ("refs/heads/main2", ("main",), False),
        ("refs/heads/release/2", ("release/*",), True),
        ("refs/heads/any", ("*",), True),
        ("refs/tags/v1", ("*",), False),
        ("refs/tags/v1", ("tags/v*",), True),
        ("refs/pull/9/head", ("*",), False),
        ("refs/heads/--output=x", ("*",), False),
        ("HEAD", ("*",), False),
    ],
)
def test_it_knows_which_refs_may_be_measured(
    ref: str, patterns: tuple[str, ...], allowed: bool
) -> None:
    assert is_allowed(ref, patterns) is allowed


@pytest.mark.parametrize("text", ["/etc", "../x", "a/../b", "", "-x y", "a\x00"])
def test_it_refuses_folders_outside_the_repository(text: str) -> None:
    with pytest.raises(AddressError):
        check_inner_path(text)
