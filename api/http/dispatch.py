"""Dispatch: send the task of a request to the workers, with namespace, deadline and idempotency key."""

import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Self
from uuid import UUID, uuid5

from ebb import headers
from ebb.contract.decay import CONSOLIDATE
from ebb.contract.operation import Accepted
from ebb.contract.recall import CONTEXT, RECALL, RECALL_MANY
from ebb.contract.retention import FORGET, HISTORY
from ebb.contract.values import REQUESTED
from fastapi import Depends, Header, Query, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import URL
from uuid_utils.compat import uuid7

from api.client import Client
from api.http.callers import Caller, caller
from api.http.door import Door, door_of
from api.http.problems import RefusedError, without_addresses
from workers.coordination import idempotency, shares
from workers.coordination.key_ring import Scope
from workers.errors import BusyError, InvalidInputError, LateError, OlderWorkersError, UnavailableError
from workers.queues import LSN

KEYED = UUID("5f0c2f3e-6a0b-5d59-8a5e-2d8f1ad0c0de")
LONGEST_WAIT = 300.0
ASKED = tuple(f"forgotten: {reason}" for reason in REQUESTED)
"""The states of a fact that was forgotten on request, which are also why it is not recalled."""

EXPLAINED = (HISTORY.name, RECALL.name, RECALL_MANY.name, CONTEXT.name)
"""Tasks of readers whose answers tell of forgotten facts."""

PREVIEWS = (FORGET.name, CONSOLIDATE.name)
"""Tasks of writers whose answers quote facts."""

Timeout = Annotated[
    float | None,
    Query(ge=0.05, le=LONGEST_WAIT, description="Seconds until 504 is answered; default: the deadline of the task."),
]
Wait = Annotated[
    bool, Query(description="False: answer 202 with the task's id when the outbox in Redis has the write.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=256,
        description="Your id of this write: sent again within a day, it is done once and answered as before.",
    ),
]

Written = Annotated[
    str | None,
    Header(
        alias=headers.HEADER,
        pattern=r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$",
        description="The same header of an answer to a write: what that wrote is read, whichever replica answers.",
    ),
]


class WriteAccepted(Exception):  # noqa: N818  not an error: the write is in the outbox
    """The request's task was accepted without waiting."""

    def __init__(self, task: str, fact: str | None) -> None:
        super().__init__(task)
        self.task = task
        self.fact = fact


class Session(Client):
    """The client of one request, for the caller's namespace, with the shared connections of the process."""

    def __init__(
        self, door: Door, caller: Caller, *, timeout: float | None, wait: bool = True, key: str | None = None
    ) -> None:
        self._door = door.of(caller.namespace)
        super().__init__(self._door.settings.redis_url, caller.namespace, deadline=timeout)
        shared = self._door.client
        self._app, self._clock, self._own_keys = shared._app, shared._clock, self._door.redis  # noqa: SLF001 - another client
        self.caller = caller
        self.url = URL()
        self._waits = wait
        self._key = key
        self.task_id = str(uuid7() if key is None else uuid5(KEYED, f"{caller.namespace}\n{key}"))
        self._is_sent = False
        self.new_fact: str | None = None

    def noted_by(self, request: Request) -> Self:
        """Return the session, which the request's log and answer know."""
        request.state.task, self.url, request.state.written = self.task_id, request.url, self.written
        return self

    def new_id(self, fact: Mapping[str, Any], place: int | None = None) -> str:
        """Return the id of a new fact, in a batch with its `place`, derived from the fact and the idempotency key."""
        if self._key is None:
            return str(uuid7())
        batch, content = UUID(self.task_id), json.dumps([place or 0, fact], sort_keys=True)
        return str(uuid5(batch, content) if place is None else idempotency.id_of_member(batch, place, content))

    def call(
        self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None
    ) -> dict[str, Any]:
        """Send a task and return its result, or raise `WriteAccepted` if the caller does not wait.

        Raises:
            RefusedError: the task is for another namespace, which the caller may not open; or the answer is about a
                fact that was forgotten on request, which needs the scope `write`.
        """
        answer = self._answered(task, arguments, seconds, task_id)
        if task in EXPLAINED and "write" not in self.caller.scopes:
            return self._without_requested(answer)
        return _without_texts(answer) if task in PREVIEWS and "read" not in self.caller.scopes else answer

    def state(self, task_id: str) -> dict[str, Any] | None:
        """Return the state of a task, as `Sender` does; its result as the caller would have been answered.

        Raises:
            RefusedError: the result is about a fact that was forgotten on request, which needs the scope `write`.
        """
        found = super().state(task_id)
        if found is None or "write" in self.caller.scopes or not isinstance(found.get("result"), dict):
            return found
        return found | {"result": self._without_requested(found["result"])}

    def _without_requested(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return an answer without facts that were forgotten on request, for a caller who may not restore them.

        Raises:
            RefusedError: it is about such a fact alone.
        """
        if answer.get("state") in ASKED or (answer.get("why") or {}).get("rule") in ASKED:
            self.caller.check("write")
        shown = answer.copy()
        if "answers" in answer:
            shown["answers"] = [self._without_requested(one) for one in answer["answers"]]
        if isinstance(facts := answer.get("facts"), list):  # in other answers it is their number
            shown["facts"] = [one for one in facts if one.get("reason") not in REQUESTED]
        if isinstance(outcomes := answer.get("results"), list):
            shown["results"] = [_without_texts(one) if "action" in one else one for one in outcomes]
        if answer.get("left_out"):
            left_out = answer["left_out"]  # facts, or the numbers of messages
            shown["left_out"] = [one for one in left_out if not isinstance(one, dict) or one["rule"] not in ASKED]
        return shown

    def _answered(self, task: str, arguments: dict[str, Any], seconds: float, task_id: str | None) -> dict[str, Any]:
        """Send a task and return its result, or that of the first request with this idempotency key.

        The first task has the request's id. Further ones have their own, or one could get the result of another.
        """
        if arguments.get("namespace", self.namespace) != self.namespace:
            raise RefusedError(
                HTTPStatus.FORBIDDEN, f"This request is for the namespace {self.namespace!r} only; name no other."
            )
        own_id = task_id or (str(uuid7()) if self._is_sent and self._key is None else self.task_id)
        self._is_sent = True
        if self._key:
            arguments = self._reach(lambda: self._as_first(task, arguments))
            known = self._reach(lambda: idempotency.kept_answer(self._own_keys, self.task_id))
            if known is not None:
                return self.noted(dict(known))
        if not self._waits:
            raise WriteAccepted(self.accept(task, arguments, own_id), self.new_fact)
        try:
            answer = super().call(task, arguments, seconds, task_id=own_id)
        except LateError as late:
            self._give_up(late)
            raise
        except UnavailableError as error:
            if isinstance(error, BusyError | OlderWorkersError):
                raise
            raise UnavailableError(without_addresses(str(error))) from None
        if self._key:
            known = answer | ({LSN: self.written.lsn} if self.written.lsn else {})
            kept = self._own_keys, own_id, known, self.namespace
            answer = self.noted(self._reach(lambda: idempotency.keep_answer(*kept)))
        return answer

    def _shown(self, error: BaseException) -> str:
        """Return the class of an error: its words may quote statements and rows of the database."""
        return type(error).__name__

    @property
    def _shares_tasks(self) -> bool:
        """Return whether the request has an idempotency key: requests with the same key wait for the same task."""
        return self._key is not None

    def admit(self, task: str, others: int) -> None:
        """Refuse a task if its queue is too long and its namespace contributes to that."""
        if shares.priority(others):
            self._door.refuse_backlog(task)

    def _give_up(self, late: LateError) -> None:
        """Revoke the task and record that it was late.

        A task with an idempotency key is not revoked, as it may be sent again with the same id.
        """
        self._reach(lambda: idempotency.note_late(self._own_keys, late.task, self.namespace))
        if self._key is None:
            self.revoke(late.task)

    def _as_first(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments; if they have no instant, add that of the first request with this idempotency key.

        Raises:
            InvalidInputError: the key was used for another request.
        """
        what = {name: value for name, value in arguments.items() if name != "now" or value is not None}
        own = self.clock() if what.keys() != arguments.keys() else None
        digest = hashlib.sha256(json.dumps([self._key, task, what], sort_keys=True).encode()).hexdigest()
        request, now = idempotency.claim(self._own_keys, self.task_id, digest, own)
        if request != digest:
            raise InvalidInputError("Idempotency-Key: was used for another request; use a new one for each request.")
        return what | ({"now": now} if own else {})


def _without_texts(value: Any) -> Any:
    """Return an answer whose texts of facts are empty."""
    if isinstance(value, list):
        return [_without_texts(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: "" if name == "text" and one else _without_texts(one) for name, one in value.items()}


def reading(scope: Scope) -> Any:
    """Return the dependency of routes that only read: a session for callers with this scope."""

    async def session(
        request: Request,
        who: Annotated[Caller, Depends(caller)],
        timeout: Timeout = None,  # noqa: ASYNC109 - a parameter of requests
        written: Written = None,
    ) -> Session:
        who.check(scope)
        own = Session(door_of(request), who, timeout=timeout)
        own.written.note(written)
        return own.noted_by(request)

    return Depends(session)


def writing(scope: Scope) -> Any:
    """Return the dependency of routes that write: as for reading, with `wait` and the idempotency key."""

    async def session(
        request: Request,
        who: Annotated[Caller, Depends(caller)],
        timeout: Timeout = None,  # noqa: ASYNC109 - a parameter of requests
        wait: Wait = True,
        idempotency_key: IdempotencyKey = None,
    ) -> Session:
        who.check(scope)
        return Session(door_of(request), who, timeout=timeout, wait=wait, key=idempotency_key).noted_by(request)

    return Depends(session)


Reader = Annotated[Session, reading("read")]
Writer = Annotated[Session, writing("write")]
Admin = Annotated[Session, writing("admin")]
System = Annotated[Session, reading("system")]

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": Accepted, "description": "Accepted; `GET /tasks/{id}` says when it is done."}
}


def accepted(request: Request, done: Exception) -> JSONResponse:
    """Answer 202 with the task of an accepted write."""
    assert isinstance(done, WriteAccepted)  # noqa: S101  it is registered for no other
    content = {"task": done.task} | ({"id": done.fact} if done.fact else {})
    return JSONResponse(content, 202, {"Location": f"{request.scope.get('root_path', '')}/tasks/{done.task}"})
