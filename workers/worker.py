"""A worker that ends after an error that it cannot recover from, so that its supervisor starts it again."""

import logging
import os
import threading
from typing import Any

from celery.apps import worker
from celery.platforms import EX_FAILURE

log = logging.getLogger(__name__)

SECONDS_TO_STOP = 20.0
"""Longer than a soft shutdown; what children had not finished by then is delivered again."""


class Worker(worker.Worker):  # type: ignore[misc]  # Celery comes without types
    """Celery's worker, whose shutdown after a failure is bounded.

    With a broker connection that was lost in the middle of a reconnect, closing channels and joining the pool may wait
    for ever: the process then neither works nor ends.
    """

    def stop(self, in_sighandler: bool = False, exitcode: int | None = None) -> None:
        """Shut down; after a failure the process ends by force if that takes too long."""
        if exitcode == EX_FAILURE:
            last = threading.Timer(SECONDS_TO_STOP, _end)
            last.daemon = True
            last.start()
        super().stop(in_sighandler=in_sighandler, exitcode=exitcode)


def _end(*_: Any) -> None:
    log.critical("the worker failed and did not stop within %g s: it ends now", SECONDS_TO_STOP)
    logging.shutdown()
    os._exit(EX_FAILURE)
