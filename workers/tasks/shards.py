"""Work on every shard: tasks that reach all namespaces take one shard after another."""

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

from ebb.contract.operation import Reaching

from workers.storage.routing import Place
from workers.tasks.task import context

P = TypeVar("P", bound=tuple[Any, Any])


class _Part(Protocol):
    @property
    def after(self) -> tuple[Any, Any] | None: ...

    @property
    def shard(self) -> int: ...


def shards_of(asked: Reaching) -> Iterator[Place]:
    """Yield each place that an operation reaches, and work there meanwhile: its namespace, or every shard.

    What beat or a starting worker sends reaches the shards of its group, as each group has a beat and workers.
    """
    if asked.everywhere:
        yield from context.each_shard(own=getattr(asked, "scheduled", False) or getattr(asked, "startup", False))
    else:
        yield asked.namespace


def walk(
    asked: _Part, step: Callable[[P], P | None], until: float, *, everywhere: bool, start: P, own: bool = False
) -> tuple[int, P] | None:
    """Repeat a step over all rows until the monotonic clock reaches `until`: of a namespace, every or each `own` shard.

    Return the shard and the position to continue from, if any.
    """
    place: P | None = cast("P", asked.after) or start
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
