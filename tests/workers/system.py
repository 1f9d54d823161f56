"""A whole installation in a temporary folder: real processes, a real broker, a real database."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db.models import Count

from dashboard.models import MetricValue, Outbox, Run, RunEvent, RunState
from dashboard.services import catalog, runs
from profiler.types import RunSpec
from workers import broker, processes
from workers.job import Spool

ROOT = Path(__file__).resolve().parent.parent.parent
FAKE_BENCH = Path(__file__).resolve().parent / "fake_bench.py"
TIME_SCALE = 40.0
LONG_S = 60.0
"""Upper bound of every wait; reached only when something is broken."""


def started_for(var_dir: Path) -> list[processes.Process]:
    """Living processes, other than ours, that have this folder in their environment."""
    needle = os.fsencode(var_dir)
    found = []
    for entry in Path("/proc").iterdir():
        process = processes.identify(int(entry.name)) if entry.name.isdigit() else None
        if process is None or not processes.is_alive(process) or process.pid == os.getpid():
            continue
        try:
            if needle in (entry / "environ").read_bytes():
                found.append(process)
        except OSError:  # it has just ended
            continue
    return found


def end_strays(var_dir: Path) -> None:
    """A test that failed must not leave a process to the next."""
    for process in started_for(var_dir):
        processes.send(process, signal.SIGKILL)


def wait_for(what: Callable[[], object], limit_s: float = LONG_S) -> None:
    """Until `what()` is true; fails after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < deadline, f"still waiting after {limit_s:g} s"
        time.sleep(0.05)


@dataclass
class System:
    """Starts processes against one VAR_DIR and remembers them, so that each is ended."""

    var_dir: Path
    variables: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Ours, pointed at the folder; a fake benchmark stands in for the real one."""
        return {
            **os.environ,
            "VAR_DIR": str(self.var_dir),
            "TIME_SCALE": str(TIME_SCALE),
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            **self.variables,
        }

    def benchmark(self, mode: str) -> None:
        """Which fake benchmark the workers started from now on run."""
        words = [sys.executable, "-S" if mode == "oom" else "-B", str(FAKE_BENCH), mode]
        self.variables["BENCHMARK_COMMAND"] = shlex.join([*words, "{spec}", "{out}"])

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """`python WORDS` in the environment of this system; its output goes to a file."""
        name = "-".join(word.strip("-") for word in words).replace("/", "_")
        log = self.var_dir / f"{len(self.started)}-{name[-60:]}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, *words],
                env=self.environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def start_broker(self) -> subprocess.Popen[bytes]:
        process = self.start("-m", "workers.broker")
        broker.wait_until_ready(self.var_dir)
        return process

    def start_keeper(self) -> subprocess.Popen[bytes]:
        return self.start("-m", "workers.keeper")

    def start_worker(self, kind: str = "run") -> subprocess.Popen[bytes]:
        return self.start("-m", "workers.worker", kind)

    def start_all(self) -> None:
        """Broker, keeper and one worker."""
        self.start_broker()
        self.start_keeper()
        self.start_worker()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """kill -9, and collect it."""
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End everything this system started, kindly first."""
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill(process)
        end_strays(self.var_dir)

    def left_over(self) -> list[processes.Process]:
        """Living processes that were started for this folder."""
        return started_for(self.var_dir)

    def queue(self, **fields: object) -> Run:
        """Queue one run with its message."""
        spec = RunSpec(model="llama-small", scenario="prefill", **fields)  # type: ignore[arg-type]
        (run,) = runs.create_runs([spec], platform=catalog.ensure_platform(), user=None)
        return run

    def logs(self) -> str:
        """What the processes said, for the message of a failed assertion."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}"
            for path in sorted(self.var_dir.glob("*.log"))
        )


def state_of(run: Run) -> str:
    """The state that is stored now."""
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def wait_for_end(run: Run, limit_s: float = LONG_S) -> Run:
    """The run, once it has ended."""
    wait_for(lambda: Run.objects.get(pk=run.pk).is_terminal, limit_s)
    return Run.objects.get(pk=run.pk)


def wait_until_benchmark_runs(run: Run) -> None:
    """Until a process of the benchmark exists and the server has heard of it."""
    wait_for(lambda: state_of(run) == RunState.RUNNING)
    wait_for(lambda: own_marked(run))
    wait_for(lambda: Run.objects.filter(pk=run.pk, heartbeat_at__isnull=False).exists())


def own_marked(run: Run) -> set[processes.Process]:
    """Living processes of any attempt of `run`."""
    fence = Run.objects.values_list("fence", flat=True).get(pk=run.pk)
    spools = (Spool.of(settings.VAR_DIR / "spool", run.pk, n) for n in range(1, fence + 1))
    return {process for spool in spools for process in processes.marked(spool.marker)}


def assert_invariants(var_dir: Path) -> None:
    """What must hold whenever all runs have ended, whatever was killed meanwhile."""
    wait_for(lambda: not list((var_dir / "spool").glob("run-*")), limit_s=20)
    terminal = [str(state) for state in RunState if state not in ("queued", "running")]
    for run in Run.objects.all():
        assert run.is_terminal, run
        kinds = RunEvent.objects.filter(run=run, kind__in=terminal).values_list("kind", flat=True)
        assert list(kinds) == [run.state]
        assert hasattr(run, "result") == (run.state == RunState.SUCCEEDED)
        assert not own_marked(run)
    doubled = MetricValue.objects.values("result", "name").annotate(n=Count("id")).filter(n__gt=1)
    assert not doubled.exists()


def parent_of(pid: int) -> int:
    """The parent's process id."""
    status = Path(f"/proc/{pid}/stat").read_text()
    return int(status[status.rindex(")") + 2 :].split()[1])


def runs_rung() -> int:
    """Runs whose message a broker has taken."""
    return Run.objects.filter(rung_at__isnull=False).count()


def outbox_tries() -> int:
    """How often publishing the first message failed."""
    return Outbox.objects.values_list("tries", flat=True).get()
