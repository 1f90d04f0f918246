"""The latest contexts given to agents: the question and the ids of the facts in each, kept in Redis.

Texts of facts are not stored. A namespace has the newest contexts of the last hours; those with a forgotten fact are
dropped, and all of them when anything is erased.
"""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass

from redis import Redis

from workers.coordination.idempotency import note_quoting

KEY = "ebb:contexts:"
MOST = 50
"""Contexts per namespace."""

MOST_FACTS = 50
"""Facts recorded per context."""

LONGEST = 500
"""Characters of a question that are recorded."""

HOUR = 3_600


@dataclass(frozen=True, slots=True)
class ShownContext:
    """A context: its time in epoch seconds, the operation and question, and the ids of its facts."""

    at: float
    operation: str
    question: str
    ids: list[str]


def note(redis: Redis, namespace: str, given: ShownContext, hours: float) -> None:
    """Record a context for `hours`; 0 records none."""
    if not hours:
        return
    name = KEY + namespace
    kept = {**asdict(given), "question": given.question[:LONGEST], "ids": given.ids[:MOST_FACTS]}
    with redis.pipeline() as pipeline:
        pipeline.lpush(name, json.dumps(kept))
        pipeline.ltrim(name, 0, MOST - 1)
        pipeline.expire(name, int(hours * HOUR) or 1)
        note_quoting(pipeline, name)
        pipeline.execute()


def latest(redis: Redis, namespace: str, since: float) -> list[ShownContext]:
    """Return the contexts since an instant in epoch seconds, newest first."""
    found = [ShownContext(**json.loads(one)) for one in redis.lrange(KEY + namespace, 0, -1)]
    return [one for one in found if one.at >= since]


def drop(redis: Redis, namespace: str, ids: Collection[str]) -> None:
    """Drop contexts with one of these facts, whose question may quote them."""
    for one in redis.lrange(KEY + namespace, 0, -1):
        if not set(ids).isdisjoint(json.loads(one)["ids"]):
            redis.lrem(KEY + namespace, 0, one)  # type: ignore[arg-type]  # bytes are what the client answered
