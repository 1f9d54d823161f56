import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0010_calibrations"),
    ]

    operations = [
        migrations.AddField(
            model_name="artifact",
            name="removed_at",
            field=models.DateTimeField(help_text="when a policy removed the file", null=True),
        ),
        migrations.AddField(
            model_name="artifact",
            name="removal",
            field=models.CharField(
                blank=True, default="", help_text="what that policy said", max_length=200
            ),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("removal", ""), ("removed_at__isnull", True)),
                    models.Q(
                        ("removed_at__isnull", False),
                        models.Q(("removal", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="removed_artifact_says_why",
            ),
        ),
        migrations.CreateModel(
            name="RetentionPolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("raw_days", models.PositiveIntegerField(null=True)),
                ("columns_days", models.PositiveIntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "retention policies",
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("raw_days__isnull", True),
                                ("raw_days__gte", 1),
                                _connector="OR",
                            ),
                            models.Q(
                                ("columns_days__isnull", True),
                                ("columns_days__gte", 1),
                                _connector="OR",
                            ),
                        ),
                        name="retention_is_a_day_at_least",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField()),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pin",
                        to="dashboard.run",
                    ),
                ),
                (
                    "trace",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pin",
                        to="dashboard.trace",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("run__isnull", False), ("trace__isnull", True)),
                            models.Q(("run__isnull", True), ("trace__isnull", False)),
                            _connector="OR",
                        ),
                        name="pin_is_of_a_run_or_of_a_trace",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="pin_has_a_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pruning",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.BigIntegerField(default=0)),
                ("files", models.PositiveIntegerField(default=0)),
                ("size_bytes", models.BigIntegerField(default=0)),
                ("open", models.BooleanField(default=True)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "policy",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="dashboard.retentionpolicy",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("open", True)),
                        fields=("open",),
                        name="one_pruning_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("open", True)),
                            models.Q(("ended_at__isnull", False), ("open", False)),
                            _connector="OR",
                        ),
                        name="pruning_open_iff_not_ended",
                    ),
                ],
            },
        ),
    ]
