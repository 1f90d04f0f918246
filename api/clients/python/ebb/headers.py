"""What a request or message carries on: the context of the trace, and the log position of the client's latest write."""

import os
import sys
from threading import Lock

HEADER = "X-Ebb-LSN"
"""HTTP header of requests and answers with a position in PostgreSQL's log."""


class Position:
    """The latest position in PostgreSQL's log that a client received, such as `0/16B3748`; None without replicas."""

    def __init__(self, lsn: str | None = None) -> None:
        self.lsn = lsn
        self._locks = dict[int, Lock]()

    def __reduce__(self) -> tuple[type["Position"], tuple[str | None]]:
        """Copy the position alone, as locks cannot be pickled."""
        return Position, (self.lsn,)

    def note(self, lsn: str | None) -> None:
        """Set the position unless it is older.

        Each process has its own lock, because a fork may copy one that is held.
        """
        with self._locks.setdefault(os.getpid(), Lock()):
            if lsn and (self.lsn is None or _place(lsn) > _place(self.lsn)):
                self.lsn = lsn


def _place(lsn: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in lsn.split("/"))


def of_trace() -> dict[str, str]:
    """Return the headers that carry the current trace on, such as `traceparent`; none without OpenTelemetry.

    A process that has not loaded OpenTelemetry has no current span, so it is not loaded here either.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.propagate import inject  # noqa: PLC0415 - see above

    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier
