"""Panel: the operators of a trace, sorted and filtered on the server."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.forms.traces import OperatorFilterForm
from dashboard.models import Trace
from dashboard.queries.traces import OPERATORS_SIZE, OperatorFilter, OperatorPage, operator_page


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsPanel:
    """What the panel shows; the form carries the errors of a bad filter."""

    trace: Trace
    form: OperatorFilterForm
    wanted: OperatorFilter
    page: OperatorPage
    size: int = OPERATORS_SIZE


def operators_panel(trace: Trace, form: OperatorFilterForm) -> OperatorsPanel:
    """The page of the operator table that the form asks for."""
    wanted = form.wanted()
    return OperatorsPanel(trace=trace, form=form, wanted=wanted, page=operator_page(trace, wanted))
