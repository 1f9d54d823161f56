"""Templates: named workload matrices whose versions never change once stored."""

from __future__ import annotations

from django.db import models


class Template(models.Model):
    """A named matrix of workloads; what it expands to stands in its versions."""

    name = models.SlugField(max_length=40, unique=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class TemplateVersion(models.Model):
    """One state of a template. A change makes a new version, so old runs keep their meaning."""

    template = models.ForeignKey(Template, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=120)
    about = models.CharField(max_length=500, blank=True)
    text = models.TextField(help_text="the matrix as TOML")
    runs = models.PositiveIntegerField(help_text="how many runs it expands to")
    created_by = models.ForeignKey("dashboard.User", null=True, on_delete=models.SET_NULL)
    shipped = models.BooleanField(default=False, help_text="whether it came with the project")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["template", "number"], name="one_version_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.template.name} v{self.number}"
