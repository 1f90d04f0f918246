"""The last contexts of agents: which question was asked, and the ids of the facts that answered it, in Redis.

No fact's text is kept. A namespace has the newest of the last hours; what names a fact that its owner wants forgotten
goes with it, and all of them go when anything is erased.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

from redis import Redis

from workers.coordination.idempotency import QUOTING, RECEIPT_SECONDS

KEY = "ebb:contexts:"
MOST = 50
"""How many contexts a namespace has."""

MOST_FACTS = 50
"""How many facts of a context are noted."""

LONGEST = 500
"""Characters of a question that are noted."""

HOUR = 3_600


@dataclass(frozen=True, slots=True)
class Given:
    """What an agent asked when, by which operation, in epoch seconds, and which facts it got."""

    at: float
    operation: str
    question: str
    ids: list[str]


def note(redis: Redis, namespace: str, given: Given, hours: float) -> None:
    """Note what was asked and given, for so many hours; none at all for 0."""
    if not hours:
        return
    name = KEY + namespace
    kept = {**asdict(given), "question": given.question[:LONGEST], "ids": given.ids[:MOST_FACTS]}
    with redis.pipeline() as pipeline:
        pipeline.lpush(name, json.dumps(kept))
        pipeline.ltrim(name, 0, MOST - 1)
        pipeline.expire(name, int(hours * HOUR) or 1)
        pipeline.sadd(QUOTING, name)
        pipeline.expire(QUOTING, RECEIPT_SECONDS)
        pipeline.execute()


def last(redis: Redis, namespace: str, since: float) -> list[Given]:
    """Return what was asked and given since an instant in epoch seconds, the newest first."""
    found = [Given(**json.loads(one)) for one in redis.lrange(KEY + namespace, 0, -1)]
    return [one for one in found if one.at >= since]


def drop(redis: Redis, namespace: str, ids: Collection[str]) -> None:
    """Drop what names one of these facts, for its question may say what they do."""
    for one in redis.lrange(KEY + namespace, 0, -1):
        if not set(ids).isdisjoint(json.loads(one)["ids"]):
            redis.lrem(KEY + namespace, 0, one)  # type: ignore[arg-type]  # bytes are what the client answered
