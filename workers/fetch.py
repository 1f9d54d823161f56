"""Fetches registered repositories, for the keeper: one at a time, whoever asked for it."""

from __future__ import annotations

import logging
import threading

from django.conf import settings

from dashboard.services import comparisons, repositories
from dashboard.services.contract import FetchClaim, SupersededError
from profiler.errors import UserError
from workers.gitsafe import StoppedError
from workers.mirror import Mirror

logger = logging.getLogger(__name__)


class Fetcher:
    """Takes the repositories that want to be fetched, one after the other."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def step(self) -> None:
        """Fetch what is wanted, then tell the comparisons that wait for it their commits."""
        self.fetch_due()
        comparisons.resolve_waiting()

    def fetch_due(self) -> int:
        """Until none wants to be fetched; how many were."""
        count = 0
        while not self._stop.is_set():
            claim = repositories.claim_fetch()
            if claim is None:
                break
            count += 1
            self._fetch(claim)
        return count

    def _fetch(self, claim: FetchClaim) -> None:
        mirror = Mirror(settings.VAR_DIR, claim.origin, self._stop.is_set)
        try:
            repositories.store_fetch(claim, mirror.update(claim.known))
        except UserError as error:
            logger.warning("repository %d: %s", claim.origin.repository_id, error.line())
            repositories.fail_fetch(claim, error)
        except OSError as error:
            reason = error.strerror or str(error)
            logger.exception("repository %d", claim.origin.repository_id)
            repositories.fail_fetch(
                claim, UserError(f"The mirror cannot be written: {reason}", "see the keeper's disk")
            )
        except SupersededError:
            logger.info("another fetch of %d took over", claim.origin.repository_id)
        except StoppedError:
            repositories.give_back_fetch(claim)
