"""Verbs on traces: upload one or the ranks of a job, claim, deliver, read again, redact."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.db import transaction

from dashboard.models import Artifact, Operator, Trace, TraceSet, TraceState, User
from dashboard.services import artifacts, audit, events, history
from dashboard.services.clock import db_now
from dashboard.services.contract import (
    PROTOCOL,
    SupersededError,
    TraceClaim,
    TraceOutcome,
    WorkerIdentity,
)
from dashboard.services.known import known_of
from profiler.analysis.report import Report, load_report
from profiler.errors import UserError, printable
from profiler.trace.ranks import rank_in_name

GZIP = b"\x1f\x8b"
LEADING = b" \t\r\n"
BOM = b"\xef\xbb\xbf"
NAME_LIMIT = 500


class TooLargeError(UserError):
    """More bytes than an upload may have."""

    kind = "too_large"


class TraceStateError(UserError):
    """The trace is not in a state that allows this."""

    kind = "trace_state"


class Upload(Protocol):
    """What Django hands over for an uploaded file."""

    name: str | None

    def chunks(self) -> Iterable[bytes]: ...


def add_upload(upload: Upload, user: User) -> Trace:
    """Store an uploaded trace and queue its reading.

    Raises `UserError` when it is empty or neither JSON nor gzip,
    `TooLargeError` over the limit, `StoreFullError` without room.
    """
    raw = _kept(upload)
    with transaction.atomic():
        return _queued(Trace(name=_name(upload), raw=raw), user)


def add_uploads(uploads: Sequence[Upload], user: User) -> TraceSet:
    """Store the traces of several ranks as one set: all of them, or none.

    A rank is what the name says, else the place in the upload; what the file
    itself records replaces it once the file is read. Raises as `add_upload`.
    """
    kept = [_kept(upload) for upload in uploads]
    with transaction.atomic():
        whole = TraceSet.objects.create(uploaded_by=user, created_at=db_now())
        for place, (upload, raw) in enumerate(zip(uploads, kept, strict=True)):
            name = _name(upload)
            rank = rank_in_name(name)
            rank = place if rank is None else rank
            _queued(Trace(name=name, raw=raw, set=whole, rank=rank), user)
    return whole


def _name(upload: Upload) -> str:
    return printable(upload.name or "trace", limit=255)


def _kept(upload: Upload) -> Artifact:
    """The bytes of an upload in the store, looked at before."""
    folder = Path(settings.FILE_UPLOAD_TEMP_DIR)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".part") as part:
        for chunk in _limited(upload.chunks()):
            part.write(chunk)
        part.flush()
        path = Path(part.name)
        _check_magic(path, _name(upload))
        return artifacts.keep(path)


def _queued(trace: Trace, user: User) -> Trace:
    now = db_now()
    trace.uploaded_by, trace.created_at = user, now
    trace.save(force_insert=True)
    events.ring_for_trace(trace, now)
    audit.note(user, "trace.upload", f"trace {trace.pk}", {"sha256": trace.raw.sha256})
    return trace


def reingest(trace_id: int, user: User) -> Trace:
    """Read a trace again from its raw file, for example after an upgrade of the reader."""
    with transaction.atomic():
        trace = _read_again(Trace.objects.select_for_update().get(pk=trace_id))
        audit.note(user, "trace.again", f"trace {trace_id}")
    return trace


def redact(trace_id: int, user: User) -> Trace:
    """Have a trace read again so that a copy without personal details is written too."""
    with transaction.atomic():
        trace = Trace.objects.select_for_update().get(pk=trace_id)
        if trace.state == TraceState.REJECTED:
            raise TraceStateError(f"Trace {trace_id} cannot be read", "record it again")
        trace = _read_again(trace, redaction_wanted=True)
        audit.note(user, "trace.redact", f"trace {trace_id}")
    return trace


def _read_again(trace: Trace, **changes: bool) -> Trace:
    """Back to the queue; what was read before stays until the new reading is delivered."""
    if trace.raw.removed_at is not None:
        gone = artifacts.removal_of(trace.raw)
        raise TraceStateError(gone.message, "record it again")
    if not trace.is_terminal:
        raise TraceStateError(f"Trace {trace.pk} is being read already", "wait for it to end")
    queued = {"state": TraceState.PENDING, "attempt": 0, "ended_at": None, "rung_at": None}
    Trace.objects.filter(pk=trace.pk, fence=trace.fence).update(
        **queued, reason="", hint="", **changes
    )
    trace.refresh_from_db()
    events.ring_for_trace(trace, db_now())
    return trace


def next_traces(limit: int) -> list[tuple[int, int]]:
    """Claimable traces, oldest first: (trace id, attempt a claim would make)."""
    rows = Trace.objects.filter(state=TraceState.PENDING).order_by("id")
    return [(pk, attempt + 1) for pk, attempt in rows.values_list("pk", "attempt")[:limit]]


def claim_trace(trace_id: int, attempt: int, worker: WorkerIdentity) -> TraceClaim | None:
    """Take a pending trace; None when it is not to be had."""
    trace = Trace.objects.select_related("raw").filter(pk=trace_id).first()
    if trace is None or worker.protocol != PROTOCOL:
        return None
    # One statement decides who has it; what is known beside it takes longer to find.
    taken = Trace.objects.filter(
        pk=trace_id, state=TraceState.PENDING, attempt=attempt - 1, fence=trace.fence
    ).update(
        state=TraceState.INGESTING,
        attempt=attempt,
        fence=trace.fence + 1,
        lease_until=_lease_end(),
    )
    if not taken:
        return None
    return TraceClaim(
        trace_id=trace_id,
        attempt=attempt,
        fence=trace.fence + 1,
        name=trace.name,
        sha256=trace.raw.sha256,
        redact=trace.redaction_wanted,
        known=known_of(trace),
    )


def renew_trace(trace_id: int, fence: int) -> None:
    """Extend the lease; raises `SupersededError` when the trace is not ours any more."""
    held = Trace.objects.filter(pk=trace_id, state=TraceState.INGESTING, fence=fence)
    if not held.update(lease_until=_lease_end()):
        raise SupersededError(f"trace {trace_id} fence {fence}")


def deliver_trace(trace_id: int, fence: int, outcome: TraceOutcome) -> None:
    """Store what was read, or why nothing could be; raises `SupersededError`."""
    if outcome.state == TraceState.REJECTED:
        return _reject(trace_id, fence, outcome)
    paths = {file.name: file.path for file in outcome.files}
    report = load_report(paths["report.json"])
    kept = artifacts.keep_all(paths.items())
    with transaction.atomic():
        _accept(trace_id, fence, report, kept)
        Operator.objects.filter(trace_id=trace_id).delete()
        Operator.objects.bulk_create(_operators(trace_id, report), batch_size=500)
        history.note_trace(Trace.objects.select_related("run").get(pk=trace_id), report)


def _accept(trace_id: int, fence: int, report: Report, kept: dict[str, Artifact]) -> None:
    held = Trace.objects.filter(pk=trace_id, state=TraceState.INGESTING, fence=fence)
    won = held.update(
        state=TraceState.READY,
        lease_until=None,
        ended_at=db_now(),
        report=kept["report.json"],
        flame=kept["flame.speedscope.json.gz"],
        graph=kept.get("flamegraph.json.gz"),
        replay=kept.get("replay.bin"),
        columns=kept.get("events.parquet"),
        collectives=kept.get("collectives.json"),
        profile=kept.get("stepprofile.json.gz"),
        redacted=kept.get("redacted.json.gz"),
        device_kind=report.trace.device_kind[:40],
        events=report.trace.events,
        span_ns=report.span_ns,
        steps=len(report.steps),
        parser_version=str(report.schema),
    )
    if not won:
        raise SupersededError(f"trace {trace_id} fence {fence}")
    if report.trace.rank is not None and report.trace.rank >= 0:
        # A file of a set may say itself which rank it is of: that counts, not its name.
        Trace.objects.filter(pk=trace_id, set__isnull=False).update(rank=report.trace.rank)


@transaction.atomic
def _reject(trace_id: int, fence: int, outcome: TraceOutcome) -> None:
    won = Trace.objects.filter(pk=trace_id, state=TraceState.INGESTING, fence=fence).update(
        state=TraceState.REJECTED,
        lease_until=None,
        ended_at=db_now(),
        reason=outcome.reason[:500] or "The file could not be read",
        hint=outcome.hint[:500],
    )
    if not won:
        raise SupersededError(f"trace {trace_id} fence {fence}")


def sweep_traces(now: datetime) -> list[int]:
    """Traces whose reader is gone are read again, or rejected after the last attempt."""
    limit = now - timedelta(seconds=settings.GRACE_S)
    rows = Trace.objects.filter(state=TraceState.INGESTING, lease_until__lt=limit)
    return [trace.pk for trace in rows if _take_back(trace, now)]


@transaction.atomic
def _take_back(trace: Trace, now: datetime) -> bool:
    used_up = trace.attempt >= settings.MAX_ATTEMPTS
    held = Trace.objects.filter(pk=trace.pk, state=TraceState.INGESTING, fence=trace.fence)
    if used_up:
        return bool(
            held.update(
                state=TraceState.REJECTED,
                fence=trace.fence + 1,
                lease_until=None,
                ended_at=now,
                reason=f"Reading it was interrupted {trace.attempt} times",
                hint="see Status for the workers, then read it again",
            )
        )
    won = held.update(state=TraceState.PENDING, fence=trace.fence + 1, lease_until=None)
    if won:
        events.ring_for_trace(trace, now)
    return bool(won)


def _operators(trace_id: int, report: Report) -> Iterator[Operator]:
    """One row per operator; names that only differ past the column's width are kept apart."""
    seen: set[str] = set()
    for index, row in enumerate(report.operators):
        name = _cut(row.name)
        if name in seen:
            name = f"{name[: NAME_LIMIT - 12]}…#{index}"
        seen.add(name)
        yield Operator(
            trace_id=trace_id,
            name=name.replace("\0", "\\x00"),
            canonical=_cut(row.canonical or row.name).replace("\0", "\\x00"),
            count=row.count,
            host_total_ns=row.host_total_ns,
            host_self_ns=row.host_self_ns,
            device_total_ns=row.device_total_ns,
            device_self_ns=row.device_self_ns,
        )


def _cut(name: str) -> str:
    return name if len(name) <= NAME_LIMIT else name[: NAME_LIMIT - 1] + "…"


def _lease_end() -> datetime:
    return db_now() + timedelta(seconds=settings.LEASE_S)


def _limited(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks, counted; what the sender claimed about the length does not matter."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > settings.UPLOAD_LIMIT_BYTES:
            limit = settings.UPLOAD_LIMIT_BYTES / 2**20
            raise TooLargeError(
                f"The file is larger than {limit:,.0f} MiB",
                "compress it with gzip, or record fewer steps",
            )
        yield chunk


def _check_magic(path: Path, name: str) -> None:
    """Only JSON text or gzip: everything else is refused by its first bytes, not its name."""
    with path.open("rb") as handle:
        head = handle.read(4096)
    if not head:
        raise UserError(f"The file is empty: {name}", "record it again and check its size")
    text = head.removeprefix(BOM).lstrip(LEADING)
    if not head.startswith(GZIP) and text[:1] not in {b"{", b"["}:
        raise UserError(
            f"The file is neither JSON nor gzip: {name}",
            "upload what export_chrome_trace() wrote",
        )
