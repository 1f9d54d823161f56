"""Rows: fields, constraints and small properties. Verbs live in services, reads in queries."""

from dashboard.models.accounts import Audit, Role, SignInFailure, SignInLink, User
from dashboard.models.artifacts import Artifact, RunArtifact
from dashboard.models.catalog import Model, Platform, Workload
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
from dashboard.models.traces import Operator, Trace, TraceSet, TraceState
from dashboard.models.workers import Heartbeat

__all__ = [
    "Artifact",
    "Attempt",
    "Audit",
    "FailureKind",
    "Heartbeat",
    "IdempotencyKey",
    "MetricValue",
    "Model",
    "Operator",
    "Outbox",
    "Platform",
    "Result",
    "Role",
    "Run",
    "RunArtifact",
    "RunEvent",
    "RunState",
    "SignInFailure",
    "SignInLink",
    "Trace",
    "TraceSet",
    "TraceState",
    "User",
    "Workload",
]
