"""Every address of the dashboard; `tests/dashboard/test_access.py` says who may what."""

from __future__ import annotations

from django.urls import path

from dashboard.views import (
    accounts,
    glossary,
    groups,
    health,
    overview,
    platforms,
    repositories,
    runs,
    status,
    templates,
    trace_panels,
    trace_sets,
    traces,
    triggers,
)

handler400 = "dashboard.views.errors.bad_request"
handler403 = "dashboard.views.errors.forbidden"
handler404 = "dashboard.views.errors.not_found"
handler500 = "dashboard.views.errors.server_error"

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("runs/", runs.run_list, name="run-list"),
    path("runs/runs.csv", runs.run_list_csv, name="run-list-csv"),
    path("runs/new/", triggers.run_new, name="run-new"),
    path("runs/<int:run_id>/", runs.run_detail, name="run-detail"),
    path("runs/<int:run_id>/status/", runs.run_status, name="run-status"),
    path("runs/<int:run_id>/log/", runs.run_log, name="run-log"),
    path("runs/<int:run_id>/metrics.csv", runs.run_metrics_csv, name="run-metrics-csv"),
    path("runs/<int:run_id>/files/<str:name>", runs.run_file, name="run-file"),
    path("runs/<int:run_id>/ranks/", trace_sets.run_ranks, name="run-ranks"),
    path("runs/<int:run_id>/ranks.csv", trace_sets.run_ranks_csv, name="run-ranks-csv"),
    path("runs/<int:run_id>/cancel/", triggers.run_cancel, name="run-cancel"),
    path("runs/<int:run_id>/again/", triggers.run_again, name="run-again"),
    path("templates/", templates.template_list, name="template-list"),
    path("templates/new/", templates.template_new, name="template-new"),
    path("templates/<slug:name>/", templates.template_detail, name="template-detail"),
    path("templates/<slug:name>.toml", templates.template_file, name="template-file"),
    path("templates/<slug:name>/edit/", templates.template_edit, name="template-edit"),
    path("templates/<slug:name>/run/", templates.template_run, name="template-run"),
    path("groups/<int:group_id>/", groups.group_detail, name="group-detail"),
    path("groups/<int:group_id>/status/", groups.group_state, name="group-status"),
    path("platforms/", platforms.platform_list, name="platform-list"),
    path("platforms/<slug:slug>/", platforms.platform_detail, name="platform-detail"),
    path("platforms/<slug:slug>/noise/", platforms.platform_noise, name="platform-noise"),
    path("traces/", traces.trace_list, name="trace-list"),
    path("traces/upload/", traces.trace_upload, name="trace-upload"),
    path("traces/sets/<int:set_id>/", trace_sets.trace_set, name="trace-set"),
    path("traces/sets/<int:set_id>/status/", trace_sets.trace_set_status, name="trace-set-status"),
    path("traces/sets/<int:set_id>/ranks.csv", trace_sets.trace_set_csv, name="trace-set-csv"),
    path("traces/<int:trace_id>/", traces.trace_detail, name="trace-detail"),
    path("traces/<int:trace_id>/status/", traces.trace_status, name="trace-status"),
    path("traces/<int:trace_id>/operators/", traces.trace_operators, name="trace-operators"),
    path(
        "traces/<int:trace_id>/operators.csv",
        traces.trace_operators_csv,
        name="trace-operators-csv",
    ),
    path("traces/<int:trace_id>/panels/<slug:name>/", trace_panels.trace_panel, name="trace-panel"),
    path(
        "traces/<int:trace_id>/panels/<slug:name>.csv",
        trace_panels.trace_panel_csv,
        name="trace-panel-csv",
    ),
    path("traces/<int:trace_id>/flame.speedscope.json", traces.trace_flame, name="trace-flame"),
    path("traces/<int:trace_id>/report.json", traces.trace_report, name="trace-report"),
    path("traces/<int:trace_id>/raw", traces.trace_raw, name="trace-raw"),
    path("traces/<int:trace_id>/redacted", traces.trace_redacted, name="trace-redacted"),
    path("traces/<int:trace_id>/redact/", traces.trace_redact, name="trace-redact"),
    path("traces/<int:trace_id>/again/", traces.trace_again, name="trace-again"),
    path("repositories/", repositories.repository_list, name="repository-list"),
    path("repositories/new/", repositories.repository_new, name="repository-new"),
    path(
        "repositories/<int:repository_id>/",
        repositories.repository_detail,
        name="repository-detail",
    ),
    path(
        "repositories/<int:repository_id>/status/",
        repositories.repository_status,
        name="repository-status",
    ),
    path(
        "repositories/<int:repository_id>/fetch/",
        repositories.repository_fetch,
        name="repository-fetch",
    ),
    path("status/", status.status, name="status"),
    path("glossary/", glossary.glossary, name="glossary"),
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-in/link/<str:token>/", accounts.sign_in_link, name="sign-in-link"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("account/", accounts.account, name="account"),
    path("users/", accounts.user_list, name="user-list"),
    path("users/new/", accounts.user_new, name="user-new"),
    path("users/<int:user_id>/", accounts.user_detail, name="user-detail"),
    path("healthz", health.healthz, name="healthz"),
]
