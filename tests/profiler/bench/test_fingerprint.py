from __future__ import annotations

from time import perf_counter_ns

import pytest

from profiler.bench.devices import Device
from profiler.bench.fingerprint import fingerprint
from profiler.types import EXACT_ONLY, Environment

SECRET = "canary-2718281828"


def taken() -> Environment:
    return fingerprint(Device("cpu", perf_counter_ns))


def test_it_names_versions_threads_and_machine() -> None:
    fields = taken().fields
    assert {"torch", "transformers", "python", "kernel", "cpu", "torch_threads"} <= fields.keys()
    assert fields["device_kind"] == "cpu"


def test_it_gives_equal_hashes_for_equal_environments() -> None:
    assert taken() == taken()


def test_it_never_reads_a_variable_outside_its_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "DATABASE_URL", "OMP_SECRET"):
        monkeypatch.setenv(name, SECRET)
    assert SECRET not in repr(taken())


def test_it_compares_what_changes_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    before = taken()
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    after = taken()
    assert after.fields["env.OMP_PROC_BIND"] == "true"
    assert after.comparable_hash != before.comparable_hash


def test_it_compares_across_hosts_and_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    before = taken()
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    after = taken()
    assert {"host", "git_commit"} <= EXACT_ONLY
    assert after.comparable_hash == before.comparable_hash
    assert after.exact_hash != before.exact_hash


def test_it_lists_what_this_machine_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    environment = taken()
    assert {"git_commit", "git_dirty"} <= set(environment.missing)
    assert not environment.fields.keys() & set(environment.missing)
