"""The words of the product, each with one meaning. Metrics come from their own definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dashboard.models import FailureKind, RunState, TraceState
from profiler.metrics import METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One term; pages link to `#anchor`."""

    anchor: str
    term: str
    meaning: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Entries that belong together."""

    anchor: str
    title: str
    entries: tuple[Entry, ...]


WORDS: dict[str, str] = {
    "model": "An architecture plus configuration: built in, a config.json, a local checkpoint, or "
    "a factory in a repository.",
    "scenario": "What the model is asked to do: prefill, decode or training.",
    "prefill": "Reading the whole prompt at once, up to the first new token.",
    "decode": "Producing the following tokens one by one.",
    "training": "Forward pass, backward pass and optimiser step on a batch.",
    "workload": "Model x scenario x parameters (batch, lengths, dtype ...): the unit of history.",
    "platform": "A named machine class: accelerator, count, memory. A run needs a worker of its "
    "platform.",
    "environment": "The fingerprint of one run: versions, clocks, driver, variables. Runs of "
    "different environments are not compared without saying so.",
    "run": "One execution of a workload on a platform. Terminal states never change; running "
    "again makes a new run.",
    "template": "A named matrix of workloads that are queued together. Saving a change makes a new "
    "version; earlier ones stay as they were.",
    "group": "The runs of one request: of a template in random order, or of an A/A control.",
    "A/A control": "Equal launches of one workload in fresh processes: their differences are "
    "noise.",
    "noise floor": "The median relative difference of two equal launches on a platform. Smaller "
    "changes mean nothing there.",
    "calibration": "Measured ceilings of a platform: matrix products, copies, launches, and what a "
    "call costs the host.",
    "attempt": "One claim of a run by a worker. A run whose worker was lost gets up to three.",
    "sample": "One measured value. A metric is the median of its samples unless its method says "
    "otherwise.",
    "metric": "A named quantity with unit and direction: lower or higher is better.",
    "spread": "Half the interquartile range of the samples, written behind the value as ±. It "
    "tells how much single samples differ, not how sure the median is.",
    "n": "How many samples stand behind a value.",
    "tuning": "One workload on one platform on its way from Day-0 to a target.",
    "Day-0": "What everything later is held against: of a history its oldest measured commit, of a "
    "tuning the median of chosen runs at one commit.",
    "iteration": "One tried optimisation: finding, hypothesis, predicted gain, commit, verdicts, "
    "decision. A decision stays; a new iteration corrects it.",
    "ladder": "The kept iterations of a tuning stacked from Day-0: each bar is what one brought, "
    "measured in pairs against the one below.",
    "target": "Where a tuning wants to go: a share of the roofline, the figure of another "
    "platform, or a value.",
    "trace": "A profiler file of one rank; it may also be uploaded without a run.",
    "rank, set": "One process of a job on several devices; the traces of all ranks together, "
    "uploaded at once or recorded by one run.",
    "straggler": "The rank the others wait for most in their collectives.",
    "exposed": "Communication or copies that no compute hides. Overlap is the hidden share of the "
    "communication time, not of the span.",
    "critical path": "The chain of host and device work that decided how long a step took. Only "
    "shortening what is on it shortens the step.",
    "launch delay": "From the end of the call that launched device work to its start.",
    "bus bandwidth": "Payload by time, times the traffic of the collective: comparable with the "
    "links of the machine.",
    "redacted copy": "A trace without credentials, environment, home folders, host and user names.",
    "retention": "How many days raw traces and columns are kept. Summaries, samples, results and "
    "verdicts stay for ever.",
    "pin": "A run or trace whose files no policy removes, with who wants that and why.",
    "demo data": "Generated rows and traces that manage.py seed_demo makes and removes. Their "
    "names say so, and nothing of them was measured.",
    "operator": "A host-side operation such as aten::mm.",
    "kernel": "A device activity that an operator launched.",
    "self time": "Time inside an operator without the operators it called.",
    "total time": "Time from the start to the end of an operator, including what it called.",
    "timed phase": "The measured repetitions; never profiled.",
    "profiled phase": "Separate repetitions under the profiler. They are slower; the ratio to the "
    "timed phase is shown with the run.",
    "what if": "A change the reader thinks of, priced by replaying the recorded steps with it.",
    "finding": "One ranked bottleneck: evidence, recoverable time per step, advice.",
    "baseline, candidate": "The two sides of a comparison.",
    "pair": "One launch of the baseline and one of the candidate, one right after the other; which "
    "comes first is random and balanced.",
    "standing": "Where a workload stands on a platform: newest run, Day-0, best and last point.",
    "annotation": "A remark on a history chart, at a commit or at a moment.",
    "readiness": "The Day-0 checklist of a model on a platform, with evidence per item.",
    "series": "What one workload took on one platform at the commits of one repository in one "
    "environment: a point per commit, in git order.",
    "change": "A step or slow leak of a series: suspected first, then confirmed or rejected by "
    "pairs, acknowledged or fixed.",
    "slow leak": "The newest stretch of a series is worse than its best one, and no step explains "
    "it.",
    "bisect": "The search for the commit between a good and a bad one that changed the speed of a "
    "workload: half the change between both parts good from bad.",
    "culprit": "The first bad commit of a bisect, compared with its own parent at the end.",
    "session": "A run that reserves the device and measures the next pairs of a comparison.",
    "repository": "Where commits come from: registered by an admin, with the branches that may be "
    "measured and the command that builds a commit.",
    "checkout": "A throw-away copy of a commit's files, made for one attempt and deleted with it.",
    "mirror": "The bare copy of a repository on a worker's host, holding the allowed branches.",
    "outbox": "Messages that wait for the keeper to pass them to the broker.",
    "schedule": "A rule that queues a template by itself: at fixed times, for new commits, or when "
    "the software stack of a platform changes.",
    "firing": "One time a schedule queued its template, or wants to. Each cause fires once.",
    "budget": "Device time per UTC day that schedules may use on a platform. People's runs are not "
    "limited.",
    "stack": "The versions a platform's workers run with, without what a workload sets for itself.",
    "announcement": "What people and programs are told, once, of a change that was confirmed or "
    "fixed.",
    "subscription": "What a person wants to hear about: model, smallest size, improvements, "
    "e-mail.",
    "delivery": "One announcement on its way to one address, with its tries.",
    "keeper": "The process that rings for queued work and takes back what a lost worker held.",
    "heartbeat": "A sign of life that every worker sends; without one its run is taken back.",
}

STATES: dict[RunState, str] = {
    RunState.QUEUED: "Waits for a worker of its platform.",
    RunState.RUNNING: "A worker has it; heartbeats arrive.",
    RunState.SUCCEEDED: "Measured; its result is stored and never changes.",
    RunState.FAILED: "The benchmark ended without a result; the failure kind says why.",
    RunState.TIMED_OUT: "Ended because it ran over its time limit.",
    RunState.CANCELLED: "Ended by a person.",
    RunState.LOST: "Its workers stopped answering as often as a run may be tried.",
    RunState.EXPIRED: "No worker of its platform took it within a week.",
}

TRACE_STATES: dict[TraceState, str] = {
    TraceState.PENDING: "Stored; waits to be read.",
    TraceState.INGESTING: "Being read.",
    TraceState.READY: "Read: operators, flame graph and report are there.",
    TraceState.REJECTED: "Could not be read; the reason is shown. The run keeps its numbers.",
}

FAILURES: dict[FailureKind, str] = {
    FailureKind.BAD_SPEC: "The specification cannot work, for example a model that is unknown.",
    FailureKind.BAD_CHECKPOINT: "The weights could not be loaded: missing, damaged, or of another "
    "model.",
    FailureKind.COMPILE_FAILED: "The compiler gave up on the model; its log holds the reason.",
    FailureKind.CRASHED: "The benchmark ended with an error; its log holds the details.",
    FailureKind.SIGNAL: "The operating system or somebody ended the process.",
    FailureKind.OOM_HOST: "It needed more host memory than it may use.",
    FailureKind.OOM_DEVICE: "It did not fit into the device's memory; try a smaller batch.",
    FailureKind.UNSUPPORTED: "The device cannot run an operator or number type of the model.",
    FailureKind.NON_FINITE: "The output held NaN or infinity, so the speed would mean nothing.",
    FailureKind.INVALID_RESULT: "It ended well but left no result that can be used.",
    FailureKind.DISK_FULL: "The worker's or the server's disk was full.",
    FailureKind.TIME_LIMIT: "It ran over its time limit and was ended.",
    FailureKind.WORKER_LOST: "The worker stopped answering.",
    FailureKind.WORKER_FAULT: "The worker failed, not the benchmark.",
    FailureKind.CANCELLED: "A person ended it.",
    FailureKind.NO_WORKER: "No worker of its platform was there.",
    FailureKind.UNKNOWN_COMMIT: "The commit is not in the repository.",
    FailureKind.OUTSIDE_REFS: "The commit is there, but none of the branches that may be measured "
    "reaches it.",
    FailureKind.NO_REPOSITORY: "The repository could not be fetched, as often as it was tried.",
    FailureKind.CHECKOUT_FAILED: "The commit's files could not be laid out: too large, or links "
    "that lead out of the tree.",
    FailureKind.BUILD_FAILED: "The build command of the repository ended with an error; the log "
    "holds its words.",
    FailureKind.BUILD_TIMED_OUT: "The build ran over its own time limit and was ended.",
}


def sections() -> tuple[Section, ...]:
    """The whole glossary."""
    return (
        Section(anchor="words", title="Words", entries=_words()),
        Section(anchor="metrics", title="Metrics", entries=_metrics()),
        Section(anchor="states", title="States of a run", entries=_states()),
        Section(anchor="trace-states", title="States of a trace", entries=_trace_states()),
        Section(anchor="failures", title="Kinds of failure", entries=_failures()),
    )


def _word_anchor(term: str) -> str:
    """`word-aa-control` for `A/A control`."""
    plain = re.sub(r"[^\w-]", "", term.replace(" ", "-"))
    return f"word-{plain}"


def _words() -> tuple[Entry, ...]:
    return tuple(
        Entry(anchor=_word_anchor(term), term=term, meaning=meaning)
        for term, meaning in WORDS.items()
    )


def _metrics() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            anchor=f"metric-{row.name}",
            term=row.title,
            meaning=row.meaning,
            note=f"{row.name}, in {row.unit}, {row.direction} is better, definition {row.version}",
        )
        for row in METRICS.values()
    )


def _states() -> tuple[Entry, ...]:
    return tuple(
        Entry(anchor=f"state-{state.value}", term=str(state.label), meaning=meaning)
        for state, meaning in STATES.items()
    )


def _trace_states() -> tuple[Entry, ...]:
    return tuple(
        Entry(anchor=f"trace-{state.value}", term=str(state.label), meaning=meaning)
        for state, meaning in TRACE_STATES.items()
    )


def _failures() -> tuple[Entry, ...]:
    return tuple(
        Entry(anchor=f"failure-{kind.value}", term=str(kind.label), meaning=meaning)
        for kind, meaning in FAILURES.items()
    )
