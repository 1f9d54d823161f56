"""Pages of platforms: what each can do, how quiet it is, and the A/A control that tells."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.calibrations import CalibrationForm
from dashboard.forms.noise import NoiseForm
from dashboard.queries.automation import forecast_of
from dashboard.queries.platforms import PlatformView, platform_rows, platform_view
from dashboard.services.calibrations import store_calibration
from dashboard.services.noise import start_control
from dashboard.views.requests import SignedInRequest, operators_only
from profiler.errors import UserError


def _platform_or_404(slug: str) -> PlatformView:
    view = platform_view(slug)
    if view is None:
        raise Http404(f"There is no platform {slug}.")
    return view


@require_safe
def platform_list(request: SignedInRequest) -> HttpResponse:
    return render(request, "dashboard/platform_list.html", {"rows": platform_rows()})


@require_safe
def platform_detail(request: SignedInRequest, slug: str) -> HttpResponse:
    view = _platform_or_404(slug)
    context = {"view": view, "form": NoiseForm(), "calibration": CalibrationForm()}
    context["forecasts"] = [forecast_of(view.platform, view.workers)]
    return render(request, "dashboard/platform_detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def platform_calibrate(request: SignedInRequest, slug: str) -> HttpResponse:
    """Store measured ceilings; the form stands on the platform's page too."""
    view = _platform_or_404(slug)
    posted = request.method == "POST"
    form = CalibrationForm(request.POST, request.FILES) if posted else CalibrationForm()
    if form.is_valid():
        try:
            store_calibration(form.raw(), platform=view.platform, user=request.user)
        except UserError as error:
            form.add_error("file" if form.cleaned_data["file"] else "text", error.line())
        else:
            messages.success(request, f"{slug} is calibrated.")
            return redirect("platform-detail", slug)
    context = {"view": view, "calibration": form}
    status = 422 if posted else 200
    return render(request, "dashboard/platform_calibrate.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def platform_noise(request: SignedInRequest, slug: str) -> HttpResponse:
    """Queue an A/A control; the form stands on the platform's page too."""
    view = _platform_or_404(slug)
    form = NoiseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        platform, data = view.platform, form.cleaned_data
        try:
            runs = start_control(
                form.spec(platform.device),
                data["launches"],
                platform=platform,
                user=request.user,
                key=data["nonce"],
            )
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, f"{len(runs)} equal launches queued.")
            return redirect("group-detail", runs[0].group_id)
    status = 422 if form.is_bound else 200
    context = {"view": view, "form": form}
    return render(request, "dashboard/platform_noise.html", context, status=status)
