"""Pages of comparisons: the list, a new one, one with its verdict, and its exports."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.figures.heat import heat_maps
from dashboard.forms.comparisons import LikeForm, MoreForm, NewComparisonForm, PageForm
from dashboard.models import Comparison, Repository
from dashboard.queries.comparisons import (
    PAGE_SIZE,
    between,
    comparison_page,
    comparison_view,
    get_comparison,
)
from dashboard.services.comparisons import (
    cancel_comparison,
    create_comparison,
    extend_comparison,
)
from dashboard.views import comparison_exports as exports
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from profiler.errors import UserError


def _comparison_or_404(comparison_id: int) -> Comparison:
    row = get_comparison(comparison_id)
    if row is None:
        raise Http404(f"There is no comparison {comparison_id}.")
    return row


@require_safe
def comparison_list(request: SignedInRequest) -> HttpResponse:
    page = comparison_page(PageForm(request.GET).number())
    known = Repository.objects.exists()
    context = {"page": page, "size": PAGE_SIZE, "has_repositories": known}
    return render(request, "dashboard/comparison_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def comparison_new(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        form = NewComparisonForm(initial=LikeForm(request.GET).initial_values())
        return _form_page(request, form, 200)
    form = NewComparisonForm(request.POST)
    if form.is_valid():
        try:
            made = create_comparison(form.wanted(), request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            return redirect("comparison-detail", made.pk)
    return _form_page(request, form, 422)


def _form_page(request: SignedInRequest, form: NewComparisonForm, status: int) -> HttpResponse:
    context = {"form": form, "has_repositories": Repository.objects.exists()}
    return render(request, "dashboard/comparison_new.html", context, status=status)


@require_safe
@vary_on_headers("HX-Request")
def comparison_detail(request: SignedInRequest, comparison_id: int) -> HttpResponse:
    """The page; for htmx the part that changes when the comparison ends."""
    row = _comparison_or_404(comparison_id)
    view = comparison_view(row)
    context = {
        "view": view,
        "maps": heat_maps(view.workloads),
        "row": row,
        "between": between(row),
        "more": MoreForm(),
        "commands": exports.commands(view),
        "address": request.build_absolute_uri(request.path),
    }
    part = "partials/comparison_body.html" if request.htmx else "comparison_detail.html"
    return render(request, f"dashboard/{part}", context)


@require_safe
def comparison_live(request: SignedInRequest, comparison_id: int) -> HttpResponse:
    """The polled part alone: it comes back without its poll once the comparison has ended."""
    row = _comparison_or_404(comparison_id)
    view = comparison_view(row)
    context = {"view": view, "maps": heat_maps(view.workloads), "row": row, "polled": True}
    return render(request, "dashboard/partials/comparison_live.html", context)


@require_safe
def comparison_pairs_csv(request: SignedInRequest, comparison_id: int) -> HttpResponseBase:
    view = comparison_view(_comparison_or_404(comparison_id))
    name = f"comparison{comparison_id}_pairs.csv"
    return csv_response(name, exports.PAIR_COLUMNS, exports.pair_cells(view))


@require_safe
def comparison_markdown(request: SignedInRequest, comparison_id: int) -> HttpResponse:
    view = comparison_view(_comparison_or_404(comparison_id))
    address = request.build_absolute_uri(request.path.removesuffix("report.md"))
    text = exports.markdown(view, address)
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    saved = f"comparison{comparison_id}.md"
    response["Content-Disposition"] = f'attachment; filename="{saved}"'
    return response


@post_only
@operators_only
def comparison_more(request: SignedInRequest, comparison_id: int) -> HttpResponse:
    _comparison_or_404(comparison_id)
    try:
        extend_comparison(comparison_id, MoreForm(request.POST).number(), request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "More pairs are queued.")
    return redirect("comparison-detail", comparison_id)


@post_only
@operators_only
def comparison_cancel(request: SignedInRequest, comparison_id: int) -> HttpResponse:
    _comparison_or_404(comparison_id)
    try:
        cancel_comparison(comparison_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "Cancelling: the pairs measured so far are kept.")
    return redirect("comparison-detail", comparison_id)
