import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q

USER = settings.AUTH_USER_MODEL
CASCADE = django.db.models.deletion.CASCADE
PROTECT = django.db.models.deletion.PROTECT
SET_NULL = django.db.models.deletion.SET_NULL
KINDS = [("slower", "Slower"), ("faster", "Faster"), ("fixed", "Fixed")]
STATES = [("waiting", "Waiting"), ("sent", "Sent"), ("gave_up", "Gave up")]


def key():
    return (
        "id",
        models.BigAutoField(
            auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
        ),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0016_automation"),
    ]

    operations = [
        migrations.CreateModel(
            name="Announcement",
            fields=[
                key(),
                ("kind", models.CharField(choices=KINDS, max_length=10)),
                (
                    "severity",
                    models.FloatField(
                        help_text="size of the change as a share, without its sign"
                    ),
                ),
                ("title", models.CharField(max_length=200)),
                ("sentence", models.CharField(max_length=1000)),
                ("facts", models.JSONField(help_text="field -> value, as the webhook tells it")),
                ("made_at", models.DateTimeField(db_index=True)),
                (
                    "change",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="announcements", to="dashboard.change"
                    ),
                ),
                ("model", models.ForeignKey(on_delete=PROTECT, to="dashboard.model")),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("change", "kind"), name="one_announcement_per_change_and_kind"
                    ),
                    models.CheckConstraint(
                        condition=Q(kind__in=["slower", "faster", "fixed"], severity__gte=0),
                        name="announcement_is_possible",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                key(),
                (
                    "least",
                    models.FloatField(default=0.0, help_text="smallest severity as a share"),
                ),
                ("improvements", models.BooleanField(default=True)),
                ("email", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                (
                    "model",
                    models.ForeignKey(
                        help_text="none: every model",
                        null=True,
                        on_delete=CASCADE,
                        to="dashboard.model",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=CASCADE, related_name="subscriptions", to=USER),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "model"), name="one_subscription_per_model"
                    ),
                    models.UniqueConstraint(
                        condition=Q(model__isnull=True),
                        fields=("user",),
                        name="one_subscription_to_every_model",
                    ),
                    models.CheckConstraint(
                        condition=Q(least__gte=0, least__lt=1),
                        name="subscription_least_is_a_share",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                key(),
                ("read_at", models.DateTimeField(null=True)),
                (
                    "announcement",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="receipts", to="dashboard.announcement"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=CASCADE, related_name="receipts", to=USER),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "read_at"], name="receipt_by_reader")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "announcement"), name="one_receipt_per_person"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                key(),
                ("name", models.CharField(max_length=60, unique=True)),
                ("url", models.CharField(max_length=500)),
                (
                    "private_network",
                    models.BooleanField(
                        default=False,
                        help_text="whether its host may lie in a private network",
                    ),
                ),
                ("least", models.FloatField(default=0.0)),
                ("improvements", models.BooleanField(default=True)),
                (
                    "generation",
                    models.PositiveIntegerField(
                        default=1, help_text="a new one ends the old secret"
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField()),
                ("created_by", models.ForeignKey(null=True, on_delete=SET_NULL, to=USER)),
                (
                    "model",
                    models.ForeignKey(null=True, on_delete=CASCADE, to="dashboard.model"),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                key(),
                ("state", models.CharField(choices=STATES, default="waiting", max_length=10)),
                ("tries", models.PositiveIntegerField(default=0)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                (
                    "not_before",
                    models.DateTimeField(
                        help_text="next try; while one is made, when it is lost"
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "announcement",
                    models.ForeignKey(
                        null=True,
                        on_delete=CASCADE,
                        related_name="deliveries",
                        to="dashboard.announcement",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        null=True,
                        on_delete=CASCADE,
                        related_name="deliveries",
                        to="dashboard.endpoint",
                    ),
                ),
                ("user", models.ForeignKey(null=True, on_delete=CASCADE, to=USER)),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["state", "not_before"], name="delivery_by_time")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("announcement", "user"), name="one_mail_per_person"
                    ),
                    models.UniqueConstraint(
                        fields=("announcement", "endpoint"), name="one_delivery_per_endpoint"
                    ),
                    models.CheckConstraint(
                        condition=Q(user__isnull=False, endpoint__isnull=True)
                        | Q(user__isnull=True, endpoint__isnull=False),
                        name="delivery_has_one_address",
                    ),
                    models.CheckConstraint(
                        condition=Q(state="waiting", ended_at__isnull=True)
                        | Q(~Q(state="waiting"), ended_at__isnull=False),
                        name="delivery_ended_iff_not_waiting",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryTry",
            fields=[
                key(),
                ("at", models.DateTimeField()),
                ("worked", models.BooleanField()),
                ("text", models.CharField(max_length=300)),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=CASCADE, related_name="log", to="dashboard.delivery"
                    ),
                ),
            ],
            options={"verbose_name_plural": "delivery tries", "ordering": ["id"]},
        ),
    ]
