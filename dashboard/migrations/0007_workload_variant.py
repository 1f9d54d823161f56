"""Workloads say what sets them apart beside their sizes; those that exist learn it from a run."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

DEFAULTS = {
    "threads": None,
    "layers": None,
    "compile": "eager",
    "attention": "auto",
    "routing": "model",
    "ranks": 1,
    "parallel": "none",
}
"""The fields of a run whose values were short words when this was written."""


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    Run = apps.get_model("dashboard", "Run")
    Workload = apps.get_model("dashboard", "Workload")
    for workload in Workload.objects.iterator():
        spec = Run.objects.filter(workload=workload).values_list("spec", flat=True).first() or {}
        chosen = [
            f"{name}={spec[name]}"
            for name, default in DEFAULTS.items()
            if name in spec and spec[name] != default
        ]
        if chosen:
            Workload.objects.filter(pk=workload.pk).update(variant=" ".join(chosen)[:200])


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0006_notes"),
    ]

    operations = [
        migrations.AddField(
            model_name="workload",
            name="variant",
            field=models.CharField(
                blank=True,
                default="",
                help_text="other fields that are not at their default",
                max_length=200,
            ),
            preserve_default=False,
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
