"""What pages of runs and traces show of retention: the pin, and when a file was removed."""

from __future__ import annotations

from django import template
from django.urls import reverse

from dashboard.forms.retention import PinForm
from dashboard.models import Pin, Run, Trace

register = template.Library()


@register.inclusion_tag("dashboard/partials/retention_pin.html", takes_context=True)
def pin_box(context: template.Context, subject: Run | Trace) -> dict[str, object]:
    """The pin of a run or trace with the button that takes it off, or the form that sets one."""
    is_run = isinstance(subject, Run)
    name = "run" if is_run else "trace"
    return {
        "pin": _pin_of(subject),
        "pin_url": reverse(f"{name}-pin", args=[subject.pk]),
        "unpin_url": reverse(f"{name}-unpin", args=[subject.pk]),
        "what": "this run and its traces" if is_run else "this trace",
        "form": PinForm(),
        "user": context["user"],
        "csrf_token": context.get("csrf_token"),
    }


def _pin_of(subject: Run | Trace) -> Pin | None:
    """Its pin, which the queries of both pages load along."""
    try:
        return subject.pin
    except Pin.DoesNotExist:
        return None
