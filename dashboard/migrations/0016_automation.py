import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

USER = settings.AUTH_USER_MODEL
CASCADE = django.db.models.deletion.CASCADE
PROTECT = django.db.models.deletion.PROTECT
SET_NULL = django.db.models.deletion.SET_NULL


def key():
    return (
        "id",
        models.BigAutoField(
            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
        ),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0015_standings"),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                key(),
                ("name", models.CharField(max_length=60, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("interval", "At fixed times"),
                            ("commits", "New commits"),
                            ("stack", "Changed software stack"),
                        ],
                        max_length=10,
                    ),
                ),
                ("branch", models.CharField(blank=True, max_length=200)),
                (
                    "every_h",
                    models.PositiveIntegerField(null=True, help_text="hours between two times"),
                ),
                (
                    "at_minute",
                    models.PositiveIntegerField(default=0, help_text="minute of the UTC day"),
                ),
                (
                    "newest",
                    models.PositiveIntegerField(
                        default=5,
                        help_text="commits of one push that are measured, counted from the newest",
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                (
                    "enabled_at",
                    models.DateTimeField(help_text="nothing from before is made up for"),
                ),
                (
                    "polled_at",
                    models.DateTimeField(null=True, help_text="when a fetch was last asked for"),
                ),
                (
                    "looked_at",
                    models.DateTimeField(
                        null=True, help_text="fetch whose commits were looked at"
                    ),
                ),
                (
                    "seen_sha",
                    models.CharField(
                        blank=True, max_length=64, help_text="newest commit looked at"
                    ),
                ),
                (
                    "problem",
                    models.CharField(
                        blank=True, max_length=500, help_text="why it cannot look now"
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("created_by", models.ForeignKey(null=True, on_delete=SET_NULL, to=USER)),
                ("platform", models.ForeignKey(on_delete=PROTECT, to="dashboard.platform")),
                (
                    "repository",
                    models.ForeignKey(null=True, on_delete=PROTECT, to="dashboard.repository"),
                ),
                ("template", models.ForeignKey(on_delete=PROTECT, to="dashboard.template")),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(kind__in=["interval", "commits", "stack"]),
                        name="schedule_kind_is_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(kind="interval", every_h__gt=0, at_minute__lt=1440)
                        | Q(~Q(kind="interval"), every_h__isnull=True),
                        name="schedule_has_hours_iff_interval",
                    ),
                    models.CheckConstraint(
                        condition=~Q(kind="commits") | Q(repository__isnull=False),
                        name="schedule_of_commits_has_repository",
                    ),
                    models.CheckConstraint(
                        condition=Q(~Q(branch=""), repository__isnull=False)
                        | Q(branch="", repository__isnull=True),
                        name="schedule_has_branch_iff_repository",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Firing",
            fields=[
                key(),
                ("key", models.CharField(max_length=200)),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("time", "Its time came"),
                            ("commit", "New commit"),
                            ("parent", "Parent to compare with"),
                            ("stack", "Changed software stack"),
                            ("person", "Somebody asked"),
                        ],
                        max_length=10,
                    ),
                ),
                ("cause_text", models.CharField(blank=True, max_length=300)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("queued", "Queued"),
                            ("skipped", "Skipped"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                (
                    "wait",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("fetch", "a fetch of the repository"),
                            ("budget", "device time"),
                            ("too_large", "a larger budget"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True, max_length=500, help_text="why it waits or was skipped"
                    ),
                ),
                (
                    "left_out",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="older commits of the same push that are not measured",
                    ),
                ),
                ("runs", models.PositiveIntegerField(default=0)),
                (
                    "usual_ns",
                    models.FloatField(
                        null=True, help_text="usual time of its runs that have history"
                    ),
                ),
                (
                    "unknown_runs",
                    models.PositiveIntegerField(default=0, help_text="runs without history"),
                ),
                (
                    "not_before",
                    models.DateTimeField(help_text="when a waiting one is looked at again"),
                ),
                ("created_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "commit",
                    models.ForeignKey(null=True, on_delete=PROTECT, to="dashboard.commit"),
                ),
                ("created_by", models.ForeignKey(null=True, on_delete=SET_NULL, to=USER)),
                (
                    "group",
                    models.OneToOneField(
                        null=True,
                        on_delete=SET_NULL,
                        related_name="firing",
                        to="dashboard.rungroup",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="firings", to="dashboard.schedule"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(on_delete=PROTECT, to="dashboard.templateversion"),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["state", "id"], name="firing_by_state")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("schedule", "key"), name="one_firing_per_key"
                    ),
                    models.CheckConstraint(
                        condition=Q(state__in=["waiting", "queued", "skipped"]),
                        name="firing_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(state="waiting", decided_at__isnull=True)
                        | Q(~Q(state="waiting"), decided_at__isnull=False, wait=""),
                        name="firing_decided_iff_not_waiting",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                key(),
                ("minutes_per_day", models.FloatField()),
                (
                    "platform",
                    models.OneToOneField(
                        on_delete=CASCADE, related_name="budget", to="dashboard.platform"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(minutes_per_day__gte=0), name="budget_is_possible"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Stack",
            fields=[
                key(),
                ("hash", models.CharField(max_length=64)),
                ("fields", models.JSONField(default=dict, help_text="field -> value")),
                (
                    "is_change",
                    models.BooleanField(help_text="whether another stack was known before"),
                ),
                (
                    "difference",
                    models.CharField(
                        blank=True, max_length=300, help_text="from the one before"
                    ),
                ),
                ("seen_at", models.DateTimeField(db_index=True)),
                (
                    "platform",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="stacks", to="dashboard.platform"
                    ),
                ),
                (
                    "repository",
                    models.ForeignKey(null=True, on_delete=CASCADE, to="dashboard.repository"),
                ),
                ("run", models.ForeignKey(null=True, on_delete=SET_NULL, to="dashboard.run")),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("platform", "repository", "hash"),
                        name="one_stack_per_repository",
                    ),
                    models.UniqueConstraint(
                        condition=Q(repository__isnull=True),
                        fields=("platform", "hash"),
                        name="one_stack_without_repository",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Hook",
            fields=[
                key(),
                (
                    "generation",
                    models.PositiveIntegerField(
                        default=1, help_text="a new one ends the old secret"
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("accepted_at", models.DateTimeField(null=True)),
                ("refused_at", models.DateTimeField(null=True)),
                ("refused_why", models.CharField(blank=True, max_length=200)),
                (
                    "repository",
                    models.OneToOneField(
                        on_delete=CASCADE, related_name="hook", to="dashboard.repository"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Push",
            fields=[
                key(),
                ("digest", models.CharField(max_length=64, help_text="SHA-256 of the body")),
                ("event", models.CharField(blank=True, max_length=40)),
                ("ref", models.CharField(blank=True, max_length=200)),
                (
                    "head_sha",
                    models.CharField(
                        blank=True, max_length=64, help_text="as told, not yet fetched"
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "hook",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="pushes", to="dashboard.hook"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "pushes",
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("hook", "digest"), name="one_push_per_body"
                    )
                ],
            },
        ),
    ]
