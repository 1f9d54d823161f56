"""What confirmed changes are told to people and to other programs.

One announcement per change and kind; who is told is decided when it is made:
a receipt per person, a delivery per e-mail address and per endpoint.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class AnnouncementKind(models.TextChoices):
    SLOWER = "slower", "Slower"
    FASTER = "faster", "Faster"
    FIXED = "fixed", "Fixed"


class Announcement(models.Model):
    """A change that was confirmed, or one that a later commit took back.

    The texts are those of the moment: what is told twice reads the same twice.
    """

    change = models.ForeignKey(
        "dashboard.Change", on_delete=models.CASCADE, related_name="announcements"
    )
    kind = models.CharField(max_length=10, choices=AnnouncementKind.choices)
    model = models.ForeignKey("dashboard.Model", on_delete=models.PROTECT)
    severity = models.FloatField(help_text="size of the change as a share, without its sign")
    title = models.CharField(max_length=200)
    sentence = models.CharField(max_length=1000)
    facts = models.JSONField(help_text="field -> value, as the webhook tells it")
    made_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["change", "kind"], name="one_announcement_per_change_and_kind"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=AnnouncementKind.values, severity__gte=0),
                name="announcement_is_possible",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class Subscription(models.Model):
    """What a person wants to hear about; without any, everything in the product, no e-mail."""

    user = models.ForeignKey(
        "dashboard.User", on_delete=models.CASCADE, related_name="subscriptions"
    )
    model = models.ForeignKey(
        "dashboard.Model", null=True, on_delete=models.CASCADE, help_text="none: every model"
    )
    least = models.FloatField(default=0.0, help_text="smallest severity as a share")
    improvements = models.BooleanField(default=True)
    email = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["user", "model"], name="one_subscription_per_model"),
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(model__isnull=True),
                name="one_subscription_to_every_model",
            ),
            models.CheckConstraint(
                condition=Q(least__gte=0, least__lt=1), name="subscription_least_is_a_share"
            ),
        ]

    def __str__(self) -> str:
        return f"subscription of {self.user_id}"


class Receipt(models.Model):
    """An announcement in a person's list."""

    user = models.ForeignKey("dashboard.User", on_delete=models.CASCADE, related_name="receipts")
    announcement = models.ForeignKey(
        Announcement, on_delete=models.CASCADE, related_name="receipts"
    )
    read_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "announcement"], name="one_receipt_per_person")
        ]
        indexes = [models.Index(fields=["user", "read_at"], name="receipt_by_reader")]

    def __str__(self) -> str:
        return f"receipt {self.pk}"


class Endpoint(models.Model):
    """Another program that is told by HTTP. Its secret is derived, never stored."""

    name = models.CharField(max_length=60, unique=True)
    url = models.CharField(max_length=500)
    private_network = models.BooleanField(
        default=False, help_text="whether its host may lie in a private network"
    )
    model = models.ForeignKey("dashboard.Model", null=True, on_delete=models.CASCADE)
    least = models.FloatField(default=0.0)
    improvements = models.BooleanField(default=True)
    generation = models.PositiveIntegerField(default=1, help_text="a new one ends the old secret")
    enabled = models.BooleanField(default=True)
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    GAVE_UP = "gave_up", "Gave up"


class Delivery(models.Model):
    """One announcement on its way to one address; sent at least once, written exactly once.

    `announcement` is empty for a test that somebody asked for.
    """

    announcement = models.ForeignKey(
        Announcement, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    user = models.ForeignKey("dashboard.User", null=True, on_delete=models.CASCADE)
    endpoint = models.ForeignKey(
        Endpoint, null=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    state = models.CharField(
        max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    tries = models.PositiveIntegerField(default=0)
    fence = models.PositiveBigIntegerField(default=0)
    not_before = models.DateTimeField(help_text="next try; while one is made, when it is lost")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "not_before"], name="delivery_by_time")]
        constraints = [
            models.UniqueConstraint(fields=["announcement", "user"], name="one_mail_per_person"),
            models.UniqueConstraint(
                fields=["announcement", "endpoint"], name="one_delivery_per_endpoint"
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=False, endpoint__isnull=True)
                | Q(user__isnull=True, endpoint__isnull=False),
                name="delivery_has_one_address",
            ),
            models.CheckConstraint(
                condition=Q(state=DeliveryState.WAITING, ended_at__isnull=True)
                | Q(~Q(state=DeliveryState.WAITING), ended_at__isnull=False),
                name="delivery_ended_iff_not_waiting",
            ),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk} ({self.state})"


class DeliveryTry(models.Model):
    """One attempt of a delivery and what came of it; append only."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="log")
    at = models.DateTimeField()
    worked = models.BooleanField()
    text = models.CharField(max_length=300)

    class Meta:
        verbose_name_plural = "delivery tries"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"try of delivery {self.delivery_id}"
