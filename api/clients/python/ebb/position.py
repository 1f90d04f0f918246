"""How far a client has written: its reads give that, and see what it wrote whichever replica answers them."""

from threading import Lock

HEADER = "X-Ebb-LSN"
"""The HTTP header of answers and of requests: a position in PostgreSQL's log."""


class Position:
    """The last position in PostgreSQL's log that a client heard of, such as `0/16B3748`; none without replicas."""

    def __init__(self, lsn: str | None = None) -> None:
        self.lsn = lsn
        self._lock = Lock()

    def note(self, lsn: str | None) -> None:
        """Go on to a position, unless it lies behind."""
        with self._lock:
            if lsn and (self.lsn is None or _place(lsn) > _place(self.lsn)):
                self.lsn = lsn


def _place(lsn: str) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in lsn.split("/"))
