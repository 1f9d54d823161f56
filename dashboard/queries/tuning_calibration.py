"""What predictions were worth: predicted beside measured, of every decided iteration."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from dashboard.models import Iteration
from dashboard.models.tuning import DECIDED
from profiler.units import significant

SAID_FROM = 5
"""From so many measured predictions on a kind has a factor: fewer say too little."""
ROWS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One decided iteration with both figures: relative changes of its tuning's metric."""

    iteration_id: int
    tuning_id: int
    number: int
    kind: str
    state: str
    decided_at: datetime
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        """How much of what was said came: 1 is all, below 0 went the other way."""
        return self.measured / self.predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRecord:
    """All predictions of one kind of finding; `factor` is the median ratio, None of too few."""

    kind: str
    n: int
    factor: float | None

    @property
    def sentence(self) -> str:
        """`This kind tends to bring 0.8 × of what is said (7 measured)`."""
        if self.factor is None:
            return f"{self.n} measured; a factor is said from {SAID_FROM} on"
        return (
            f"This kind tends to bring {significant(self.factor, 2)} × of what is said "
            f"({self.n} measured)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Predictions in the order they were decided, and what each kind is worth."""

    rows: tuple[Prediction, ...]
    kinds: tuple[KindRecord, ...]

    def factor(self, kind: str) -> float | None:
        return next((record.factor for record in self.kinds if record.kind == kind), None)


def calibration() -> Calibration:
    """Of the whole installation: a kind of finding is worth the same in every tuning."""
    found = Iteration.objects.filter(
        state__in=DECIDED, predicted_effect__isnull=False, effect__isnull=False
    ).exclude(predicted_effect=0)
    columns = (
        "pk", "tuning_id", "number", "finding_kind", "state", "decided_at",
        "predicted_effect", "effect",
    )  # fmt: skip
    rows = tuple(
        Prediction(
            iteration_id=pk,
            tuning_id=tuning_id,
            number=number,
            kind=kind,
            state=state,
            decided_at=decided_at,
            predicted=predicted,
            measured=measured,
        )
        for pk, tuning_id, number, kind, state, decided_at, predicted, measured in reversed(
            found.order_by("-decided_at", "-pk").values_list(*columns)[:ROWS]
        )
    )
    return Calibration(rows=rows, kinds=_kinds(rows))


def _kinds(rows: tuple[Prediction, ...]) -> tuple[KindRecord, ...]:
    ratios: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        ratios[row.kind].append(row.ratio)
    return tuple(
        KindRecord(
            kind=kind,
            n=len(found),
            factor=statistics.median(found) if len(found) >= SAID_FROM else None,
        )
        for kind, found in sorted(ratios.items())
    )
