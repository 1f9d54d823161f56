"""Random schedules of workers, losses, freezes, cancels and sweeps against the real rows.

Whatever happens, a run ends at most once, has a result exactly if it
succeeded, and once ended never changes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from dashboard.models import Attempt, Outbox, Result, Run, RunEvent, RunState
from dashboard.models.runs import TERMINAL
from dashboard.services import lifecycle, outbox, runs
from dashboard.services.contract import (
    Beat,
    Claim,
    Message,
    Outcome,
    SupersededError,
    WorkerIdentity,
)
from dashboard.services.runs import RunStateError
from dashboard.services.sweep import sweep
from tests.dashboard.services import scene

SWEEPS_PAST_A_LEASE = 7
ENDINGS = ("succeeded", "failed", "timed_out", "cancelled", "requeue", "drain")


class RunMachine(RuleBasedStateMachine):
    """Holders are workers that believe they own a run; nothing tells them when they do not."""

    folder: Path
    messages: Bundle[Message] = Bundle("messages")
    holders: Bundle[Claim] = Bundle("holders")

    @initialize()
    def start(self) -> None:
        for rows in (Run, Outbox):
            rows.objects.all().delete()
        self.context = scene.stopped_clock()
        self.clock = self.context.__enter__()
        self.ended: dict[int, tuple[str, int]] = {}
        self.fences: dict[int, int] = {}
        self.by = scene.user()
        self.count = 0
        sweep()

    @rule()
    def create(self) -> None:
        scene.queued(by=self.by)

    @rule(target=messages)
    def publish(self) -> MultipleResults[Message]:
        due = outbox.due_messages(10)
        outbox.published([message.outbox_id for message in due])
        return multiple(*due)

    @rule()
    def reconcile(self) -> None:
        outbox.republish_unclaimed()

    @rule(message=consumes(messages))
    def lose(self, message: Message) -> None:
        """The broker forgets a message."""

    @rule(target=holders, message=messages)
    def receive(self, message: Message) -> Claim | MultipleResults[Claim]:
        """Messages stay in the bundle: delivering one twice is part of the game."""
        return self._claim(message.subject_id, message.attempt)

    @rule(target=holders)
    def poll(self) -> Claim | MultipleResults[Claim]:
        ready = lifecycle.next_runs("cpu", 1)
        return self._claim(*ready[0]) if ready else multiple()

    def _claim(self, run_id: int, attempt: int) -> Claim | MultipleResults[Claim]:
        self.count += 1
        worker = WorkerIdentity(name=f"worker-{self.count}", platform="cpu")
        claim = lifecycle.claim_run(run_id, attempt, worker)
        return claim if claim else multiple()

    @rule(holder=holders)
    def beat(self, holder: Claim) -> None:
        try:
            lifecycle.heartbeat_run(holder.run_id, holder.fence, Beat(phase="timed"))
        except SupersededError:
            assert not self._owns(holder)
        else:
            assert self._owns(holder)

    @rule(holder=holders, ending=st.sampled_from(ENDINGS))
    def deliver(self, holder: Claim, ending: str) -> None:
        """A holder stays in the bundle: it may deliver again, or after it was replaced."""
        owned = self._owns(holder)
        before = Run.objects.filter(pk=holder.run_id).values().get()
        try:
            lifecycle.deliver_run(holder.run_id, holder.fence, self._outcome(ending))
        except SupersededError:
            assert not owned
        if not owned:
            assert Run.objects.filter(pk=holder.run_id).values().get() == before

    def _outcome(self, ending: str) -> Outcome:
        if ending == "succeeded":
            return scene.succeeded(self.folder)
        if ending in {"requeue", "drain"}:
            return scene.requeue(counts=ending == "requeue")
        kind = {"failed": "crashed", "timed_out": "time_limit", "cancelled": "cancelled"}[ending]
        return Outcome(state=ending, failure_kind=kind, message=ending)

    @rule(pick=st.integers(0, 5))
    def cancel(self, pick: int) -> None:
        rows = list(Run.objects.order_by("id"))
        if rows:
            run = rows[pick % len(rows)]
            try:
                runs.cancel_run(run.pk, self.by)
            except RunStateError:
                assert run.is_terminal

    @rule(seconds=st.sampled_from([1.0, 14.0, 40.0, 130.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def sweep_once(self) -> None:
        sweep()

    @rule()
    def go_silent(self) -> None:
        """Every worker freezes until its lease is over, while the sweeper keeps sweeping."""
        for _ in range(SWEEPS_PAST_A_LEASE):
            self.clock.advance(settings.GRACE_S - 5)
            sweep()

    def _owns(self, holder: Claim) -> bool:
        return Run.objects.filter(
            pk=holder.run_id, fence=holder.fence, state=RunState.RUNNING
        ).exists()

    @invariant()
    def terminal_states_stand(self) -> None:
        for run in Run.objects.all():
            if run.is_terminal:
                end = (run.state, run.fence)
                assert self.ended.setdefault(run.pk, end) == end
            else:
                assert run.pk not in self.ended

    @invariant()
    def fences_only_grow(self) -> None:
        for pk, fence in Run.objects.values_list("pk", "fence"):
            assert fence >= self.fences.get(pk, 0)
            self.fences[pk] = fence

    @invariant()
    def ends_and_results_match(self) -> None:
        ends = Counter(RunEvent.objects.filter(kind__in=TERMINAL).values_list("run_id", flat=True))
        results = Counter(Result.objects.values_list("run_id", flat=True))
        for run in Run.objects.all():
            assert ends[run.pk] == int(run.is_terminal)
            assert results[run.pk] == int(run.state == RunState.SUCCEEDED)
            assert run.attempt <= settings.MAX_ATTEMPTS

    @invariant()
    def at_most_one_attempt_is_open(self) -> None:
        still_open = Attempt.objects.filter(ended_at__isnull=True)
        counts = Counter(still_open.values_list("run_id", flat=True))
        for run in Run.objects.all():
            assert counts[run.pk] == int(run.state == RunState.RUNNING)

    def teardown(self) -> None:
        """Left alone, with one honest worker and a sweeper, every run ends."""
        if not hasattr(self, "context"):
            return
        try:
            self._drain()
            assert not Run.objects.exclude(state__in=TERMINAL).exists()
            self.ends_and_results_match()
        finally:
            self.context.__exit__(None, None, None)

    def _drain(self) -> None:
        for _ in range(4 * settings.MAX_ATTEMPTS):
            if not Run.objects.exclude(state__in=TERMINAL).exists():
                return
            self.go_silent()
            for run_id, attempt in lifecycle.next_runs("cpu", 100):
                claim = lifecycle.claim_run(run_id, attempt, scene.WORKER)
                if claim:
                    self.deliver_last(claim)

    def deliver_last(self, claim: Claim) -> None:
        lifecycle.deliver_run(claim.run_id, claim.fence, scene.succeeded(self.folder))


@pytest.mark.django_db
def test_it_ends_every_run_exactly_once(store_root: Path, tmp_path: Path) -> None:
    RunMachine.folder = tmp_path
    run_state_machine_as_test(
        RunMachine,
        settings=hypothesis_settings(
            max_examples=40,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
