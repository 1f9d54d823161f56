"""What a keeper does for schedules and announcements. Any number of keepers may do it at once."""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.core.mail import EmailMessage

from dashboard.services import automation_due, automation_queue, deliveries
from profiler.errors import UserError, printable
from workers import outgoing

logger = logging.getLogger(__name__)

SCHEDULES_S = 5.0
SEND_S = 2.0


def tend_schedules() -> int:
    """Look at every schedule, then queue what may go; how many firings went.

    One schedule that cannot be looked at keeps no other from its time.
    """
    automation_due.poll_repositories()
    for schedule_id in automation_due.enabled_schedules():
        try:
            automation_due.look(schedule_id)
        except UserError as error:
            logger.warning("schedule %d: %s", schedule_id, error.line())
    return automation_queue.queue_waiting()


class Sender:
    """Sends the announcements that wait, one after the other."""

    def __init__(self, stop: threading.Event, resolve: outgoing.Resolver | None = None) -> None:
        self._stop = stop
        self._resolve = resolve or outgoing.judged_address

    def step(self) -> int:
        """Until nothing is due; how many tries it were."""
        count = 0
        while not self._stop.is_set():
            claimed = deliveries.claim_delivery()
            if claimed is None:
                break
            count += 1
            self._try(claimed)
        return count

    def _try(self, claimed: deliveries.Claimed) -> None:
        try:
            text = self._send(claimed.what)
        except (UserError, OSError) as error:
            words = error.line() if isinstance(error, UserError) else _words(error)
            logger.warning("delivery %d: %s", claimed.delivery_id, words)
            deliveries.failed(claimed, words)
        else:
            deliveries.delivered(claimed, text)

    def _send(self, what: deliveries.Mail | deliveries.Post) -> str:
        if isinstance(what, deliveries.Post):
            return outgoing.send(what, self._resolve)
        send_mail(what)
        return f"taken by {settings.EMAIL_HOST or 'the console'}"


def send_mail(mail: deliveries.Mail) -> None:
    """Hand one mail to the server; raises `OSError`, which all of SMTP's errors are."""
    EmailMessage(
        subject=mail.subject,
        body=mail.text,
        to=[mail.to],
        headers={"Message-ID": mail.message_id, "Auto-Submitted": "auto-generated"},
    ).send()


def _words(error: OSError) -> str:
    return printable(str(error) or type(error).__name__, 200)
