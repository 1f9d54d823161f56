"""Which sentence an end gets; the cause is whoever ended it first."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

import pytest

from dashboard.models import FailureKind
from workers.ends import End, KilledBy, classify


@pytest.fixture
def end(tmp_path: Path) -> End:
    return End(
        wait_status=1 << 8,
        killed_by=None,
        limit_s=90.0,
        memory_bytes=1 << 30,
        kernel_oom=False,
        output=tmp_path,
        log_tail="",
    )


@pytest.mark.parametrize(
    ("by", "state", "kind", "counts"),
    [
        (KilledBy.TIME, "timed_out", "time_limit", True),
        (KilledBy.MEMORY, "failed", "oom_host", True),
        (KilledBy.CANCEL, "cancelled", "cancelled", True),
        (KilledBy.DRAIN, "requeue", "worker_fault", False),
        (KilledBy.DEVICE, "requeue", "worker_fault", False),
        (KilledBy.ORPHANED, "requeue", "worker_lost", True),
        (KilledBy.FENCE, "requeue", "worker_lost", True),
        (KilledBy.SUPERSEDED, "requeue", "worker_lost", True),
    ],
)
def test_it_names_the_killer(
    end: End, by: KilledBy, state: str, kind: str, *, counts: bool
) -> None:
    killed = dataclasses.replace(end, killed_by=by, wait_status=signal.SIGKILL, kernel_oom=True)
    outcome = classify(killed)
    assert (outcome.state, outcome.failure_kind, outcome.counts) == (state, kind, counts)


def test_it_knows_every_killer(end: End) -> None:
    kinds = {classify(dataclasses.replace(end, killed_by=by)).failure_kind for by in KilledBy}
    assert kinds <= set(FailureKind.values)


@pytest.mark.parametrize(
    ("kernel_oom", "kind"), [(True, FailureKind.OOM_HOST), (False, FailureKind.SIGNAL)]
)
def test_it_says_out_of_memory_only_with_evidence(end: End, kind: str, *, kernel_oom: bool) -> None:
    killed = dataclasses.replace(end, wait_status=signal.SIGKILL, kernel_oom=kernel_oom)
    assert classify(killed).failure_kind == kind


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        ("MemoryError", "oom_host"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate", "oom_host"),
        ("RuntimeError: [enforce] DefaultCPUAllocator: can't allocate memory", "oom_host"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "oom_device"),
        ("OSError: [Errno 28] No space left on device", "disk_full"),
        ("ValueError: nothing special", "crashed"),
        ("", "crashed"),
    ],
)
def test_it_reads_the_last_words(end: End, log: str, kind: str) -> None:
    outcome = classify(dataclasses.replace(end, log_tail=log))
    assert (outcome.state, outcome.failure_kind) == ("failed", kind)
    assert outcome.message


def test_it_quotes_the_exception_not_the_line_after_it(end: End) -> None:
    log = "Traceback\nValueError: bad shape\nwarning: 3 leaked objects\n"
    assert classify(dataclasses.replace(end, log_tail=log)).message.endswith(
        "ValueError: bad shape"
    )


def test_it_shows_foreign_control_characters_escaped(end: End) -> None:
    outcome = classify(dataclasses.replace(end, log_tail="RuntimeError: \x1b[31m\u202e"))
    assert outcome.message.isprintable()


@pytest.mark.parametrize("text", ["", "[]", '{"kind": 3}', "\udcff"])
def test_it_does_not_believe_a_broken_error_file(end: End, text: str) -> None:
    (end.output / "error.json").write_text(text, errors="surrogateescape")
    assert classify(dataclasses.replace(end, wait_status=65 << 8)).failure_kind == "bad_spec"


def test_it_does_not_follow_links_to_a_result(end: End, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("{}")
    for name in ("result.json", "env.json"):
        (end.output / name).symlink_to(tmp_path / "elsewhere")
    outcome = classify(dataclasses.replace(end, wait_status=0))
    assert outcome.failure_kind == FailureKind.INVALID_RESULT
