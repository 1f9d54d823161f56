"""Rows: fields, constraints and small properties. Verbs live in services, reads in queries."""

from dashboard.models.accounts import Audit, Role, SignInFailure, SignInLink, User
from dashboard.models.annotations import Annotation
from dashboard.models.artifacts import Artifact, RunArtifact
from dashboard.models.bisect import (
    BISECT_ENDED,
    Bisect,
    BisectAnswer,
    BisectOutcome,
    BisectState,
    BisectStep,
    BisectStepKind,
)
from dashboard.models.calibrations import Calibration
from dashboard.models.catalog import Model, Platform, Workload
from dashboard.models.changes import (
    Change,
    ChangeDirection,
    ChangeKind,
    ChangeState,
    WatchedSeries,
)
from dashboard.models.comparisons import (
    COMPARISON_ENDED,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    Launch,
    Pair,
    Side,
)
from dashboard.models.groups import GroupKind, NoiseFloor, RunGroup
from dashboard.models.notes import Note, NoteKind
from dashboard.models.retention import Pin, Pruning, RetentionPolicy
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
from dashboard.models.standings import Standing
from dashboard.models.templates import Template, TemplateVersion
from dashboard.models.traces import Operator, Trace, TraceSet, TraceState
from dashboard.models.workers import Heartbeat

__all__ = [
    "BISECT_ENDED",
    "COMPARISON_ENDED",
    "Annotation",
    "Artifact",
    "Attempt",
    "Audit",
    "Bisect",
    "BisectAnswer",
    "BisectOutcome",
    "BisectState",
    "BisectStep",
    "BisectStepKind",
    "Calibration",
    "Change",
    "ChangeDirection",
    "ChangeKind",
    "ChangeState",
    "Commit",
    "ComparedState",
    "ComparedWorkload",
    "Comparison",
    "ComparisonState",
    "FailureKind",
    "FetchState",
    "GroupKind",
    "Heartbeat",
    "IdempotencyKey",
    "Launch",
    "MetricValue",
    "Model",
    "NoiseFloor",
    "Note",
    "NoteKind",
    "Operator",
    "Outbox",
    "Pair",
    "Pin",
    "Platform",
    "Pruning",
    "Repository",
    "Result",
    "RetentionPolicy",
    "Role",
    "Run",
    "RunArtifact",
    "RunEvent",
    "RunGroup",
    "RunState",
    "Side",
    "SignInFailure",
    "SignInLink",
    "Standing",
    "Template",
    "TemplateVersion",
    "Trace",
    "TraceSet",
    "TraceState",
    "User",
    "WatchedSeries",
    "Workload",
]
