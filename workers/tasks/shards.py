"""Work on every shard: tasks that reach all namespaces take one shard after another."""

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from uuid import UUID

from ebb.contract.operation import Reaching

from workers.storage.routing import Place
from workers.tasks.task import context

P = TypeVar("P", bound=tuple[Any, Any])


def shards_of(asked: Reaching) -> Iterator[Place]:
    """Yield each place that an operation reaches, and work there meanwhile: its namespace, or every shard.

    What beat or a starting worker sends reaches the shards of its group, as each group has a beat and workers.
    """
    if asked.everywhere:
        yield from context.each_shard(own=getattr(asked, "scheduled", False) or getattr(asked, "startup", False))
    else:
        yield asked.namespace


def walk(
    asked: Any, step: Callable[[P], P | None], until: float, *, everywhere: bool, start: P, own: bool = False
) -> tuple[int, P] | None:
    """Repeat a step over all rows until the monotonic clock reaches `until`: of a namespace, every or each `own` shard.

    It begins at the position `after` of the asked `shard`. Return the shard and the position to continue from, if any.
    """
    place: P | None = asked.after or start
    for shard in context.each_shard(own=own) if everywhere else (0,):
        if shard < asked.shard:
            continue
        while place is not None and time.monotonic() < until:
            place = step(place)
        if place is not None:
            return shard, place
        place = start
    return None


def going_on(rest: tuple[int, tuple[Any, Any]]) -> dict[str, Any]:
    """Return the arguments of a successor."""
    shard, (namespace, row) = rest
    after = [namespace, str(row) if isinstance(row, UUID) else row]
    return {"after": after} | ({"shard": shard} if shard else {})  # earlier workers reject it
