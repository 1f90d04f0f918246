"""Unlinked: facts that were stored without a vector, to be linked with their like once they have one; in Redis.

Only links hang on it, so that what Redis loses is no fact: `ebb link` makes what is missed.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from redis import Redis

UNLINKED = "ebb:unlinked"

MOST = 100_000
"""While an embedder is ill for long, no more are noted: some seven megabytes."""


def note(redis: Redis, namespace: str, ids: Sequence[UUID]) -> None:
    """Note facts of a namespace that still have no vector."""
    if ids and redis.scard(UNLINKED) < MOST:
        redis.sadd(UNLINKED, *_members(namespace, ids))


def noted(redis: Redis) -> dict[str, list[UUID]]:
    """Return all that are noted, by the name of their namespace."""
    found = defaultdict[str, list[UUID]](list)
    members: Any = redis.smembers(UNLINKED)
    for member in members:
        id_, _, namespace = member.decode().partition(" ")
        found[namespace].append(UUID(id_))
    return found


def drop(redis: Redis, namespace: str, ids: Sequence[UUID]) -> None:
    """Forget about these facts of a namespace."""
    redis.srem(UNLINKED, *_members(namespace, ids))


def _members(namespace: str, ids: Sequence[UUID]) -> list[str]:
    return [f"{id_} {namespace}" for id_ in ids]
