"""System course: how long queues were and how quickly writes could be read, noted each minute, told over time."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from redis import Redis

from workers.context import Context
from workers.coordination import timings
from workers.queues import MAINTENANCE, RECALL, STORE
from workers.storage import system_history
from workers.storage.connection import transaction

QUEUES = (RECALL, STORE, MAINTENANCE)


def note(context: Context, now: datetime) -> None:
    """Note how many tasks wait in each queue now, and how long writes have taken so far."""
    with Redis.from_url(context.settings.redis_url, socket_timeout=5, socket_connect_timeout=2) as broker:
        waiting = {queue: int(broker.llen(queue)) for queue in QUEUES}
    writes, _ = timings.read(context.redis).get(timings.WRITE, ([0] * len(timings.BUCKETS), 0.0))
    with transaction(context.database_url) as db:
        system_history.note(db, waiting, writes, now)


def system_course(context: Context, days: int, now: datetime) -> dict[str, Any]:
    """Return how many tasks waited, and how long writes took, over so many days.

    `at` are instants in epoch seconds; beside them stand lists as long: `waiting` for each queue, the most of five
    minutes; `half` and `most`, within how many seconds half and 19 of 20 of the writes since the instant before could
    be read, none where nobody wrote.
    """
    with transaction(context.database_url) as db:
        noted = system_history.since(db, now - timedelta(days=days), now)
    sums = [counts for _, _, counts in noted]
    told = [[0] * len(timings.BUCKETS) for _ in sums[:1]] + [_between(*pair) for pair in pairwise(sums)]
    return {
        "at": [at.timestamp() for at, _, _ in noted],
        "waiting": {queue: [int(waiting.get(queue, 0)) for _, waiting, _ in noted] for queue in QUEUES},
        "half": [timings.quantile(counts, 0.5) for counts in told],
        "most": [timings.quantile(counts, 0.95) for counts in told],
    }


def _between(before: list[int], after: list[int]) -> list[int]:
    """Return what was counted from the one to the other, or all of the other where Redis began anew between them."""
    rose = [later - earlier for earlier, later in zip(before, after, strict=True)]
    return rose if min(rose) >= 0 else after
