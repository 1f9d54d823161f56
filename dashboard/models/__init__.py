"""Rows: fields, constraints and small properties. Verbs live in services, reads in queries."""

from dashboard.models.accounts import Audit, Role, SignInFailure, SignInLink, User
from dashboard.models.artifacts import Artifact, RunArtifact
from dashboard.models.catalog import Model, Platform, Workload
from dashboard.models.groups import GroupKind, NoiseFloor, RunGroup
from dashboard.models.runs import (
    Attempt,
    FailureKind,
    IdempotencyKey,
    MetricValue,
    Outbox,
    Result,
    Run,
    RunEvent,
    RunState,
)
from dashboard.models.sources import Commit, FetchState, Repository
from dashboard.models.templates import Template, TemplateVersion
from dashboard.models.traces import Operator, Trace, TraceSet, TraceState
from dashboard.models.workers import Heartbeat

__all__ = [
    "Artifact",
    "Attempt",
    "Audit",
    "Commit",
    "FailureKind",
    "FetchState",
    "GroupKind",
    "Heartbeat",
    "IdempotencyKey",
    "MetricValue",
    "Model",
    "NoiseFloor",
    "Operator",
    "Outbox",
    "Platform",
    "Repository",
    "Result",
    "Role",
    "Run",
    "RunArtifact",
    "RunEvent",
    "RunGroup",
    "RunState",
    "SignInFailure",
    "SignInLink",
    "Template",
    "TemplateVersion",
    "Trace",
    "TraceSet",
    "TraceState",
    "User",
    "Workload",
]
