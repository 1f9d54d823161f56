"""Where every workload stands, annotations, and indexes that histories are read by."""

import statistics

import django.db.models.deletion
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

HEADLINES = {"prefill": "ttft", "decode": "tpot", "training": "step_time"}
"""The metric of each scenario when this was written; of all of them lower is better."""
RECENT = 20


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A row for every workload and platform that has runs; what traces leave comes with them."""
    Run = apps.get_model("dashboard", "Run")
    runs = Run.objects.filter(compared__isnull=True).order_by()
    newest = runs.values_list("workload_id", "workload__scenario", "platform_id")
    for workload, scenario, platform, run in newest.annotate(newest=models.Max("id")):
        row = apps.get_model("dashboard", "Standing")(
            workload_id=workload,
            platform_id=platform,
            newest_run_id=run,
            metric=HEADLINES[scenario],
        )
        measure(apps, row)
        row.save()


def measure(apps: Apps, row: models.Model) -> None:
    """First, best and last place of the source that has the newest result."""
    values = apps.get_model("dashboard", "MetricValue").objects.filter(
        name=row.metric,
        result__run__workload=row.workload_id,
        result__run__platform=row.platform_id,
        result__run__state="succeeded",
    )
    readings = values.order_by("result__run_id").values_list(
        "result__run_id",
        "result__run__commit__repository__slug",
        "result__run__commit__position",
        "result__comparable_hash",
        "value",
        "iqr",
        "n",
    )
    places = {}
    for run, slug, position, environment, value, iqr, n in readings:
        row.source = slug or ""
        row.sources[row.source] = row.sources.get(row.source, 0) + 1
        place = run if position is None else position
        key = row.source, place, environment
        places.setdefault(key, []).append((run, value, iqr, n))
    row.measured = sum(row.sources.values())
    mine = [(key, places[key]) for key in places if key[0] == row.source]
    mine.sort(key=lambda item: (item[0][1], item[1][0][0]))
    if not mine:
        return
    found = [(key[2], launches[-1], middle(launches), launches) for key, launches in mine]
    first, last = found[0], found[-1]
    best = min(found, key=lambda item: item[2])
    row.points = len(found)
    row.day0_run_id, row.day0_value = first[1][0], first[2]
    row.best_run_id, row.best_value = best[1][0], best[2]
    row.measured_run_id, row.value = last[1][0], last[2]
    row.n = len(last[3]) if len(last[3]) > 1 else last[1][3]
    if len(last[3]) > 2:
        low, _, high = statistics.quantiles([one[1] for one in last[3]], n=4, method="inclusive")
        row.spread = (high - low) / 2
    elif last[1][2] is not None and last[1][3] > 1:
        row.spread = last[1][2] / 2
    row.same_environment = first[0] == last[0]
    row.recent = [item[2] for item in found[-RECENT:]]


def middle(launches: list[tuple[int, float, float | None, int]]) -> float:
    return statistics.median(one[1] for one in launches)


def to_run() -> models.ForeignKey:
    return models.ForeignKey(
        null=True,
        on_delete=django.db.models.deletion.SET_NULL,
        related_name="+",
        to="dashboard.run",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0014_changes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Standing",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "metric",
                    models.CharField(
                        help_text="the headline metric of the scenario", max_length=40
                    ),
                ),
                (
                    "source",
                    models.CharField(blank=True, help_text="slug of a repository", max_length=40),
                ),
                (
                    "sources",
                    models.JSONField(default=dict, help_text="source -> measured runs of it"),
                ),
                (
                    "measured",
                    models.PositiveIntegerField(default=0, help_text="runs with a result"),
                ),
                (
                    "points",
                    models.PositiveIntegerField(default=0, help_text="places in the order"),
                ),
                ("value", models.FloatField(null=True)),
                (
                    "spread",
                    models.FloatField(help_text="half the interquartile range", null=True),
                ),
                (
                    "n",
                    models.PositiveIntegerField(
                        help_text="launches behind it, or samples of one", null=True
                    ),
                ),
                ("day0_value", models.FloatField(null=True)),
                ("best_value", models.FloatField(null=True)),
                (
                    "same_environment",
                    models.BooleanField(
                        default=True, help_text="whether the last point is comparable with Day-0"
                    ),
                ),
                (
                    "recent",
                    models.JSONField(default=list, help_text="the last values, oldest first"),
                ),
                (
                    "roofline",
                    models.FloatField(
                        help_text="least time over time taken of what counts", null=True
                    ),
                ),
                (
                    "counted",
                    models.FloatField(
                        help_text="share of the time that counts there", null=True
                    ),
                ),
                (
                    "findings",
                    models.JSONField(
                        default=list, help_text="the first of that trace, as ranked"
                    ),
                ),
                ("best_run", to_run()),
                ("day0_run", to_run()),
                ("measured_run", to_run()),
                ("newest_run", to_run()),
                (
                    "platform",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="standings",
                        to="dashboard.platform",
                    ),
                ),
                (
                    "trace",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="dashboard.trace",
                    ),
                ),
                (
                    "workload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="standings",
                        to="dashboard.workload",
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.AddConstraint(
            model_name="standing",
            constraint=models.UniqueConstraint(
                fields=("workload", "platform"), name="one_standing_per_workload_and_platform"
            ),
        ),
        migrations.CreateModel(
            name="Annotation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("text", models.CharField(max_length=300)),
                ("created_at", models.DateTimeField()),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "commit",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="dashboard.commit",
                    ),
                ),
                (
                    "model",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="dashboard.model",
                    ),
                ),
                (
                    "platform",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="dashboard.platform"
                    ),
                ),
            ],
            options={"ordering": ["at", "id"]},
        ),
        migrations.AddIndex(
            model_name="annotation",
            index=models.Index(fields=["platform", "at"], name="annotation_by_platform"),
        ),
        migrations.AddConstraint(
            model_name="annotation",
            constraint=models.CheckConstraint(
                condition=models.Q(("text", ""), _negated=True), name="annotation_says_something"
            ),
        ),
        migrations.RemoveIndex(model_name="operator", name="operator_by_canonical"),
        migrations.AddIndex(
            model_name="operator",
            index=models.Index(fields=["canonical", "trace"], name="operator_by_canonical_trace"),
        ),
        migrations.AddIndex(
            model_name="result",
            index=models.Index(fields=["run", "comparable_hash"], name="result_by_environment"),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
