"""Pages of bisects: the list, a new one, one with what every commit said, and its CSV."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.bisect import BisectLikeForm, NewBisectForm
from dashboard.forms.comparisons import PageForm
from dashboard.models import Bisect, Repository
from dashboard.queries.bisect import PAGE_SIZE, BisectView, bisect_page, bisect_view, get_bisect
from dashboard.services.bisect import cancel_bisect, create_bisect
from dashboard.views.downloads import Cell, csv_response
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from profiler.errors import UserError

COLUMNS = (
    "commit",
    "committed_at",
    "author",
    "subject",
    "fate",
    "answer",
    "relative_change",
    "low",
    "high",
    "pairs",
    "comparison",
    "reason",
)


def _bisect_or_404(bisect_id: int) -> Bisect:
    row = get_bisect(bisect_id)
    if row is None:
        raise Http404(f"There is no bisect {bisect_id}.")
    return row


@require_safe
def bisect_list(request: SignedInRequest) -> HttpResponse:
    page = bisect_page(PageForm(request.GET).number())
    known = Repository.objects.exists()
    context = {"page": page, "size": PAGE_SIZE, "has_repositories": known}
    return render(request, "dashboard/bisect_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def bisect_new(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        form = NewBisectForm(initial=BisectLikeForm(request.GET).initial_values())
        return _form_page(request, form, 200)
    form = NewBisectForm(request.POST)
    if form.is_valid():
        try:
            made = create_bisect(form.wanted(), request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            return redirect("bisect-detail", made.pk)
    return _form_page(request, form, 422)


def _form_page(request: SignedInRequest, form: NewBisectForm, status: int) -> HttpResponse:
    context = {"form": form, "has_repositories": Repository.objects.exists()}
    return render(request, "dashboard/bisect_new.html", context, status=status)


@require_safe
def bisect_detail(request: SignedInRequest, bisect_id: int) -> HttpResponse:
    row = _bisect_or_404(bisect_id)
    context = {"row": row, "view": bisect_view(row)}
    return render(request, "dashboard/bisect_detail.html", context)


@require_safe
def bisect_live(request: SignedInRequest, bisect_id: int) -> HttpResponse:
    """The polled part alone: it comes back without its poll once the bisect has ended."""
    row = _bisect_or_404(bisect_id)
    context = {"row": row, "view": bisect_view(row)}
    return render(request, "dashboard/partials/bisect_live.html", context)


@require_safe
def bisect_csv(request: SignedInRequest, bisect_id: int) -> HttpResponseBase:
    view = bisect_view(_bisect_or_404(bisect_id), every_commit=True)
    return csv_response(f"bisect{bisect_id}.csv", COLUMNS, _cells(view))


def _cells(view: BisectView) -> Iterator[tuple[Cell, ...]]:
    """Every commit of the range, newest first."""
    for line in view.commits:
        step = line.step
        compared = step.compared if step else None
        yield (
            line.commit.sha,
            line.commit.committed_at.isoformat(),
            line.commit.author,
            line.commit.subject,
            line.fate,
            step.row.answer if step else None,
            compared.effect if compared else None,
            compared.low if compared else None,
            compared.high if compared else None,
            step.pairs if step else None,
            step.row.comparison_id if step else None,
            step.row.reason if step else None,
        )


@post_only
@operators_only
def bisect_cancel(request: SignedInRequest, bisect_id: int) -> HttpResponse:
    _bisect_or_404(bisect_id)
    try:
        cancel_bisect(bisect_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "Cancelled: what was measured is kept.")
    return redirect("bisect-detail", bisect_id)
