"""What a worker makes of a message before it runs its task."""

from datetime import UTC, datetime
from typing import Any

from celery.worker.request import Request

from workers import clock, redaction
from workers.celery import app


class EbbRequest(Request):  # type: ignore[misc]  # Celery comes without types
    """A message that is dropped when nobody waits for its answer any more, without a word against its task's id.

    Celery would drop every later message of that id as well, for hours, and tell whoever waits for one that it was
    revoked. But whoever sends a write again does so under the same id.

    Monitors see no text of it, whoever sent it: neither in events nor when they ask what a worker is at.
    """

    nobody_waits = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._argsrepr, self._kwargsrepr = redaction.arguments(self._args, self._kwargs)

    def info(self, safe: bool = False) -> dict[str, Any]:  # noqa: ARG002 - as Celery calls it
        """Return what a worker tells of a request that it has."""
        return dict(super().info(safe=True))

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002 - as Celery calls it
        """Send an event without what may quote a fact."""
        super().send_event(type, **redaction.event(fields))

    def maybe_expire(self) -> bool:
        """Return whether the deadline of the caller is over, by Redis' clock where the caller went by that."""
        until = self.request_dict.get(clock.UNTIL)
        if until is not None:
            self.nobody_waits = clock.has_passed(until, app.server_clock)
        else:
            self.nobody_waits = self.expires is not None and datetime.now(UTC) > self.expires.astimezone(UTC)
        return self.nobody_waits

    @property
    def store_errors(self) -> bool:
        """Return whether a failure is an answer to somebody."""
        return bool(super().store_errors) and not self.nobody_waits
