"""What a raw file gives away is named, never shown, and left out of a copy."""

from __future__ import annotations

from django.test import Client

from dashboard.models import Trace, TraceState
from profiler.trace.privacy import CLEAN_COPY, HOLDS
from tests.dashboard.reading import page_of
from tests.dashboard.reports import quality_of
from tests.factories import make_ready_trace, make_report, make_trace, store_artifact


def private_trace(**fields: object) -> Trace:
    warning = f"{HOLDS}a credential under env.HF_TOKEN, 2 x home folder{CLEAN_COPY}"
    trace = make_ready_trace(report=make_report(quality=quality_of(warnings=[warning])))
    Trace.objects.filter(pk=trace.pk).update(**fields)
    return trace


def test_it_warns_of_what_the_raw_file_holds(operator_client: Client) -> None:
    trace = private_trace()
    page = page_of(operator_client, f"/traces/{trace.pk}/")
    assert "a credential under env.HF_TOKEN, 2 × home folder." in page
    assert f'action="/traces/{trace.pk}/redact/"' in page
    assert "--redact" not in page
    assert '<div class="note warn wide" id="privacy">' in page


def test_it_tells_viewers_whom_to_ask_for_a_copy(viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{private_trace().pk}/")
    assert "An operator can have a copy made without them." in page


def test_it_offers_the_copy_without_personal_details(viewer_client: Client) -> None:
    trace = private_trace(redacted=store_artifact(b"clean"))
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert f'href="/traces/{trace.pk}/redacted"' in page
    response = viewer_client.get(f"/traces/{trace.pk}/redacted")
    assert "without-personal-details" in response.headers["Content-Disposition"]
    response.close()


def test_it_has_the_copy_made_by_another_reading(operator_client: Client) -> None:
    trace = private_trace()
    page = operator_client.post(f"/traces/{trace.pk}/redact/", follow=True).content.decode()
    trace.refresh_from_db()
    assert (trace.state, trace.redaction_wanted) == (TraceState.PENDING, True)
    assert "then the copy can be downloaded" in page


def test_it_makes_no_copy_of_what_cannot_be_read(operator_client: Client) -> None:
    trace = make_trace(TraceState.REJECTED)
    page = operator_client.post(f"/traces/{trace.pk}/redact/", follow=True).content.decode()
    assert "cannot be read" in page
    trace.refresh_from_db()
    assert trace.state == TraceState.REJECTED


def test_it_is_calm_about_a_mere_host_name(viewer_client: Client) -> None:
    warning = f"{HOLDS}1 x host, user or address{CLEAN_COPY}"
    trace = make_ready_trace(report=make_report(quality=quality_of(warnings=[warning])))
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert '<div class="note wide" id="privacy">' in page
    assert "1 × host, user or address" in page
