"""Pages of announcements: the list, one of them, and what one wants to hear about."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.announcements import (
    AddressForm,
    AnnouncementFilterForm,
    ReadForm,
    SubscriptionForm,
)
from dashboard.queries import announcements as queries
from dashboard.services import announcements
from dashboard.views.requests import SignedInRequest, post_only
from profiler.errors import UserError

PAGE = ["GET", "HEAD", "POST"]


@require_safe
def announcement_list(request: SignedInRequest) -> HttpResponse:
    form = AnnouncementFilterForm(request.GET)
    page = queries.announcement_page(
        request.user,
        every=form.every_one(),
        kind=form.text("kind"),
        model=form.text("model"),
        page=form.number(),
    )
    context = {"form": form, "page": page, "size": queries.PAGE_SIZE, "narrows": form.narrows}
    return render(request, "dashboard/announcement_list.html", context)


@never_cache
@require_safe
def announcement_unread(request: SignedInRequest) -> HttpResponse:
    """The link in the header with the count; pages load it after themselves."""
    context = {"unread": queries.unread_count(request.user)}
    return render(request, "dashboard/partials/unread.html", context)


@post_only
def announcement_read(request: SignedInRequest) -> HttpResponse:
    """Only what the list showed: what came meanwhile stays unread."""
    count = announcements.mark_read(request.user, ReadForm(request.POST).number())
    messages.success(request, f"Marked as read: {count}.")
    return redirect("announcement-list")


@require_safe
def announcement_detail(request: SignedInRequest, announcement_id: int) -> HttpResponse:
    row = queries.get_announcement(announcement_id)
    if row is None:
        raise Http404(f"There is no announcement {announcement_id}.")
    context = {"row": row, "deliveries": queries.deliveries_of(row)}
    return render(request, "dashboard/announcement_detail.html", context)


@require_http_methods(PAGE)
def subscription_list(request: SignedInRequest) -> HttpResponse:
    """What the reader wants to hear about; sending the form adds or changes one."""
    form = SubscriptionForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            announcements.subscribe(request.user, form.wish())
        except UserError as error:
            form.add_error("email", error.line())
        else:
            messages.success(request, "Subscribed.")
            return redirect("subscription-list")
    address = AddressForm(initial={"address": request.user.email})
    context: dict[str, object] = {"form": form, "address": address}
    return _subscriptions(request, context, 422 if form.is_bound else 200)


def _subscriptions(
    request: SignedInRequest, context: dict[str, object], status: int
) -> HttpResponse:
    context |= {"rows": queries.subscriptions_of(request.user), "mail": queries.mail_state()}
    return render(request, "dashboard/subscription_list.html", context, status=status)


@require_http_methods(PAGE)
def subscription_address(request: SignedInRequest) -> HttpResponse:
    """Where one's mails go; the form stands on the page of subscriptions."""
    form = AddressForm(request.POST if request.method == "POST" else None)
    if not form.is_bound:
        return redirect("subscription-list")
    if form.is_valid():
        announcements.set_address(request.user, form.cleaned_data["address"])
        messages.success(request, "The address is kept.")
        return redirect("subscription-list")
    return _subscriptions(request, {"form": SubscriptionForm(), "address": form}, 422)


@post_only
def subscription_end(request: SignedInRequest, subscription_id: int) -> HttpResponse:
    if not announcements.unsubscribe(subscription_id, request.user):
        raise Http404(f"There is no subscription {subscription_id} of yours.")
    messages.success(request, "You hear of that no more.")
    return redirect("subscription-list")
