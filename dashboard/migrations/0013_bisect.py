import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

STATES = ["resolving", "measuring", "ended", "failed", "cancelled"]
ENDED = ("ended", "failed", "cancelled")
OUTCOMES = ["confirmed", "unconfirmed", "several", "alike"]
ANSWERS = ["good", "bad", "skipped", "unsure"]


def commit(**options):
    return models.ForeignKey(
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to="dashboard.commit",
        **options,
    )


def protected(to):
    return models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=to)


def number():
    return (
        "id",
        models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0012_trace_profile"),
    ]

    operations = [
        migrations.CreateModel(
            name="Bisect",
            fields=[
                number(),
                ("good_ref", models.CharField(max_length=200)),
                ("bad_ref", models.CharField(max_length=200)),
                ("spec", models.JSONField()),
                ("metric", models.CharField(max_length=40)),
                (
                    "margin",
                    models.FloatField(help_text="smallest relative change that matters"),
                ),
                (
                    "rungs",
                    models.JSONField(help_text="numbers of pairs at which a verdict is looked for"),
                ),
                (
                    "seed",
                    models.PositiveBigIntegerField(
                        help_text="gives the order of the pairs of each step"
                    ),
                ),
                (
                    "threshold",
                    models.FloatField(help_text="change from which a commit is bad", null=True),
                ),
                (
                    "looked_for",
                    models.CharField(
                        blank=True,
                        choices=[("slower", "slower"), ("faster", "faster")],
                        max_length=8,
                    ),
                ),
                ("effect", models.FloatField(null=True)),
                (
                    "outcome",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("confirmed", "Culprit confirmed"),
                            ("unconfirmed", "Culprit not confirmed"),
                            ("several", "One of several commits"),
                            ("alike", "Both ends alike"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("resolving", "Resolving commits"),
                            ("measuring", "Measuring"),
                            ("ended", "Ended"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="resolving",
                        max_length=10,
                    ),
                ),
                ("failure_kind", models.CharField(blank=True, max_length=20)),
                ("message", models.CharField(blank=True, max_length=1000)),
                ("hint", models.CharField(blank=True, max_length=500)),
                (
                    "key",
                    models.CharField(
                        blank=True, help_text="of the form that asked for it", max_length=64
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("bad", commit(null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("culprit", commit(null=True)),
                ("good", commit(null=True)),
                ("platform", protected("dashboard.platform")),
                ("repository", protected("dashboard.repository")),
                ("workload", protected("dashboard.workload")),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [models.Index(fields=["state", "id"], name="bisect_by_state")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", STATES)), name="bisect_state_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", False), ("state__in", ENDED)),
                            models.Q(
                                models.Q(("state__in", ENDED), _negated=True),
                                ("ended_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="bisect_ended_iff_terminal",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["measuring", "ended"]), _negated=True),
                            models.Q(("bad__isnull", False), ("good__isnull", False)),
                            _connector="OR",
                        ),
                        name="measured_bisect_has_commits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("outcome__in", OUTCOMES), ("state", "ended")),
                            models.Q(
                                models.Q(("state", "ended"), _negated=True), ("outcome", "")
                            ),
                            _connector="OR",
                        ),
                        name="bisect_outcome_iff_ended",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("key", ""), _negated=True),
                        fields=("created_by", "key"),
                        name="one_bisect_per_key",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BisectStep",
            fields=[
                number(),
                ("number", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("ends", "Good against bad"),
                            ("probe", "Good against a commit between"),
                            ("confirm", "Culprit against its parent"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "answer",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("good", "Good"),
                            ("bad", "Bad"),
                            ("skipped", "Skipped"),
                            ("unsure", "Unsure"),
                        ],
                        max_length=8,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "bisect",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="dashboard.bisect",
                    ),
                ),
                ("commit", commit()),
                (
                    "comparison",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="bisect_step",
                        to="dashboard.comparison",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("bisect", "number"), name="one_step_per_number"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("answer", ""), ("answer__in", ANSWERS), _connector="OR"
                        ),
                        name="bisect_answer_is_known",
                    ),
                ],
            },
        ),
    ]
