"""gunicorn (gthread) against waitress on our own pages, same machine, same run.

Both serve the run list over 1,000 runs to signed-in viewers, in alternating rounds, so that a
noisy machine disturbs both alike. Prints requests per second and latency; the goal is that the
server we ship is not the slower one by more than 5 %.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = 1_000
CONNECTIONS = 10
ROUNDS = 5
ROUND_S = 6.0
PAGE = "/runs/"
SHIPPED, OTHER = "gunicorn", "waitress"


@dataclass
class Server:
    """One WSGI server, running."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    rates: list[float] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(name: str, port: int) -> list[str]:
    if name == "gunicorn":
        shape = ["--worker-class", "gthread", "--workers", "2", "--threads", "8"]
        bind = ["--bind", f"127.0.0.1:{port}", "--no-control-socket", "--log-level", "warning"]
        return [sys.executable, "-m", "gunicorn", "dashboard.wsgi", *shape, *bind]
    where = [f"--listen=127.0.0.1:{port}", "--threads=16"]
    return [sys.executable, "-m", "waitress", *where, "dashboard.wsgi:application"]


def seed() -> str:
    """A thousand runs with results, a viewer, and the viewer's session cookie."""
    import django

    django.setup()
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command
    from django.db import transaction

    from tests import factories

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    with transaction.atomic():
        for _ in range(RUNS):
            factories.make_run("succeeded")
        user = factories.make_user("viewer", role="viewer")
    session = SessionStore()
    session["_auth_user_id"] = str(user.pk)
    session["_auth_user_backend"] = "django.contrib.auth.backends.ModelBackend"
    session["_auth_user_hash"] = user.get_session_auth_hash()
    session.save()
    return f"daybreak_session={session.session_key}"


def load(server: Server, cookie: str) -> None:
    """`CONNECTIONS` keep-alive clients ask for the page until the round is over."""
    end = time.monotonic() + ROUND_S
    counts: list[int] = []

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        done = 0
        while time.monotonic() < end:
            start = time.monotonic()
            connection.request("GET", PAGE, headers={"Cookie": cookie})
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise SystemExit(f"{server.name} answered {response.status}")
            server.latencies_s.append(time.monotonic() - start)
            done += 1
        counts.append(done)

    threads = [threading.Thread(target=client) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.rates.append(sum(counts) / ROUND_S)


def wait_until_up(server: Server) -> None:
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{server.name} does not answer")


def report(server: Server) -> float:
    middle = statistics.median(server.rates)
    ordered = sorted(server.latencies_s)
    p50, p95 = (1000 * ordered[int(len(ordered) * q)] for q in (0.5, 0.95))
    print(f"{server.name:10} {middle:8.1f} req/s   p50 {p50:6.1f} ms   p95 {p95:6.1f} ms")
    return middle


def measure(cookie: str) -> float:
    """Both servers in alternating rounds; the shipped one's rate over the other's."""
    servers = [
        Server(name, port, subprocess.Popen(command(name, port), cwd=ROOT))
        for name, port in ((SHIPPED, free_port()), (OTHER, free_port()))
    ]
    try:
        for server in servers:
            wait_until_up(server)
        for number in range(ROUNDS):
            for server in servers if number % 2 else reversed(servers):
                load(server, cookie)
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(20)
    print(f"{PAGE} over {RUNS} runs, {CONNECTIONS} connections, {ROUNDS} rounds of {ROUND_S:g} s")
    rates = [report(server) for server in servers]
    return rates[0] / rates[1]


def main() -> int:
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VAR_DIR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
        ratio = measure(seed())
    met = ratio >= 0.95
    print(f"{SHIPPED} / {OTHER} = {ratio:.2f}")
    print("goal met" if met else f"goal missed: {ratio:.2f} < 0.95")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
