"""Reads behind the page of one iteration."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.models import Iteration
from dashboard.queries.tuning import RELATED, TRIED, IterationView
from dashboard.services.tuning_measured import UNMEASURED, Measured, concerns, measured_of
from profiler import units
from profiler.metrics import METRICS


def get_iteration(iteration_id: int) -> Iteration | None:
    """The iteration with its tuning and the rows its page names."""
    related = (*TRIED, "trace", *(f"tuning__{name}" for name in RELATED))
    return Iteration.objects.select_related(*related).filter(pk=iteration_id).first()


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationPage:
    """One iteration with what its page says of it; `against` is what speaks against keeping it."""

    view: IterationView
    against: tuple[str, ...]
    siblings: tuple[Iteration, ...]

    @property
    def row(self) -> Iteration:
        return self.view.row

    @property
    def may_decide(self) -> bool:
        """Whether it can be decided now: open, and nothing of it is being measured."""
        row = self.row
        measuring = row.comparison is not None and not row.comparison.is_terminal
        return not row.is_decided and row.tuning.is_open and not measuring

    @property
    def ratio(self) -> float | None:
        """How much of what was predicted came."""
        said, came = self.row.predicted_effect, self.view.effect
        return came / said if said and came is not None else None

    @property
    def previous(self) -> Iteration | None:
        before = [one for one in self.siblings if one.number < self.row.number]
        return before[-1] if before else None

    @property
    def following(self) -> Iteration | None:
        return next((one for one in self.siblings if one.number > self.row.number), None)

    @property
    def sentence(self) -> str:
        """The answer first: what it brought, or what it waits for."""
        view, row = self.view, self.row
        title = view.metric.title.lower()
        told = f"{title} {view.interval}" if view.interval else ""
        said = ""
        if row.predicted_effect is not None:
            said = f", predicted {units.change(row.predicted_effect)}"
        if row.is_decided:
            shown = f": {view.verdict}, {told}{said}" if told else f", {view.verdict}{said}"
            return f"{row.get_state_display()}{shown}"
        if view.state == "idea":
            return f"An idea: nothing was measured yet{said}"
        if view.state == "measuring":
            so_far = f", so far {told}" if told else ""
            return f"Being measured in pairs{so_far}{said}"
        return f"Waits for a decision: {view.verdict}{f', {told}' if told else ''}{said}"


def iteration_page(row: Iteration) -> IterationPage:
    """The iteration with the verdict from every pair stored by now."""
    metric = METRICS[row.tuning.metric]
    measured = Measured() if row.is_decided else measured_of(row)
    found = measured.verdict
    decided = row.is_decided or found is None
    view = IterationView(
        row=row,
        verdict=(row.verdict or UNMEASURED) if row.is_decided else measured.state,
        effect=row.effect if decided or found is None else found.effect,
        low=row.low if decided or found is None else found.low,
        high=row.high if decided or found is None else found.high,
        metric=metric,
    )
    return IterationPage(
        view=view,
        against=() if row.is_decided else concerns(row, measured),
        siblings=tuple(row.tuning.iterations.order_by("number")),
    )
