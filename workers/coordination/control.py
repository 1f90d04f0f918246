"""Celery's remote control, by which workers are asked whether they run; a full Redis may refuse their replies."""

import logging
from typing import Any

from celery.app import control
from kombu.exceptions import OperationalError
from kombu.pidbox import Mailbox
from redis.exceptions import ResponseError

log = logging.getLogger(__name__)


class Replies(Mailbox):
    """A mailbox that drops what Redis refuses.

    After any error Celery binds the mailbox again, which a full Redis refuses too, and then stops the worker.
    """

    def _publish_reply(self, *arguments: Any, **options: Any) -> None:
        try:
            super()._publish_reply(*arguments, **options)  # type: ignore[no-untyped-call]
        except (ResponseError, OperationalError) as error:
            if not isinstance(error.__cause__ or error, ResponseError):
                raise
            log.warning("Redis refused a reply: %s", error)


class Control(control.Control):  # type: ignore[misc]  # Celery comes without types
    """Remote control with this mailbox."""

    Mailbox = Replies
