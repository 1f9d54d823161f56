"""The Celery application: a doorbell with bounded waits, no results, JSON only."""

from __future__ import annotations

from celery import Celery
from django.conf import settings

from workers.broker import broker_url
from workers.server import set_up_django

VISIBILITY_TIMEOUT_S = 43_200
"""Far beyond any run: redelivery is not how lost work comes back here."""

_TRANSPORT = {
    "visibility_timeout": VISIBILITY_TIMEOUT_S,
    "socket_timeout": 10,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
    "health_check_interval": 10,
}


def make_app() -> Celery:
    """The configured application; the settings name the broker."""
    set_up_django()
    # No fixups: the one for Django loads every page at start and closes connections under threads.
    app = Celery("daybreak", include=["workers.tasks"], fixups=[])
    app.conf.update(
        broker_url=broker_url(settings.VAR_DIR, settings.BROKER_URL),
        broker_transport_options=_TRANSPORT,
        result_backend_transport_options={"visibility_timeout": VISIBILITY_TIMEOUT_S},
        visibility_timeout=VISIBILITY_TIMEOUT_S,
        broker_connection_timeout=5,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_pool_acquire_timeout=5,
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=False,
        task_reject_on_worker_lost=False,
        task_create_missing_queues=True,
        worker_prefetch_multiplier=1,
        worker_disable_prefetch=True,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        enable_utc=True,
        timezone="UTC",
    )
    return app


app = make_app()
