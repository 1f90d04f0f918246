"""The state of the whole system, as the overview shows it to whom that is open: queues, workers, and how far behind."""

import time
from dataclasses import dataclass
from typing import Any

from api.http.door import Door
from api.sender import AWAY
from workers.errors import UnavailableError
from workers.queues import MAINTENANCE, RECALL, STORE
from workers.storage import outbox, signals, timings
from workers.storage.timings import Histogram

QUEUES = (RECALL, STORE, MAINTENANCE)


@dataclass(frozen=True, slots=True)
class Lag:
    """Within how many seconds half of all writes could be read, and 19 of 20; none before the first write."""

    writes: int
    half: float | None
    most: float | None


def figures(door: Door) -> dict[str, Any]:
    """Return what Redis knows of queues, workers and writes, and what was last measured of the database.

    Raises:
        UnavailableError: Redis does not answer.
    """
    try:
        alive = signals.alive(door.redis, time.time())
        return {
            "queues": [
                {"name": queue, "waiting": door.waiting(queue), "workers": sum(queue == own for own, _ in alive)}
                for queue in QUEUES
            ],
            "outbox": outbox.size(door.redis),
            "lag": lag(timings.read(door.redis).get(timings.WRITE)),
            "flower_url": door.settings.flower_url,
        }
    except AWAY as error:
        raise UnavailableError(f"Redis does not answer: {error}. See `ebb status`.") from None


def lag(writes: Histogram | None) -> Lag:
    """Return how long writes took until they could be read, by their histogram."""
    counts = writes[0] if writes else []
    total = counts[-1] if counts else 0
    return Lag(total, _quantile(counts, 0.5), _quantile(counts, 0.95)) if total else Lag(0, None, None)


def _quantile(counts: list[int], share: float) -> float:
    """Return the value below which that share lies, as if each bucket were evenly filled; at most the last bound."""
    wanted, below, begins = share * counts[-1], 0, 0.0
    for bound, count in zip(timings.BUCKETS, counts, strict=True):
        if count >= wanted:
            return begins if bound == float("inf") else begins + (bound - begins) * (wanted - below) / (count - below)
        below, begins = count, bound
    return begins
