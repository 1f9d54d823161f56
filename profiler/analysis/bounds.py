"""Report rows of the roofline, the pricing and the splits of steps: plain data, cheap to load.

Times are integer nanoseconds, sizes bytes, rates per second; `None` means not known.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakFacts:
    """What the device can do at most, and how far that may be trusted.

    `label` is `measured` (on the platform), `entered` (by a person, for the
    platform or the run), `datasheet` (checked against the published sheet) or
    `unverified`: then there are rates, but no efficiency.
    `flops` in FLOP/s by type, `bandwidth` of memory in bytes/s.
    """

    device: str
    label: str
    source: str = ""
    as_of: str | None = None
    flops: dict[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    memory_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRow:
    """Counted calls of one operator, or of one operator with one set of inputs.

    `total_ns` is device time of the calls with everything in them, on a
    processor their host time; `share` of the time of all operators. `flops`
    and `bytes` are those of all calls, None where unknown; `flop_rate` and
    `byte_rate` what was reached. `bound` is one of compute, memory, launch,
    communication, host, unknown; `bound_ns` the least time of all calls and
    `efficiency` bound over measured, None where the peak is unknown or
    unverified. `shapes` and `dtypes` are JSON text as recorded, empty in rows
    by operator. `dtype` is the type most of the arithmetic ran in.
    """

    name: str
    shapes: str = ""
    dtypes: str = ""
    calls: int
    total_ns: int
    share: float
    flops: int | None
    bytes: int | None
    flop_rate: float | None
    byte_rate: float | None
    bound: str
    bound_ns: int | None
    efficiency: float | None
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedRow:
    """An operator without a formula, or whose inputs do not say enough."""

    name: str
    calls: int
    total_ns: int
    share: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineReport:
    """Operators against the roofline, by time; `counted_share` is the time that has a formula.

    Communication counts as a bound of its own and not as uncounted.
    `time` says what `total_ns` is: `device` or `host`.
    """

    time: str
    peak: PeakFacts | None
    counted_share: float
    operators: list[BoundRow] = field(default_factory=list)
    shapes: list[BoundRow] = field(default_factory=list)
    uncounted: list[UncountedRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalCall:
    """One operator with one set of inputs: the time of a call in the steps that were replayed.

    Device time with everything in it, on a processor host time. `noise_ns` is
    the spread of a call: 1.4826 x the median absolute deviation. Later runs
    of the workload are held against it.
    """

    name: str
    shapes: str = ""
    dtypes: str = ""
    calls: int
    median_ns: int
    noise_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """How the findings were priced, and what they bring together.

    Gains do not add up: `joint_top_ns` is what the first three bring together,
    `joint_all_ns` all that are shown, per step. `exact` says that the replay
    without change gave the measured time; `inferred_edges` and
    `dropped_edges` count waits it assumed, and orders the measured times
    contradict. `folded` findings were too small to show, below `fold_share`.
    Where the step was also timed without a profiler (`timed_step_ns`) and
    recording slowed it noticeably, that was taken out before anything was
    priced: `recorded_step_ns` is the step as recorded, `record_ns` what a
    record of one operator cost, `cold_share` the part of the code between
    records that ran longer for cold caches, `step_ns` the step that is left.
    """

    window: str
    steps: int
    step_ns: int
    joint_top_ns: int
    joint_all_ns: int
    exact: bool
    inferred_edges: int
    dropped_edges: int
    folded: int
    fold_share: float
    recorded_step_ns: int | None = None
    timed_step_ns: int | None = None
    record_ns: float | None = None
    cold_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRow:
    """Where the time of one step, or of all stretches of one phase, goes on one device.

    `kind` is `step` or `phase`, `device` empty on the host; `count` stretches
    have this name. compute + exposed_comm + exposed_copy + the causes of
    `idle` = span, exactly; causes are those of `IdleRow`, `edge` (before the
    first work of the device or after its last) and `between_operators` on the host.
    """

    kind: str
    name: str
    device: str
    count: int
    span_ns: int
    compute_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    idle: dict[str, int] = field(default_factory=dict)
