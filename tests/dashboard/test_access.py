"""Who may what: every address x role x method, from the address list itself.

An address that is missing from the table fails, so that nobody adds one
without saying who may use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.models import (
    Bisect,
    Change,
    Comparison,
    Note,
    Role,
    Run,
    RunArtifact,
    RunState,
    Trace,
    TraceSet,
    User,
)
from dashboard.services.accounts import new_sign_in_link
from dashboard.urls import urlpatterns
from profiler.analysis.flame_document import pack
from tests.automation import (
    make_announcement,
    make_endpoint,
    make_firing,
    make_schedule,
    make_subscription,
)
from tests.bisects import make_bisect
from tests.dashboard.access_rules import RULES, Rule
from tests.factories import (
    make_group,
    make_note,
    make_ready_trace,
    make_result,
    make_run,
    make_set,
    make_user,
    store_artifact,
)
from tests.graphs import make_graph
from tests.histories import make_change
from tests.sources import make_comparison, make_explained
from tests.tunings import make_iteration, make_tuning

ROLES = ("anonymous", *Role.values)
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
SIGN_IN = 302


LATE: Mapping[str, Callable[[User], int]] = {
    "schedule": lambda _: make_schedule().pk,
    "firing": lambda _: make_firing().pk,
    "announcement": lambda _: make_announcement().pk,
    "subscription": lambda person: make_subscription(person).pk,
    "endpoint": lambda _: make_endpoint().pk,
    "tuning": lambda _: make_tuning().pk,
    "iteration": lambda _: make_iteration(make_tuning()).pk,
}
"""Rows that only their own addresses need, made when one is asked for."""

NAMES = [pattern.name or str(pattern.pattern) for pattern in urlpatterns]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One of everything, and the person who asks."""

    run: Run
    queued: Run
    trace: Trace
    set: TraceSet
    note: Note
    change: Change
    bisect: Bisect
    comparison: Comparison
    user: User | None
    person: User

    def address(self, name: str) -> str:
        """A link is new each time: using it ends it."""
        values = {
            "run": str(self.run.pk),
            "queued": str(self.queued.pk),
            "trace": str(self.trace.pk),
            "file": "log.txt",
            "set": str(self.set.pk),
            "template": "quick",
            "group": str(self.run.group_id),
            "platform": self.run.platform.slug,
            "model": self.run.workload.model.name,
            "change": str(self.change.pk),
            "bisect": str(self.bisect.pk),
            "comparison": str(self.comparison.pk),
            "position": "0",
            "repository": str(self.comparison.repository_id),
            "panel": "kernels",
            "note": str(self.note.pk),
            "token": new_sign_in_link(self.person),
            "user": str(self.person.pk),
        }
        found = {
            key: values[what] if what in values else str(LATE[what](self.person))
            for key, what in RULES[name].path.items()
        }
        return reverse(name, kwargs=found)


@pytest.fixture
def scene_for(db: None) -> Iterator[Callable[[str], Scene]]:
    """A scene whose runs belong to the person who asks."""

    def build(role: str) -> Scene:
        user = None if role == "anonymous" else make_user(role, role=role)
        run = make_run(RunState.SUCCEEDED, created_by=user, group=make_group())
        make_result(run)
        log = store_artifact(b"a line\n")
        RunArtifact.objects.create(run=run, attempt=1, name="log.txt", artifact=log)
        queued = make_run(RunState.QUEUED, created_by=user)
        trace = make_ready_trace(run=run)
        graph = store_artifact(pack(make_graph()))
        Trace.objects.filter(pk=trace.pk).update(redacted=store_artifact(b"clean"), graph=graph)
        person = user or make_user()
        whole = make_set(make_ready_trace(), make_ready_trace())
        return Scene(
            run=run,
            queued=queued,
            trace=trace,
            set=whole,
            note=make_note(author=person),
            bisect=make_bisect(),
            comparison=make_explained(make_comparison()),
            change=make_change(),
            user=user,
            person=person,
        )

    yield build


def expected(rule: Rule, role: str, method: str) -> set[int]:
    """Every answer that is right."""
    known = {"get": rule.get, "head": rule.get, "post": rule.post}.get(method)
    if role == "anonymous":
        if not rule.open:
            return {SIGN_IN}
        return {405} if known is None else {200 if method != "post" else known}
    if known is None:
        # Whether a role or the method is looked at first does not matter: both refuse.
        return {405} if role in rule.roles else {403, 405}
    return {known} if role in rule.roles else {403}


def test_it_has_a_rule_for_every_address() -> None:
    assert sorted(NAMES) == sorted(RULES)


@pytest.mark.parametrize(("name", "role"), list(product(RULES, ROLES)))
def test_it_answers_each_role_as_the_table_says(
    name: str, role: str, scene_for: Callable[[str], Scene]
) -> None:
    scene = scene_for(role)
    got: dict[str, int] = {}
    for method in METHODS:
        client = Client()
        if scene.user:
            client.force_login(scene.user)
        response = getattr(client, method)(scene.address(name))
        got[method] = response.status_code
        response.close()
    wrong = {m: s for m, s in got.items() if s not in expected(RULES[name], role, m)}
    assert not wrong


@pytest.mark.parametrize(
    "name", [name for name, rule in RULES.items() if rule.post and not rule.signed]
)
def test_it_refuses_a_post_without_a_token(name: str, scene_for: Callable[[str], Scene]) -> None:
    scene = scene_for("admin")
    client = Client(enforce_csrf_checks=True)
    assert scene.user is not None
    client.force_login(scene.user)
    response = client.post(scene.address(name))
    assert response.status_code == 403
    assert "no longer valid" in response.content.decode()


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.open])
def test_it_asks_for_a_sign_in_and_comes_back(name: str, scene_for: Callable[[str], Scene]) -> None:
    address = scene_for("anonymous").address(name)
    response = Client().get(address)
    assert response.headers["Location"] == f"/sign-in/?next={address}"


NUMBERS = {"note_id", "run_id", "trace_id", "set_id", "group_id", "user_id"}
NUMBERS |= {"repository_id", "comparison_id", "bisect_id"}
NUMBERS |= {"tuning_id", "iteration_id"}
NUMBERS |= {"schedule_id", "firing_id", "announcement_id", "subscription_id", "endpoint_id"}
NUMBERED = [name for name, rule in RULES.items() if NUMBERS & set(rule.path)]


@pytest.mark.parametrize("number", [987_654, 2**63, 10**30])
@pytest.mark.parametrize("name", NUMBERED)
def test_it_says_not_found_for_what_does_not_exist(
    name: str, number: int, admin_client: Client
) -> None:
    rule = RULES[name]
    words = {"file": "log.txt", "panel": "kernels", "position": "0"}
    values = {key: words.get(what, number) for key, what in rule.path.items()}
    ask = admin_client.get if rule.get else admin_client.post
    assert ask(reverse(name, kwargs=values)).status_code == 404


def test_it_lets_operators_cancel_only_their_own_runs(
    operator_client: Client, admin_client: Client
) -> None:
    run = make_run(RunState.QUEUED, created_by=make_user("owner"))
    address = reverse("run-cancel", args=[run.pk])
    assert operator_client.post(address).status_code == 403
    assert admin_client.post(address).status_code == 302
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED


def test_it_ends_with_the_role(operator: User, operator_client: Client) -> None:
    assert operator_client.get("/runs/new/").status_code == 200
    User.objects.filter(pk=operator.pk).update(role=Role.VIEWER)
    assert operator_client.get("/runs/new/").status_code == 403
