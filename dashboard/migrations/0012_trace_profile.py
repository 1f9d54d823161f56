import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0011_retention"),
    ]

    operations = [
        migrations.AddField(
            model_name="trace",
            name="profile",
            field=models.ForeignKey(
                help_text="time per step by operator, for comparing; absent in readings of before",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="profile_traces",
                to="dashboard.artifact",
            ),
        ),
    ]
