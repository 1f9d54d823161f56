"""Where a tuning or an iteration begins: a finding, a change, a run; forms filled from it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Max
from django.urls import reverse

from dashboard.models import Change, Platform, Run, RunState, Trace, Workload
from dashboard.queries.tuning_calibration import Calibration
from dashboard.queries.tuning_next import find_finding
from dashboard.services.tuning import FindingRef, open_tuning_of
from profiler import units
from profiler.analysis.report import FindingRow
from profiler.errors import printable
from profiler.metrics import METRICS

PLACES = 200
HYPOTHESIS_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPair:
    """A workload on a platform that was measured."""

    workload_id: int
    platform_id: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWish:
    """What an address names to start from."""

    run: Run | None = None
    trace: Trace | None = None
    kind: str = ""
    subject: str = ""
    change: Change | None = None

    @property
    def finding(self) -> FindingRow | None:
        """The finding as its trace tells it."""
        return find_finding(self.trace, self.kind, self.subject) if self.trace else None

    @property
    def query(self) -> dict[str, str]:
        """The same as it stands in an address."""
        values = {
            "trace": str(self.trace.pk) if self.trace else "",
            "kind": self.kind,
            "subject": self.subject,
            "change": str(self.change.pk) if self.change else "",
            "run": str(self.run.pk) if self.run else "",
        }
        return {name: value for name, value in values.items() if value}

    @property
    def place(self) -> tuple[int, int, int | None] | None:
        """Workload, platform and the run it was seen in; None where none is named."""
        if self.change is not None:
            return self.change.workload_id, self.change.platform_id, self.change.after_run_id
        run = self.run or (self.trace.run if self.trace else None)
        return (run.workload_id, run.platform_id, run.pk) if run else None


def measured_pairs() -> tuple[MeasuredPair, ...]:
    """What was measured where, the newest first."""
    runs = Run.objects.filter(state=RunState.SUCCEEDED, compared__isnull=True)
    found = runs.values("workload_id", "platform_id").annotate(newest=Max("id"))
    rows = list(found.order_by("-newest")[:PLACES])
    workloads = Workload.objects.select_related("model").in_bulk(
        {row["workload_id"] for row in rows}
    )
    platforms = Platform.objects.in_bulk({row["platform_id"] for row in rows})
    return tuple(
        MeasuredPair(
            workload_id=row["workload_id"],
            platform_id=row["platform_id"],
            words=_words(workloads[row["workload_id"]], platforms[row["platform_id"]]),
        )
        for row in rows
    )


def _words(workload: Workload, platform: Platform) -> str:
    return printable(f"{workload.model.name} · {workload} · {platform.slug}", 200)


def start_address(wish: StartWish) -> str:
    """A new iteration where the workload is being tuned there, else a new tuning."""
    query = f"?{urlencode(wish.query)}" if wish.query else ""
    place = wish.place
    if place is None:
        return f"{reverse('tuning-new')}{query}"
    found = open_tuning_of(place[0], place[1])
    if found is None:
        return f"{reverse('tuning-new')}{query}"
    return f"{reverse('iteration-new', args=[found.pk])}{query}"


def tuning_initial(wish: StartWish) -> dict[str, object]:
    """What the form for a new tuning starts from."""
    place = wish.place
    if place is None:
        return {}
    workload_id, platform_id, run_id = place
    run = Run.objects.select_related("commit__repository").filter(pk=run_id or 0).first()
    commit = run.commit if run else None
    if commit is None and wish.change is not None:
        commit = wish.change.after_commit
    values: dict[str, object] = {
        "place": f"{workload_id}-{platform_id}",
        "runs": str(run_id) if run_id else "",
        "repository": commit.repository.slug if commit else "",
    }
    return {name: value for name, value in (values | dict(wish.query)).items() if value}


def iteration_initial(wish: StartWish) -> dict[str, object]:
    """What the form for a new iteration starts from: the finding's words and its gain."""
    if wish.change is not None:
        return _of_change(wish.change)
    row = wish.finding
    if row is None:
        return {}
    values: dict[str, object] = {
        "hypothesis": printable(f"{row.title.rstrip('.')}. {row.advice}", HYPOTHESIS_CHARS)
    }
    if row.recoverable_ns_per_step:
        values["gain"] = round(row.share * 100, 2)
    return values


def _of_change(change: Change) -> dict[str, object]:
    culprit = f", mostly {change.culprit}" if change.culprit else ""
    effect, metric = change.shown_effect, METRICS[change.metric]
    words = (
        f"Mend the {units.change(effect)} of {metric.title.lower()} ({change.direction}) that "
        f"{change.after_commit.sha[:10]} brought{culprit}"
    )
    values: dict[str, object] = {"hypothesis": printable(words, HYPOTHESIS_CHARS)}
    # A time that rose by a quarter falls by a fifth when it is mended.
    lost = effect / (1 + effect) if metric.direction == "lower" else -effect
    if lost > 0:
        values["gain"] = round(lost * 100, 2)
    return values


def finding_ref(wish: StartWish) -> FindingRef | None:
    """The finding an iteration is stored with; None where it starts from none."""
    row = wish.finding
    if row is None:
        return None
    return FindingRef(
        kind=row.kind,
        subject=row.subject,
        title=row.title,
        trace=wish.trace,
        gain_ns=row.recoverable_ns_per_step,
        share=row.share,
    )


def hint_of(wish: StartWish, known: Calibration) -> str:
    """What predictions of this kind were worth; empty where that is not known yet."""
    record = next((found for found in known.kinds if found.kind == wish.kind), None)
    return record.sentence if record and wish.kind and record.factor is not None else ""
