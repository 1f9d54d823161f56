"""What the findings engine says, as frozen dataclasses. Times are ns, shares of the step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profiler.analysis.replay.change import Change
from profiler.analysis.replay.recording import Recording

Confidence = Literal["high", "medium", "low"]
Value = int | float | str | bool | None | list[str] | list[int]
Evidence = Mapping[str, Value]

KINDS = (
    "roofline_gap",
    "regressed_operator",
    "host_wait",
    "launch_bound",
    "sync_point",
    "input_wait",
    "exposed_communication",
    "exposed_copy",
    "fusable_chain",
    "redundant_copy",
    "precision",
    "unfused_optimizer",
    "cpu_fallback",
    "recompilation",
    "graph_break",
    "host_overhead",
    "imbalance",
    "memory_pressure",
    "opaque_graph",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One thing that might be won, before it is priced.

    `change` is None when there is nothing to price (`evidence["reason"]` says
    why). `guessed`: finding or change rest on more than what the trace states.
    """

    kind: str
    subject: str
    title: str
    advice: str
    change: Change | None
    evidence: Evidence
    modules: tuple[str, ...] = ()
    calls: int = 0
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One priced finding.

    `recoverable_ns_per_step` is what a step would take less, by replay;
    with low confidence `low_ns_per_step` is what can be said for certain.
    `change` reproduces the figure (joint gains, what-if).
    """

    kind: str
    title: str
    subject: str
    recoverable_ns_per_step: int | None
    share: float
    evidence: Evidence
    advice: str
    confidence: Confidence
    modules: tuple[str, ...]
    calls: int
    low_ns_per_step: int | None = None
    change: Change | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Path:
    """How much of the measured critical path the trace states: shares between 0 and 1."""

    inferred: float
    opaque: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsResult:
    """All findings of one trace, by recoverable time.

    `findings` are worth showing, `folded` gain less than the fold limit.
    `joint_top_ns` is the gain of the first three together, `joint_all_ns` of
    all shown; both per step. `exact` says that the replay without change gave
    the measured span; `inferred_edges` and `dropped_edges` count what it guessed or left out.
    `path` is the
    measured critical path, `fold_share` the fold limit as a share of the step,
    `recording` what the profiler cost where that was taken out before.
    """

    findings: tuple[Finding, ...]
    folded: tuple[Finding, ...]
    steps: int
    step_ns: int
    joint_top_ns: int
    joint_all_ns: int
    exact: bool
    path: Path
    inferred_edges: int
    dropped_edges: int
    window: str
    fold_share: float
    recording: Recording | None = None

    @property
    def joint_top_share(self) -> float:
        """Joint gain of the first three as a share of the step."""
        return self.joint_top_ns / self.step_ns if self.step_ns else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PastOperator:
    """The best comparable past run of one operator signature: time of one call."""

    median_ns: int
    noise_ns: int
    run: str
    commit: str = ""


Past = Mapping[tuple[str, str, str], PastOperator]
"""Past medians by (name, shapes, types), texts as the trace records them."""
