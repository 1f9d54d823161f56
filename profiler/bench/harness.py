"""One run from specification to published result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

import torch

import profiler
from profiler import spec as specs
from profiler.bench import passes
from profiler.bench.build import build, seed_everything
from profiler.bench.communication import UNSEEN, talk_metrics, talk_of
from profiler.bench.configs import plan_model
from profiler.bench.contamination import Watch, warnings_of
from profiler.bench.depth import not_by_ranks
from profiler.bench.devices import Clock, Device
from profiler.bench.failures import classified
from profiler.bench.fingerprint import fingerprint
from profiler.bench.fit import require_fit
from profiler.bench.graphs import Compiler
from profiler.bench.graphs import compiler as compiler_of
from profiler.bench.loading import loading_metrics
from profiler.bench.output import ENVIRONMENT, RESULT, TRACE, Reporter, Staging, staging
from profiler.bench.parallel import check_parallel
from profiler.bench.passes import Session
from profiler.bench.ranks import Ranks, joined
from profiler.bench.savings import check_savings
from profiler.bench.scenarios import REGISTRY
from profiler.bench.scenarios.base import Bench
from profiler.cpus import usable_cpus
from profiler.types import Environment, Metric, ModelFacts, Result, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What belongs to this process: its place among the ranks, its reports and its clock."""

    ranks: Ranks
    reporter: Reporter
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What the load phase leaves for the others."""

    session: Session
    facts: ModelFacts
    environment: Environment
    loading: tuple[Metric, ...]
    experts: int | None


def run(spec: RunSpec, out: Path, *, reporter: Reporter, clock: Clock = perf_counter_ns) -> Result:
    """Measure `spec` and publish `result.json`, `env.json` and the trace in folder `out`.

    Raises `UserError` (spec, device memory, unsupported, non-finite) and
    leaves no output behind then; `clock` gives nanoseconds.
    """
    specs.check_model(specs.check(spec))
    with (
        staging(out) as stage,
        classified(spec.device),
        joined(spec) as ranks,
        compiler_of(spec.compile) as compiler,
    ):
        own = Own(ranks=ranks, reporter=reporter if ranks.leads else Reporter(None), clock=clock)
        loaded = _load(spec, compiler, own)
        result = _measure(loaded, stage, ranks)
        if ranks.leads:
            stage.write(ENVIRONMENT, loaded.environment)
            stage.write(RESULT, result)
        else:
            stage.publish()
        # The others' traces are in place before the result says that the run is complete.
        ranks.barrier()
        if ranks.leads:
            stage.publish()
    return result


def set_threads(threads: int | None) -> int:
    """Fix torch's CPU threads to `threads`, else one per usable CPU; gives the number."""
    count = threads or usable_cpus()
    torch.set_num_threads(count)
    return count


def _measure(loaded: Loaded, stage: Staging, ranks: Ranks) -> Result:
    session = loaded.session
    spec = session.bench.spec
    first_call, routing = passes.correctness(session, loaded.experts)
    unsteady = passes.warm_up(session)
    watch = Watch(session.bench.device)
    with watch.over():
        own_units = passes.timed(session, ranks.barrier)
    units, rank_step_ns = ranks.slowest(own_units)
    timed = session.scenario.metrics(units)
    memory, warnings = passes.memory(session)
    profiled = passes.profiled(session, units, stage.path(ranks.suffix(TRACE)))
    talk, unseen = _communication(ranks, stage.path(ranks.suffix(TRACE)))
    seen = watch.seen(alone=ranks.count == 1)
    return Result(
        spec=spec,
        spec_hash=specs.spec_hash(spec),
        model=loaded.facts,
        metrics=(*timed, *talk, *map(ranks.highest, (*memory, first_call, *loaded.loading))),
        profiled_ratio=profiled.ratio,
        profiled_note=profiled.note,
        warnings=(
            *warnings_of(seen, usable_cpus()),
            *session.compiler.warnings(),
            *unsteady,
            *warnings,
            *profiled.warnings,
            *unseen,
        ),
        profiler_version=profiler.__version__,
        contamination=seen,
        graphs=session.compiler.report(),
        routing=routing,
        rank_step_ns=rank_step_ns,
        extrapolation=not_by_ranks(spec, loaded.facts.full_layers),
    )


def _communication(ranks: Ranks, trace: Path) -> tuple[tuple[Metric, ...], tuple[str, ...]]:
    """Communication metrics from every rank's trace, and a warning when it shows none."""
    if ranks.count == 1 or not trace.exists():
        return (), ()
    metrics = talk_metrics(ranks.gathered(talk_of(trace)))
    return metrics, () if metrics else (UNSEEN,)


def _load(spec: RunSpec, compiler: Compiler, own: Own) -> Loaded:
    ranks, reporter = own.ranks, own.reporter
    reporter.step("load", 0, 1, f"{spec.model} {spec.scenario} on {spec.device}")
    set_threads(spec.threads or max(1, usable_cpus() // ranks.count))
    device = Device(ranks.device(spec.device), own.clock)
    seed_everything(spec.seed)
    plan = plan_model(spec)
    check_parallel(plan, spec)
    check_savings(plan, spec)
    require_fit(plan, spec, device)
    built = build(plan, spec, device, rank=ranks.rank)
    bench = Bench(
        spec=spec,
        model=ranks.wrap(built.model, spec),
        inputs=built.inputs,
        vocabulary=built.vocabulary,
        device=device,
        cost=built.cost,
        cache_parts=built.cache_parts,
    )
    scenario = REGISTRY[spec.scenario](bench)
    environment = fingerprint(device)
    reporter.step("load", 1, 1)
    return Loaded(
        session=Session(bench=bench, scenario=scenario, reporter=reporter, compiler=compiler),
        facts=built.facts,
        experts=built.experts,
        environment=environment,
        loading=loading_metrics(built.loading, plan.checkpoint, device),
    )
