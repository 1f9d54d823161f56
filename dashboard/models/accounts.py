"""People, what they may do, and the record of what they did."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    """Viewer reads; operator also triggers, cancels and uploads; admin also manages people."""

    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"


class User(AbstractUser):
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="user_role_is_known"
            )
        ]

    @property
    def may_operate(self) -> bool:
        return self.role in {Role.OPERATOR, Role.ADMIN}

    @property
    def may_admin(self) -> bool:
        return self.role == Role.ADMIN


class SignInLink(models.Model):
    """A one-time way in for `user`; only the hash of its token is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE)
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"sign-in link of {self.user_id}"


class SignInFailure(models.Model):
    """One failed attempt to sign in; counted to slow down guessing."""

    account = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [
            models.Index(fields=["account", "at"], name="failure_by_account"),
            models.Index(fields=["address", "at"], name="failure_by_address"),
        ]

    def __str__(self) -> str:
        return f"{self.account} from {self.address}"


class Audit(models.Model):
    """Who did what to which object; written in the transaction of the deed, never changed."""

    at = models.DateTimeField(db_index=True)
    user = models.ForeignKey(User, null=True, on_delete=models.SET_NULL)
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"
