"""What can be measured, and where."""

from __future__ import annotations

from django.db import models

from profiler.types import SCENARIOS

SCENARIO_CHOICES = [(name, name) for name in SCENARIOS]


class Platform(models.Model):
    """A named machine class; a run needs a worker of its platform."""

    slug = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    device = models.CharField(max_length=40, help_text="torch device a run uses, such as cpu")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.slug


class Model(models.Model):
    """An architecture plus configuration."""

    name = models.CharField(max_length=64, unique=True)
    title = models.CharField(max_length=120)
    architecture = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


def workload_label(batch: int, prompt: int, output: int | None, rest: str) -> str:
    """`b8 in4096 out32 bfloat16 compile=default`; `rest` is dtype and variant."""
    out = f" out{output}" if output else ""
    return f"b{batch} in{prompt}{out} {rest}".rstrip()


class Workload(models.Model):
    """Model x scenario x parameters: the unit of history. `hash` covers all of it."""

    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="workloads")
    scenario = models.CharField(max_length=10, choices=SCENARIO_CHOICES)
    hash = models.CharField(max_length=64, unique=True)
    batch = models.PositiveIntegerField()
    prompt_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField(null=True)
    dtype = models.CharField(max_length=16)
    variant = models.CharField(
        max_length=200, blank=True, help_text="other fields that are not at their default"
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scenario__in=SCENARIOS), name="workload_scenario_is_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.scenario} {self.label}"

    @property
    def label(self) -> str:
        """The parameters without model and scenario."""
        return workload_label(
            self.batch, self.prompt_tokens, self.output_tokens, f"{self.dtype} {self.variant}"
        )
