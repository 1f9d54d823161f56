"""Where a workload stands on a platform, for lists that cannot read its whole history."""

from __future__ import annotations

from django.db import models


class Standing(models.Model):
    """One row per workload and platform; `services.history` keeps it true.

    `source` is the repository whose commits give the order, empty for runs
    without a commit: of several sources that of the newest result. Day-0 is
    the first point in that order, `value` the last, each the median of the
    runs at its commit, and the run named with it is the newest there. What is
    not known is None.
    """

    workload = models.ForeignKey(
        "dashboard.Workload", on_delete=models.CASCADE, related_name="standings"
    )
    platform = models.ForeignKey(
        "dashboard.Platform", on_delete=models.CASCADE, related_name="standings"
    )
    newest_run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    measured_run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    day0_run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    best_run = models.ForeignKey(
        "dashboard.Run", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    metric = models.CharField(max_length=40, help_text="the headline metric of the scenario")
    source = models.CharField(max_length=40, blank=True, help_text="slug of a repository")
    sources = models.JSONField(default=dict, help_text="source -> measured runs of it")
    measured = models.PositiveIntegerField(default=0, help_text="runs with a result")
    points = models.PositiveIntegerField(default=0, help_text="places in the order")
    value = models.FloatField(null=True)
    spread = models.FloatField(null=True, help_text="half the interquartile range")
    n = models.PositiveIntegerField(null=True, help_text="launches behind it, or samples of one")
    day0_value = models.FloatField(null=True)
    best_value = models.FloatField(null=True)
    same_environment = models.BooleanField(
        default=True, help_text="whether the last point is comparable with Day-0"
    )
    recent = models.JSONField(default=list, help_text="the last values, oldest first")
    trace = models.ForeignKey(
        "dashboard.Trace", null=True, on_delete=models.SET_NULL, related_name="+"
    )
    roofline = models.FloatField(null=True, help_text="least time over time taken of what counts")
    counted = models.FloatField(null=True, help_text="share of the time that counts there")
    findings = models.JSONField(default=list, help_text="the first of that trace, as ranked")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workload", "platform"], name="one_standing_per_workload_and_platform"
            )
        ]

    def __str__(self) -> str:
        return f"standing of workload {self.workload_id} on platform {self.platform_id}"
