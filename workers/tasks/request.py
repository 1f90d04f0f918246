"""What a worker makes of a message before it runs its task."""

from datetime import UTC, datetime
from typing import Any

from celery.worker.request import Request

from workers import clock, redaction
from workers.celery import app


class EbbRequest(Request):  # type: ignore[misc]  # Celery comes without types
    """A message that is dropped when its caller no longer waits for the answer, without a note about its task's id.

    Celery would drop every later message of that id as well, for hours, and report the task as revoked. But a client
    sends a write again under the same id.

    Monitors see no text of it: neither in events nor in the list of what a worker is doing.
    """

    is_abandoned = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._argsrepr, self._kwargsrepr = redaction.arguments(self._args, self._kwargs)

    def info(self, safe: bool = False) -> dict[str, Any]:  # noqa: ARG002 - as Celery calls it
        """Return what a worker reports about a request that it has."""
        return dict(super().info(safe=True))

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002 - as Celery calls it
        """Send an event without what may quote a fact."""
        super().send_event(type, **redaction.event(fields))

    def maybe_expire(self) -> bool:
        """Return whether the deadline of the caller has passed, by Redis' clock where the caller went by that."""
        until = self.request_dict.get(clock.UNTIL)
        if until is not None:
            self.is_abandoned = clock.has_passed(until, app.server_clock)
        else:
            self.is_abandoned = self.expires is not None and datetime.now(UTC) > self.expires.astimezone(UTC)
        return self.is_abandoned

    @property
    def store_errors(self) -> bool:
        """Return whether a caller waits for the failure as an answer."""
        return bool(super().store_errors) and not self.is_abandoned
