"""The sub-commands that measure: `run` and `env`. torch loads only when one of them runs."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from profiler import spec as specs
from profiler import units
from profiler.bench.ending import ends_cleanly
from profiler.bench.launch import launch, needs_launch
from profiler.bench.output import Reporter, prepare, write_failure
from profiler.errors import ExitCode, UserError, printable
from profiler.types import Calibration, Environment, Failure

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def register(subparsers: Subparsers) -> None:
    """Add `run` and `env` to the command line."""
    run = subparsers.add_parser("run", help="measure one workload")
    run.add_argument("spec", type=Path, metavar="SPEC", help="JSON file of the run specification")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the outputs")
    run.set_defaults(handler=run_command)
    env = subparsers.add_parser("env", help="print the environment fingerprint")
    env.add_argument("--device", default="cpu", help="device to describe (default: cpu)")
    env.add_argument("--json", action="store_true", help="print one JSON object")
    env.add_argument(
        "--calibrate", action="store_true", help="measure the ceilings of the device instead"
    )
    env.set_defaults(handler=env_command)


def run_command(options: argparse.Namespace) -> int:
    """Measure a spec; progress as JSON lines on stdout, the log on stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    out: Path = options.out
    with ends_cleanly(out):
        return _measured(options.spec, out)


def _measured(spec_file: Path, out: Path) -> int:
    """Measure the spec in `spec_file` into `out`; a failure leaves its `error.json` there."""
    prepare(out)
    try:
        spec = specs.check_model(specs.load(spec_file))
        if needs_launch(spec):
            return launch(spec, spec_file, out)
        from profiler.bench import complete

        with own_stdout() as stream:
            complete.run(spec, out, reporter=Reporter(stream))
    except UserError as error:
        write_failure(out, Failure(kind=error.kind, message=error.message, hint=error.hint))
        raise
    except Exception as error:
        reason = printable(f"{type(error).__name__}: {error}")
        write_failure(out, Failure(kind="crashed", message=reason, hint="see the log"))
        raise
    return int(ExitCode.FINE)


def env_command(options: argparse.Namespace) -> int:
    """Print the fingerprint of this machine and installation, or measure its ceilings."""
    from time import perf_counter_ns

    from profiler.bench.devices import Device
    from profiler.bench.harness import set_threads

    set_threads(None)
    device = Device(options.device, perf_counter_ns)
    if options.calibrate:
        from profiler.bench.calibrate import calibrate

        print(_json(calibrate(device)) if options.json else _ceilings(calibrate(device)))
        return int(ExitCode.FINE)
    from profiler.bench.fingerprint import fingerprint

    environment = fingerprint(device)
    print(_json(environment) if options.json else _fields(environment))
    return int(ExitCode.FINE)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()


def _fields(environment: Environment) -> str:
    rows = environment.fields | {
        "missing": ", ".join(environment.missing) or "nothing",
        "comparable": environment.comparable_hash,
        "exact": environment.exact_hash,
    }
    return _table(rows)


def _ceilings(found: Calibration) -> str:
    rows = {f"matmul {dtype}": units.rate(v, "FLOP/s") for dtype, v in found.matmul_flops.items()}
    rows |= {
        "copy": units.rate(found.copy_bandwidth, "B/s"),
        "launch": units.duration(found.launch_ns),
        "dispatch": units.duration(found.dispatch_ns),
        "missing": ", ".join(found.missing) or "nothing",
        "took": units.duration(found.took_ns),
    }
    return _table(rows)


def _table(rows: dict[str, str]) -> str:
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


@contextlib.contextmanager
def own_stdout() -> Iterator[BinaryIO]:
    """The real stdout for progress alone: whatever a library prints meanwhile goes to stderr."""
    sys.stdout.flush()
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        with os.fdopen(os.dup(kept), "wb") as stream:
            yield stream
    finally:
        sys.stdout.flush()
        os.dup2(kept, sys.stdout.fileno())
        os.close(kept)
