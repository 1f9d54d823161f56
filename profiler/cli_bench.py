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
from profiler.bench.output import Reporter, prepare, write_failure
from profiler.errors import ExitCode, UserError, printable
from profiler.types import Failure

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
    env.set_defaults(handler=env_command)


def run_command(options: argparse.Namespace) -> int:
    """Measure a spec; progress as JSON lines on stdout, the log on stderr."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    out: Path = options.out
    prepare(out)
    try:
        spec = specs.check_model(specs.load(options.spec))
        from profiler.bench import harness

        with own_stdout() as stream:
            harness.run(spec, out, reporter=Reporter(stream))
    except UserError as error:
        write_failure(out, Failure(kind=error.kind, message=error.message, hint=error.hint))
        raise
    except Exception as error:
        reason = printable(f"{type(error).__name__}: {error}")
        write_failure(out, Failure(kind="crashed", message=reason, hint="see the log"))
        raise
    return int(ExitCode.FINE)


def env_command(options: argparse.Namespace) -> int:
    """Print the fingerprint of this machine and installation."""
    from time import perf_counter_ns

    from profiler.bench.devices import Device
    from profiler.bench.fingerprint import fingerprint
    from profiler.bench.harness import set_threads

    set_threads(None)
    environment = fingerprint(Device(options.device, perf_counter_ns))
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(environment), indent=1).decode())
        return int(ExitCode.FINE)
    width = max(map(len, environment.fields))
    for name, value in environment.fields.items():
        print(f"{name:<{width}}  {value}")
    print(f"{'missing':<{width}}  {', '.join(environment.missing) or 'nothing'}")
    print(f"{'comparable':<{width}}  {environment.comparable_hash}")
    print(f"{'exact':<{width}}  {environment.exact_hash}")
    return int(ExitCode.FINE)


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
