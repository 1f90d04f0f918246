"""The transport: sends tasks to the workers behind a Redis, and waits for their results."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property, partial
from typing import Any, Self, TypeAlias

import redis.exceptions
from celery.exceptions import NotRegistered, SoftTimeLimitExceeded, TaskRevokedError, TimeLimitExceeded
from celery.exceptions import TimeoutError as NoResultError
from celery.result import AsyncResult
from celery.states import READY_STATES, REVOKED, SUCCESS
from ebb import headers
from ebb.contract.facts import Store
from ebb.contract.faults import faults
from ebb.contract.operation import STORE_SECONDS, Operation, find
from ebb.headers import Position
from kombu.exceptions import OperationalError
from pydantic import ValidationError
from redis.exceptions import ResponseError
from uuid_utils.compat import uuid7

from workers import redaction
from workers.clock import Clock, with_deadline
from workers.coordination import idempotency, outbox, shares, signals, transport
from workers.coordination.redis import RefusedError, explain, insist, is_refusal, own_keys
from workers.coordination.redis import clock as redis_clock
from workers.errors import EbbError, InvalidInputError, LateError, OlderWorkersError, TaskFailedError, UnavailableError
from workers.queues import LSN, SENT_AT, configuration
from workers.validation.facts import new_fact

UNASKED = 16
"""Results that a thread keeps until they are fetched; others are read again from Redis."""

HANGS_SECONDS = 5.0
"""Time after which Redis does not answer for a client: a fork or a slow disk delays it less."""

GIVE_UP_SOON = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
LOOK_SECONDS = 5.0
"""Interval at which a client that waits for long looks whether its task is lost."""

EMPTIED_SECONDS = 15.0
"""Time that a running task has to answer after Redis was emptied; what waited in Redis is lost."""

AWAY_SECONDS = 60.0
"""Time that a client which waits for long, or has sent much, gives a Redis that is away: it may just restart."""

LEAST_SECONDS = 0.01
LOST = (
    "Redis was emptied, or lost its data, while this waited for an answer: it may be done or not. Send it again; what "
    "is stored already is not stored twice."
)
TOO_LONG = (
    "It took longer than such a task may, and was ended. Ask for less at once: fewer questions or results. If it was "
    "little, PostgreSQL or the network to it may be slow: see `ebb doctor`."
)
STOPPED = "It was revoked: no worker begins it any more, but one that had begun it may have done some of it, or all."
AWAY = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OperationalError)

Answer: TypeAlias = dict[str, Any]
"""The JSON answer of a task, the same at every interface."""


class LostError(UnavailableError):
    """Redis was emptied while a client waited for a task."""


class Sender:
    """Sends tasks by name for one namespace; `deadline` (seconds, a day at most) overrides each task's own."""

    def __init__(self, redis_url: str, namespace: str = "default", *, deadline: float | None = None) -> None:
        self.namespace = namespace
        self.deadline = deadline
        self.written = Position()
        self._redis_url = redis_url
        self._awaited = set[str]()
        self._has_waited = False

    def call(self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None) -> Answer:
        """Send a task that expires after `seconds`, or after the client's own deadline; return its result."""
        most, own_id = min(self.deadline or seconds, signals.AWAITED_SECONDS), task_id or str(uuid7())
        options: dict[str, Any] = {"expires": most, "task_id": own_id}
        counted = self._under_way(task, own_id, most, interactive=seconds <= STORE_SECONDS)
        with counted if "namespace" in arguments else nullcontext() as others:
            if others is not None:
                options["priority"] = shares.priority(others)
            if most > STORE_SECONDS:
                self._note_awaited(own_id)
            if self._shares_tasks:
                self._reach(lambda: transport.drop_failure(self._app.backend, own_id))
            return self._answer(self._taken, self.send(task, arguments, **options), most)

    @property
    def _shares_tasks(self) -> bool:
        """Return whether other callers may wait for the same task; its result then stays for them."""
        return False

    @contextmanager
    def _under_way(self, task: str, task_id: str, seconds: float, *, interactive: bool) -> Iterator[int]:
        """Count a request of the namespace for the duration of the block; yield the number of others."""
        own = self.namespace, task_id
        others: int = self._reach(
            lambda: shares.enter(self._own_keys, *own, self.seconds(), seconds, interactive=interactive)
        )
        try:
            self.admit(task, others)
            yield others
        finally:
            with suppress(redis.exceptions.RedisError):  # it then counts until its deadline
                shares.leave(self._own_keys, *own)

    def admit(self, task: str, others: int) -> None:
        """Hook for interfaces to reject a task, given the namespace's number of other requests."""

    def perform(
        self, operation: Operation, given: Mapping[str, Any], *, wait: bool = True, seconds: float | None = None
    ) -> Answer:
        """Perform an operation with these parameters; return its answer, or `{"task"}` without waiting, see `accept`.

        False and null parameters equal to their default are not sent: workers of earlier versions may not know them.
        """
        arguments = sealed({name: one for name, one in given.items() if not _is_default(operation, name, one)})
        if operation.is_scoped:
            arguments = {"namespace": self.namespace} | arguments
        if operation.accepted and operation.is_timed:
            arguments = {"now": None} | arguments
        if wait:
            return self.call(operation.name, arguments, seconds or operation.seconds)
        return {"task": self.accept(operation.name, arguments)}

    def accept(self, task: str, arguments: dict[str, Any], task_id: str | None = None) -> str:
        """Put a write into the outbox until it is committed, and send its message; return the task's id.

        Redis has then written it to its append-only file, so a crash of any process does not lose it. What a power
        failure or a crash of the operating system loses depends on Redis' `appendfsync`: with `everysec`, the default
        of `ebb up`, about the last second, with `always` nothing; `ebb doctor` shows it.

        The write is dated by Redis' clock now, even if workers process it hours later.

        Raises:
            InvalidInputError: its task would refuse it, whatever the memory holds.
            BusyError: the namespace has too many such writes, or Redis is nearly full; nothing was accepted.
            UnavailableError: Redis does not answer; the write may or may not be accepted.
        """
        _check(task, arguments)
        own_id = task_id or str(uuid7())
        if "now" in arguments:
            arguments |= {"now": arguments["now"] or self.clock()}
        others: int = self._reach(lambda: outbox.held(self._own_keys, self.namespace))
        self.admit(task, others)
        entry = outbox.Entry(
            own_id, task, arguments, self.seconds(), namespace=self.namespace, trace=headers.of_trace()
        )
        self._reach(lambda: outbox.put(self._own_keys, entry))
        message: dict[str, Any] = {"task_id": own_id, "headers": {outbox.HEADER: self.namespace}}
        try:
            self._reach(lambda: idempotency.note_owner(self._own_keys, own_id, self.namespace))
            self.send(task, outbox.message(entry), priority=shares.priority(others), **message)
        except RefusedError:
            outbox.remove(self._own_keys, self.namespace, own_id)
            raise
        return own_id

    def send(self, task: str, arguments: dict[str, Any], *, listen: bool = False, **options: Any) -> AsyncResult:
        """Send a task without waiting; `listen` for its result if it may be read later than Redis keeps it."""
        own = {SENT_AT: self._sent_at()} | ({LSN: self.written.lsn} if self.written.lsn else {})
        options["headers"] = own | headers.of_trace() | options.get("headers", {})
        options |= with_deadline(options, self._clock)
        own_id = options.setdefault("task_id", str(uuid7()))
        if listen:
            self._reach(lambda: self._app.backend.result_consumer.consume_from(own_id))
        return self._reach(lambda: self._app.send_task(task, kwargs=arguments, **options))

    def ask(self, task: str, arguments: dict[str, Any], task_id: str | None = None) -> AsyncResult:
        """Send a task without waiting; pass the result to `wait`. After the first, wait for a Redis that is away."""
        own_id = task_id or str(uuid7())

        def send() -> AsyncResult:
            self._note_awaited(own_id)
            return self.send(task, arguments, task_id=own_id, listen=True)

        return self._insist(send, AWAY_SECONDS) if self._has_waited else send()

    def _sent_at(self) -> float:
        try:
            return self._clock.now().timestamp()
        except redis.exceptions.RedisError:  # it may answer again when the message is sent
            return time.time()

    def wait(self, result: AsyncResult, seconds: float) -> Answer:
        """Return a task's result, or raise its error, and delete it from Redis.

        Raises:
            LostError: Redis was emptied after the task was sent by `ask`.
        """
        return self._answer(self._received, result, seconds)

    def _answer(self, read: Callable[[AsyncResult, float], Any], result: AsyncResult, seconds: float) -> Answer:
        try:
            answer: Answer = self._reach(lambda: read(result, seconds))
        except (NoResultError, TaskRevokedError) as error:
            if _was_revoked(error):
                raise TaskFailedError(STOPPED) from None
            raise LateError(
                f"No worker answered within {seconds:g} s. See `ebb status` for whether they run, "
                "and Flower for how much is waiting.",
                task=result.id,
            ) from None
        except Exception as error:
            if (older := refusal(error)) is not None:
                raise older from None
            if isinstance(error, EbbError):
                raise
            if isinstance(error, SoftTimeLimitExceeded | TimeLimitExceeded):
                raise LateError(TOO_LONG, task=result.id) from None
            said = self._shown(error).rstrip(".")
            raise TaskFailedError(f"The worker failed: {said}. Its log says more; try again.") from error
        return self.noted(answer)

    def _shown(self, error: BaseException) -> str:
        """Return what a caller sees of an error that it did not cause."""
        return f"{type(error).__name__}: {error}"

    def _taken(self, result: AsyncResult, seconds: float) -> Any:
        """Return a task's result, which is removed from Redis unless callers share it, or raise its error."""

        def take(most: float) -> dict[str, Any]:
            found = transport.take_result(self._app.backend, result.id, most, is_shared=self._shares_tasks)
            if found is None:
                raise NoResultError
            return found

        found = self._patiently(take, result.id, seconds)
        result._maybe_set_cache(found)  # noqa: SLF001 - so that Celery rebuilds the error
        return result.get()

    def _received(self, result: AsyncResult, seconds: float) -> Any:
        """Return a task's result, which arrives as a message, or raise its error."""
        try:
            self._patiently(lambda most: result.get(timeout=most, propagate=False), result.id, seconds)
            return result.get()
        finally:
            _forget(result)

    def _patiently(self, read: Callable[[float], Any], task_id: str, seconds: float) -> Any:
        """Return what `read` finds within `seconds`; if that is long, look now and then whether the task is lost.

        Raises:
            LostError: Redis was emptied meanwhile; a task that was running has had time to answer.
        """
        if task_id not in self._awaited:
            return read(seconds)
        try:
            return self._until_lost(read, task_id, seconds)
        finally:
            self._awaited.discard(task_id)
            if not self._shares_tasks:  # others may wait for it
                with suppress(redis.exceptions.RedisError):  # it then expires
                    signals.drop_awaited(self._own_keys, task_id)

    def _until_lost(self, read: Callable[[float], Any], task_id: str, seconds: float) -> Any:
        until, emptied = time.monotonic() + seconds, None
        while True:
            began = time.monotonic()
            look = min(began + LOOK_SECONDS, until)
            try:
                return self._insist(partial(read, max(look - began, LEAST_SECONDS)), until - began)
            except NoResultError:
                now = time.monotonic()
                if not look <= now < until:
                    raise
                if emptied is None and not self._is_awaited(task_id):
                    emptied = now
                if emptied is not None and now - emptied >= EMPTIED_SECONDS:
                    raise LostError(LOST) from None

    def _note_awaited(self, task_id: str) -> None:
        """Record in Redis that this client waits for a task, to see if Redis loses what it holds."""
        self._reach(lambda: signals.note_awaited(self._own_keys, task_id))
        self._awaited.add(task_id)
        self._has_waited = True

    def _is_awaited(self, task_id: str) -> bool:
        with suppress(*AWAY):
            return signals.is_awaited(self._own_keys, task_id)
        return True

    def noted(self, answer: Answer) -> Answer:
        """Return an answer without up to where was written for it, which later reads of this client have to know of."""
        self.written.note(answer.pop(LSN, None) if isinstance(answer, dict) else None)
        return answer

    def state(self, task_id: str) -> Answer | None:
        """Return `{"state", …}` of a task of this namespace accepted in the last day; None for others.

        `waiting`: in the outbox. `done`, with its `result`. `failed`, with its `error`. `ended`: more than five minutes
        ago, results are no longer kept. `late`: its caller stopped waiting, so it is not started; if a worker was
        already running it, it is completed, and its result is kept for those minutes.
        """
        return self._reach(lambda: self._state(task_id))

    def _state(self, task_id: str) -> Answer | None:
        if idempotency.owner(self._own_keys, task_id) != self.namespace:
            return None
        is_held = outbox.holds(self._own_keys, self.namespace, task_id)
        done = self._app.AsyncResult(task_id)
        state = done.state  # read once, and after the outbox: the task may end at any moment
        if state == SUCCESS:
            return {"state": "done", "result": self.noted(done.result)}
        if is_held:  # failed writes in the outbox are retried
            return {"state": "waiting"}
        failure = done.result
        if state == REVOKED and _was_revoked(failure) and not idempotency.is_late(self._own_keys, task_id):
            return {"state": "failed", "error": STOPPED}
        if state not in READY_STATES or state == REVOKED:  # any worker other than the one running it reports this
            return {"state": "late" if idempotency.is_late(self._own_keys, task_id) else "ended"}
        return {"state": "failed", "error": str(failure) if isinstance(failure, EbbError) else self._shown(failure)}

    def revoke(self, task_id: str) -> None:
        """Make workers drop a task that they have not started."""
        self._reach(lambda: self._app.control.revoke(task_id))

    def prepare(self) -> None:
        """Make the Celery app, which would delay the first task; this opens no connection."""
        _ = self._app

    def close(self) -> None:
        """Close the connections to Redis; those of other threads close when these end."""
        if "_app" in self.__dict__:
            _Ending(self._app.backend).close()
            self._app.close()
        if "_own_keys" in self.__dict__:
            self._own_keys.close()

    def __enter__(self) -> Self:
        """Return the client, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def _reach(self, act: Any) -> Any:
        try:
            return act()
        except (*AWAY, ResponseError, RuntimeError) as error:
            # kombu wraps Redis' errors; Celery raises a RuntimeError when reconnecting to the results fails
            cause = (error.__cause__ or error) if isinstance(error, OperationalError | RuntimeError) else error
            if is_refusal(cause):
                raise RefusedError(explain(cause)) from None
            if not isinstance(error, AWAY) and not isinstance(cause, AWAY):
                raise
            raise UnavailableError(explain(cause)) from None

    def _insist(self, act: Callable[[], Any], seconds: float) -> Any:
        """Return what `act` returns; while Redis is away, call it again, up to `seconds` and `AWAY_SECONDS`."""
        return insist(partial(self._reach, act), min(seconds, AWAY_SECONDS), (UnavailableError,))

    def clock(self) -> str:
        """Return the current time by Redis' clock, as tasks take it; this machine's clock may be wrong."""
        return self._reach(self._clock.now).isoformat()

    def is_served(self, queue: str) -> bool:
        """Return whether any worker with a recent heartbeat takes the tasks of a queue."""
        workers = self._reach(lambda: signals.live_workers(self._own_keys, self.seconds()))
        return any(served == queue for served, _ in workers)

    def seconds(self) -> float:
        """Return epoch seconds by Redis' clock."""
        return self._reach(self._clock.now).timestamp()

    @cached_property
    def _clock(self) -> Clock:
        return Clock(lambda: redis_clock(self._own_keys))

    @cached_property
    def _own_keys(self) -> Any:
        return own_keys(self._redis_url, answer_seconds=HANGS_SECONDS)

    @cached_property
    def _app(self) -> transport.App:
        transport.install()
        app = _Sending("ebb-client", set_as_current=False)
        app.loader.override_backends = transport.BACKENDS
        app.conf.update(configuration(self._redis_url))
        app.conf.update(
            broker_connection_max_retries=2,
            task_publish_retry_policy=GIVE_UP_SOON,
            redis_socket_timeout=HANGS_SECONDS,
            redis_socket_connect_timeout=2.0,
        )
        app.conf.broker_transport_options |= {"socket_timeout": HANGS_SECONDS, "socket_connect_timeout": 2}
        app.conf.result_backend_transport_options |= {"retry_policy": GIVE_UP_SOON, "socket_timeout": HANGS_SECONDS}
        return app


class _Sending(transport.App):
    """A Celery app that subscribes to a result only when asked for it; connections for results end with their thread.

    Otherwise they stay open until garbage collection, and the many short-lived threads of a server could exceed the
    limit of open files.
    """

    def _get_backend(self) -> Any:
        backend = super()._get_backend()
        backend.on_task_call = lambda *_, **__: None
        # Results received twice, by message and on request, stay there: some 8,000 per thread.
        backend._pending_messages.maxsize = UNASKED  # noqa: SLF001 - there is no setting for it
        self._local.ending = _Ending(backend)
        return backend

    def send_task(self, name: str, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Send a task with redacted argument texts for monitors."""
        return super().send_task(name, args, kwargs, **options | redaction.headers(args, kwargs))


class _Ending:
    """Closes a thread's connections to the result backend when the thread ends, unless others wait for its results."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __del__(self) -> None:
        with suppress(Exception):  # they are no longer used
            if not self._backend.result_consumer.subscribed_to:
                self.close()

    def close(self) -> None:
        """Close the connections."""
        self._backend.result_consumer.stop()
        self._backend.client.connection_pool.disconnect()


def sealed(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact with its metadata as JSON text, which Celery does not interpret."""
    metadata = fact.get("metadata")
    return {**fact, "metadata": json.dumps(metadata)} if isinstance(metadata, Mapping) else dict(fact)


def _check(task: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a write that its task would refuse, before it is accepted; only workers know the limit of its size.

    Raises:
        InvalidInputError: an argument is unknown, missing or not allowed, or some do not go together.
    """
    operation = find(task)
    if operation is None:
        return
    try:
        asked = operation.params.model_validate(arguments)
    except ValidationError as error:
        raise InvalidInputError(faults(error)) from None
    if isinstance(asked, Store):
        new_fact(asked, sys.maxsize)


def _is_default(operation: Operation, name: str, value: Any) -> bool:
    field = operation.params.model_fields.get(name)
    is_empty = value is False or (value is None and not operation.clears)
    return is_empty and field is not None and field.default is value


def _was_revoked(error: Any) -> bool:
    """Return whether a task was revoked, and not because it had expired."""
    return isinstance(error, TaskRevokedError) and str(error) != "expired"


def _forget(result: AsyncResult) -> None:
    """Remove a result, and stop listening for it; otherwise the garbage collector does, whose errors are not caught."""
    with suppress(*AWAY, RuntimeError):  # without Redis, the result expires
        result.forget()
    with suppress(*AWAY, RuntimeError):
        result.backend.remove_pending_result(result)


FAULT = re.compile(r"\b(\w+): is no (?:argument of ([\w.]+)|field)")
"""Message with which workers refuse an argument of a task, or a field of a fact."""


def refusal(error: Exception) -> OlderWorkersError | None:
    """Return the error to raise if workers failed only because they are of an older version.

    During an upgrade doors may be newer than workers. They read fields missing in answers as unknown.
    """
    if isinstance(error, NotRegistered):
        return _cannot(f"they do not know the task {error}")
    if isinstance(error, InvalidInputError):
        unknown = [name for name, task in FAULT.findall(str(error)) if _is_known(name, task)]
        if unknown:
            return _cannot(f"they do not know the argument {', '.join(map(repr, unknown))}")
    return None


def _is_known(name: str, task: str) -> bool:
    """Return whether the contract has this parameter of a task, or this field of a fact."""
    operation = find(task or "memory.store")
    return (operation is not None and name in operation.parameters) or (name, task) == ("content_salience", "")


def _cannot(what: str) -> OlderWorkersError:
    return OlderWorkersError(
        f"The workers are of an older version: {what}. Nothing was done; upgrade the workers, then try again."
    )
