"""What a worker makes of a message before it runs its task."""

from datetime import UTC, datetime

from celery.worker.request import Request


class EbbRequest(Request):  # type: ignore[misc]  # Celery comes without types
    """A message that is dropped when nobody waits for its answer any more, without a word against its task's id.

    Celery would drop every later message of that id as well, for hours, and tell whoever waits for one that it was
    revoked. But whoever sends a write again does so under the same id.
    """

    nobody_waits = False

    def maybe_expire(self) -> bool:
        """Return whether the deadline of whoever waited is over."""
        self.nobody_waits = self.expires is not None and datetime.now(UTC) > self.expires.astimezone(UTC)
        return self.nobody_waits

    @property
    def store_errors(self) -> bool:
        """Return whether a failure is an answer to somebody."""
        return bool(super().store_errors) and not self.nobody_waits
