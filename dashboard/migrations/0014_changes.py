import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0013_bisect"),
    ]

    operations = [
        migrations.CreateModel(
            name="WatchedSeries",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("wanted_at", models.DateTimeField(db_index=True, null=True)),
                ("scanned_at", models.DateTimeField(null=True)),
                (
                    "platform",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="dashboard.platform"
                    ),
                ),
                (
                    "workload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="dashboard.workload"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workload", "platform"), name="one_watch_per_series"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("metric", models.CharField(max_length=40)),
                (
                    "comparable_hash",
                    models.CharField(help_text="environment of the series", max_length=64),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("step", "Step"), ("leak", "Slow leak")], max_length=4
                    ),
                ),
                (
                    "direction",
                    models.CharField(
                        choices=[("slower", "Slower"), ("faster", "Faster")], max_length=6
                    ),
                ),
                (
                    "before_value",
                    models.FloatField(help_text="centre of the runs before, in the metric's unit"),
                ),
                ("after_value", models.FloatField(help_text="centre of the runs after")),
                ("effect", models.FloatField()),
                ("p_value", models.FloatField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "New"),
                            ("confirming", "Confirming"),
                            ("confirmed", "Confirmed"),
                            ("rejected", "Rejected"),
                            ("acknowledged", "Acknowledged"),
                            ("fixed", "Fixed"),
                        ],
                        default="new",
                        max_length=12,
                    ),
                ),
                ("found_at", models.DateTimeField()),
                ("state_at", models.DateTimeField(help_text="when it came into its state")),
                ("measured_effect", models.FloatField(null=True)),
                (
                    "sentence",
                    models.CharField(
                        blank=True, help_text="what measuring again said", max_length=1000
                    ),
                ),
                ("culprit", models.CharField(blank=True, max_length=500)),
                ("culprit_detail", models.CharField(blank=True, max_length=500)),
                (
                    "reason",
                    models.CharField(
                        blank=True, help_text="why it was acknowledged", max_length=1000
                    ),
                ),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "after_commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="dashboard.commit",
                    ),
                ),
                (
                    "after_run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="dashboard.run",
                    ),
                ),
                (
                    "before_commit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="dashboard.commit",
                    ),
                ),
                (
                    "before_run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="dashboard.run",
                    ),
                ),
                (
                    "comparison",
                    models.ForeignKey(
                        help_text="the last paired measurement of the two commits",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="changes",
                        to="dashboard.comparison",
                    ),
                ),
                (
                    "fixed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="fixes",
                        to="dashboard.change",
                    ),
                ),
                (
                    "fixed_commit",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="dashboard.commit",
                    ),
                ),
                (
                    "platform",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="dashboard.platform"
                    ),
                ),
                (
                    "repository",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="dashboard.repository"
                    ),
                ),
                (
                    "workload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="dashboard.workload",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["state", "-id"], name="change_by_state"),
                    models.Index(
                        fields=["workload", "platform", "-id"], name="change_by_workload"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=(
                            "workload",
                            "platform",
                            "metric",
                            "comparable_hash",
                            "kind",
                            "after_commit",
                        ),
                        name="one_change_per_series_and_commit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "new",
                                    "confirming",
                                    "confirmed",
                                    "rejected",
                                    "acknowledged",
                                    "fixed",
                                ],
                            )
                        ),
                        name="change_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("direction__in", ["slower", "faster"]),
                            ("kind__in", ["step", "leak"]),
                        ),
                        name="change_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "acknowledged"), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="acknowledged_change_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("before_commit", models.F("after_commit")), _negated=True
                        ),
                        name="change_has_two_commits",
                    ),
                ],
            },
        ),
    ]
