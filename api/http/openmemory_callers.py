"""Whose memory an OpenMemory client means: it names users, where other callers name namespaces or none."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request
from uuid_utils.compat import uuid7

from api.contrib.users import namespace_of, user_of
from api.http.callers import Caller, caller
from api.http.dispatch import Session
from api.http.door import Door, door_of
from api.http.problems import RefusedError
from workers.coordination.key_ring import Scope
from workers.errors import InvalidInputError, NotFoundError
from workers.validation import fact_id

MARK = "~"
"""Stands between a fact's id and its namespace, where that is not the caller's own, and for each `/` of that.

No name has it, and a client may put an id into a path as it is.
"""

MOST_UPDATES = 1_000


class Talk(Session):
    """A session of several tasks, each with an id of its own."""

    def call(
        self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None
    ) -> dict[str, Any]:
        """Send a task and return its result."""
        return super().call(task, arguments, seconds, task_id=task_id or str(uuid7()))


@dataclass(frozen=True, slots=True)
class Target:
    """A memory that a request is about: the fact that it is now, and where that is."""

    memory: Talk
    fact: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Memories:
    """The namespaces that a caller may use."""

    door: Door
    caller: Caller

    def of(self, user: str | None, scope: Scope) -> Talk:
        """Return a user's memory, or the caller's own where none is named.

        Raises:
            RefusedError: the caller's key does not open that, or not for this.
        """
        who = self.caller
        who.check(scope)
        namespace = namespace_of(user) if user else who.namespace
        if namespace != who.namespace:
            if who.key is not None:
                raise RefusedError(
                    HTTPStatus.FORBIDDEN,
                    f"user_id: your key opens the memory of {who.namespace!r} only; leave user_id out, or make a key "
                    f"for each user with `ebb keys create --namespace`, for this one with {namespace!r}.",
                )
            who = replace(who, namespace=namespace)
        return Talk(self.door, who, timeout=None)

    def name(self, id_: str, memory: Talk) -> str:
        """Return the id by which a client asks for a fact again, which it may do without naming the user."""
        name = memory.namespace.replace("/", MARK)
        return id_ if memory.namespace == self.caller.namespace else f"{id_}{MARK}{name}"

    def find(self, id_: str, user: str | None, scope: Scope) -> Target:
        """Return what became of the memory with an id, as long as it is not forgotten.

        Raises:
            NotFoundError: it is, or there never was one.
        """
        given, _, namespace = id_.partition(MARK)
        memory = self.of(user_of(namespace.replace(MARK, "/")) or user, scope)
        try:
            wanted = str(fact_id(given))
        except InvalidInputError:
            raise NotFoundError(f"id: {id_!r} is no memory's; give one that /memory/add answered.") from None
        for _hop in range(MOST_UPDATES):
            fact = memory.fact(wanted)
            if fact["superseded_by"] is None:
                break
            wanted = fact["superseded_by"]
        return Target(memory, fact)


def memories(request: Request, who: Annotated[Caller, Depends(caller)]) -> Memories:
    """Return the namespaces that the caller may use."""
    return Memories(door_of(request), who)
