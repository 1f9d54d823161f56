"""The report of one trace: the JSON of `analyze --json`, as frozen dataclasses.

Times are integer nanoseconds, sizes bytes. `None` means not known, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from profiler.analysis.bounds import Pricing, RooflineReport, SplitRow, TypicalCall
from profiler.errors import TraceError

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Which file this is and what it holds; `events` counts all phases."""

    path: str
    sha256: str
    events: int
    events_by_category: dict[str, int]
    torch_version: str | None
    device_kind: str
    devices: list[str]
    rank: int | None
    world_size: int | None
    start_ns: int = 0
    base_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimeline:
    """How one device's time splits between its first and last work.

    busy = union of all work; idle = span - busy; compute, comm, copy are
    unions of their class; exposed_comm = comm outside compute; exposed_copy =
    copy outside compute and comm; overlap_ratio = 1 - exposed_comm / comm.
    """

    device: str
    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    comm_ns: int
    copy_ns: int
    exposed_comm_ns: int
    exposed_copy_ns: int
    overlap_ratio: float | None
    wait_ns: int = 0
    source: str = "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """Work of one device stream: sum and union of its durations."""

    device: str
    stream: str
    events: int
    total_ns: int
    union_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """All device work of one name."""

    name: str
    device_class: str
    count: int
    total_ns: int
    min_ns: int
    max_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """All calls of one host operator.

    Self time is the call minus the union of the operators directly inside
    it. Device self time is the work its own launches started; device total
    adds that of the operators inside. `canonical` is the name used across
    vendors for what `name` calls by its vendor's (empty in reports of before).
    """

    name: str
    count: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int
    device_self_ns: int
    canonical: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRow:
    """Calls of one operator with one set of input shapes and types (JSON text as recorded)."""

    name: str
    shapes: str
    dtypes: str
    count: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int
    device_self_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step; `start_ns` counts from the first event of the trace."""

    name: str
    start_ns: int
    dur_ns: int
    phase: str | None
    device_busy_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Percentiles of a set of durations."""

    p50: int
    p90: int
    p99: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """Links between device work and host calls.

    `linked` and `unlinked` count device events; `by_rule` how they were
    linked; `delay_ns` from the end of a launching call to the start of its
    work (calls that start one piece of work, floor 0). `before_window`
    is work whose launch happened before the recording began.
    """

    linked: int
    unlinked: int
    by_rule: dict[str, int]
    delay_ns: Percentiles | None
    calls: int = 0
    calls_with_work: int = 0
    graph_calls: int = 0
    graph_events: int = 0
    graph_device_ns: int = 0
    before_window: int = 0
    before_window_ns: int = 0
    short_kernels: int = 0
    queue_depth: Percentiles | None = None
    queue_depth_max: int | None = None
    blocking_calls: int = 0
    blocking_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleRow:
    """Idle time of a device by what it waited for."""

    device: str
    cause: str
    total_ns: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """All calls of one collective in one group size.

    `bytes` is the payload of all calls; algbw = bytes / time; busbw = algbw
    times the traffic factor of the collective (2(n-1)/n for all-reduce,
    (n-1)/n for all-gather, reduce-scatter, all-to-all), bytes per second.
    """

    name: str
    group_size: int | None
    count: int
    bytes: int | None
    total_ns: int
    exposed_ns: int
    algbw: float | None = None
    busbw: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """What happened to the data. Attributed + unattributed device time is all device time."""

    repaired: int
    dropped: int
    clipped: int
    unlinked_kernels: int
    attributed_device_ns: int
    unattributed_device_ns: int
    warnings: list[str]
    repaired_by: dict[str, int] = field(default_factory=dict)
    dropped_by: dict[str, int] = field(default_factory=dict)
    clipped_by: dict[str, int] = field(default_factory=dict)
    flows_paired: int = 0
    flows_unpaired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadRow:
    """One host thread: the operators' self times add up to the union of their intervals."""

    thread: int
    pid: str
    tid: str
    name: str
    events: int
    union_ns: int
    operators_self_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRow:
    """All calls of one module; self time excludes the modules inside it."""

    path: str
    count: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPoint:
    """Allocated and reserved bytes of a device after one change, at most some thousand points."""

    at_ns: int
    allocated_bytes: int
    reserved_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryShare:
    """What the memory at the peak was for.

    `category` is one of activations, gradients, optimiser, kv cache, temporary,
    kept (outlives its step and is none of those), before (allocated before the
    recording: weights, and whatever else was there).
    """

    category: str
    bytes: int
    allocations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOwner:
    """Who allocated memory that was held at the peak: module (layers together) and operator."""

    module: str
    operator: str
    category: str
    bytes: int
    allocations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """Memory of one device over the trace.

    `shares` add up to the peak; they and `owners` (the largest) are empty where
    the records carry no addresses.
    """

    device: str
    records: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int | None
    peak_at_ns: int
    points: list[MemoryPoint]
    shares: list[MemoryShare] = field(default_factory=list)
    owners: list[MemoryOwner] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPart:
    """Time of one kind on the critical path."""

    kind: str
    name: str
    total_ns: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath:
    """The chain of work that decided how long one step took; parts add up to `total_ns`."""

    step: str
    total_ns: int
    parts: list[PathPart]
    inferred_edges: int
    recorded_edges: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One rank of a set, clocks aligned."""

    rank: int
    path: str
    span_ns: int
    busy_ns: int
    comm_ns: int
    exposed_comm_ns: int
    compute_ns: int
    clock_shift_ns: int
    late_ns: int
    waited_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSet:
    """Several ranks together: the straggler is the rank others wait for most."""

    ranks: list[RankRow]
    straggler: int | None
    matched_collectives: int
    skew_ns: Percentiles | None
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A ranked bottleneck; filled by the findings engine."""

    kind: str
    title: str
    subject: str
    recoverable_ns_per_step: int | None
    share: float
    evidence: dict[str, object]
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything `analyze` says about a trace."""

    schema: int = SCHEMA
    trace: TraceFacts
    span_ns: int
    timeline: list[DeviceTimeline]
    streams: list[StreamRow]
    kernels: list[KernelRow]
    operators: list[OperatorRow]
    steps: list[StepRow]
    launches: Launches
    idle: list[IdleRow]
    collectives: list[CollectiveRow]
    quality: QualityReport
    findings: list[FindingRow] = field(default_factory=list)
    threads: list[ThreadRow] = field(default_factory=list)
    modules: list[ModuleRow] = field(default_factory=list)
    operator_shapes: list[ShapeRow] = field(default_factory=list)
    memory: list[MemoryCurve] = field(default_factory=list)
    critical_path: CriticalPath | None = None
    ranks: RankSet | None = None
    roofline: RooflineReport | None = None
    pricing: Pricing | None = None
    typical: list[TypicalCall] = field(default_factory=list)
    splits: list[SplitRow] = field(default_factory=list)


_ENCODER = msgspec.json.Encoder(decimal_format="number")
_DECODER = msgspec.json.Decoder(Report)


def dump(report: Report) -> bytes:
    """The report as strict JSON, equal reports giving equal bytes; NaN cannot occur in it."""
    return msgspec.json.format(_ENCODER.encode(report), indent=1)


def load_report(path: Path) -> Report:
    """The report stored in `path`; raises `TraceError` when it is none."""
    try:
        return _DECODER.decode(path.read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"report {path} cannot be read: {reason}", "analyse it again") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"report {path} is damaged: {error}", "analyse it again") from None
