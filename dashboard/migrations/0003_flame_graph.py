"""Traces keep what their own flame graph draws; operators their name across vendors."""

from __future__ import annotations

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F


def fill_canonical(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Rows of before know one name; reading their trace again brings the other."""
    apps.get_model("dashboard", "Operator").objects.update(canonical=F("name"))


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0002_templates"),
    ]

    operations = [
        migrations.AddField(
            model_name="trace",
            name="graph",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="graph_traces",
                to="dashboard.artifact",
            ),
        ),
        migrations.AddField(
            model_name="operator",
            name="canonical",
            field=models.CharField(
                default="",
                help_text="the name used across vendors",
                max_length=500,
            ),
            preserve_default=False,
        ),
        migrations.RunPython(fill_canonical, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="operator",
            index=models.Index(fields=["canonical"], name="operator_by_canonical"),
        ),
    ]
