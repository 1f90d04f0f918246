"""The transport: how a task reaches the workers behind a Redis, and its result the caller that waits for it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Self, TypeAlias

import redis.exceptions
from celery import Celery
from celery.exceptions import TaskRevokedError
from celery.exceptions import TimeoutError as NoResultError
from celery.result import AsyncResult
from celery.states import REVOKED
from ebb import tracing
from ebb.contract.operation import Operation
from kombu.exceptions import OperationalError
from redis.exceptions import ResponseError
from uuid_utils.compat import uuid7

from api.older_workers import refusal
from workers import redaction
from workers.clock import Clock, with_deadline
from workers.coordination import idempotency, outbox, shares
from workers.coordination.redis import RefusedError, explain, is_refusal, own_keys
from workers.coordination.redis import clock as redis_clock
from workers.errors import EbbError, LateError, TaskFailedError, UnavailableError
from workers.queues import SENT_AT, configuration

RECALL_SECONDS = 15.0
STORE_SECONDS = 45.0
BATCH_SECONDS = 180.0

UNASKED = 16
"""Results that a thread keeps until they are asked for; others are fetched again when they are."""

GIVE_UP_SOON = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
AWAY = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OperationalError)

Answer: TypeAlias = dict[str, Any]
"""What a task answers: plain JSON, the same at every door."""


class Sender:
    """Sends tasks by name, for one namespace; `deadline` is in seconds, for every call, else each task has its own."""

    def __init__(self, redis_url: str, namespace: str = "default", *, deadline: float | None = None) -> None:
        self.namespace = namespace
        self.deadline = deadline
        self._redis_url = redis_url

    def call(self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None) -> Answer:
        """Send a task that is of no use after `seconds`, or after the client's own deadline; return its result."""
        most, own_id = self.deadline or seconds, task_id or str(uuid7())
        if "namespace" not in arguments:
            return self.wait(self.send(task, arguments, expires=most, task_id=own_id), most)
        with self._under_way(task, own_id, most, interactive=seconds <= STORE_SECONDS) as others:
            priority = shares.priority(others)
            return self.wait(self.send(task, arguments, expires=most, task_id=own_id, priority=priority), most)

    @contextmanager
    def _under_way(self, task: str, task_id: str, seconds: float, *, interactive: bool) -> Iterator[int]:
        """Count a request among those of its namespace while the block runs; give how many others there are."""
        own = self.namespace, task_id
        others: int = self._reach(
            lambda: shares.enter(self._own_keys, *own, self.seconds(), seconds, interactive=interactive)
        )
        try:
            self.admit(task, others)
            yield others
        finally:
            with suppress(*AWAY):  # then it counts until its deadline
                shares.leave(self._own_keys, *own)

    def admit(self, task: str, others: int) -> None:
        """Let a task through, of whose namespace so many others are under way; a door may refuse it."""

    def perform(
        self, operation: Operation, given: Mapping[str, Any], *, wait: bool = True, seconds: float | None = None
    ) -> Answer:
        """Have an operation done, by what was given of its parameters; return its answer, or see `write`.

        What is false or left open, as by default, is not sent: workers of earlier versions may not know it.
        """
        arguments = {name: value for name, value in given.items() if not _is_default(operation, name, value)}
        if operation.is_scoped:
            arguments = {"namespace": self.namespace} | arguments
        if operation.accepted and operation.is_timed:
            arguments = {"now": None} | arguments
        return self.write(operation.name, arguments, wait=wait, seconds=seconds or operation.seconds)

    def write(self, task: str, arguments: dict[str, Any], *, wait: bool, seconds: float = STORE_SECONDS) -> Answer:
        """Send a write, and return its result, or at once `{"task"}` as soon as it is accepted: see `accept`."""
        if wait:
            return self.call(task, arguments, seconds)
        return {"task": self.accept(task, arguments)}

    def accept(self, task: str, arguments: dict[str, Any], task_id: str | None = None) -> str:
        """Put a write into the outbox, where it stays until it is committed, and send its id; return its task's id.

        Redis has written it to its append-only file by then, so that no process that dies loses it. What a failure of
        power or of the operating system loses is up to Redis' `appendfsync`: with `everysec`, as `ebb up` starts it,
        about the last second, with `always` nothing; `ebb doctor` says what holds.

        It is dated by Redis' clock, and so counts as of now even if no worker takes it for hours.

        Raises:
            BusyError: the namespace has as many such writes as it may, or Redis is nearly full; nothing was accepted.
            UnavailableError: Redis does not answer; whether the write was accepted is not known.
        """
        own_id = task_id or str(uuid7())
        if "now" in arguments:
            arguments |= {"now": arguments["now"] or self.clock()}
        others: int = self._reach(lambda: outbox.held(self._own_keys, self.namespace))
        self.admit(task, others)
        entry = outbox.Entry(own_id, task, arguments, self.seconds(), namespace=self.namespace)
        self._reach(lambda: idempotency.note_owner(self._own_keys, own_id, self.namespace))
        self._reach(lambda: outbox.put(self._own_keys, entry))
        message = {"task_id": own_id, "headers": {outbox.HEADER: self.namespace}}
        try:
            _stop_listening(self.send(task, outbox.message(entry), priority=shares.priority(others), **message))
        except RefusedError:
            outbox.remove(self._own_keys, self.namespace, own_id)
            raise
        return own_id

    def send(self, task: str, arguments: dict[str, Any], **options: Any) -> AsyncResult:
        """Send a task and return at once.

        Raises:
            UnavailableError: Redis does not answer.
        """
        options["headers"] = {SENT_AT: self._sent_at()} | tracing.headers() | options.get("headers", {})
        options |= with_deadline(options, self._clock)
        return self._reach(lambda: self._app.send_task(task, kwargs=arguments, **options))

    def _sent_at(self) -> float:
        try:
            return self._clock.now().timestamp()
        except redis.exceptions.RedisError:  # it may come back until the message is sent
            return time.time()

    def wait(self, result: AsyncResult, seconds: float) -> Answer:
        """Return a task's result, and forget it.

        Raises:
            LateError: none came in time.
            UnavailableError: Redis does not answer.
            EbbError: the one that the worker raised.
        """
        try:
            answer: Answer = self._reach(lambda: result.get(timeout=seconds))
        except (NoResultError, TaskRevokedError):
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
            raise TaskFailedError(
                f"The worker failed: {type(error).__name__}: {error}. Its log says more; try again."
            ) from error
        finally:
            _let_go(result)
        return answer

    def state(self, task_id: str) -> Answer | None:
        """Return `{"state", …}` of a task of this namespace that was accepted in the last day; nothing of any other.

        `waiting` in the outbox; `done`, with its `result`; `failed`, with its `error`; `ended`, more than five
        minutes ago, after which results are not kept; or `late`: no caller waits any longer, so it is not begun any
        more, but if a worker was at it already, it is done, and its result is there for those minutes.
        """
        return self._reach(lambda: self._state(task_id))  # type: ignore[no-any-return]

    def _state(self, task_id: str) -> Answer | None:
        if idempotency.owner(self._own_keys, task_id) != self.namespace:
            return None
        done = self._app.AsyncResult(task_id)
        if done.successful():
            return {"state": "done", "result": done.result}
        if outbox.holds(self._own_keys, self.namespace, task_id):  # what failed but stands there is tried again
            return {"state": "waiting"}
        if not done.ready() or done.state == REVOKED:  # so says any worker that was not at it itself
            return {"state": "late" if idempotency.is_late(self._own_keys, task_id) else "ended"}
        return {"state": "failed", "error": str(done.result)}

    def revoke(self, task_id: str) -> None:
        """Have workers drop a task that they have not begun."""
        self._reach(lambda: self._app.control.revoke(task_id))

    def close(self) -> None:
        """Close the connections to Redis, but those of other threads, which end with these."""
        if "_app" in self.__dict__:
            _Ending(self._app.backend).close()
            self._app.close()
        if "_own_keys" in self.__dict__:
            self._own_keys.close()

    def __enter__(self) -> Self:
        """Return the client, whose connections close with the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def _reach(self, act: Any) -> Any:
        try:
            return act()
        except (*AWAY, ResponseError, RuntimeError) as error:
            # kombu wraps what Redis answered; by a RuntimeError Celery gives up reconnecting to the results
            cause = (error.__cause__ or error) if isinstance(error, OperationalError | RuntimeError) else error
            if is_refusal(cause):
                raise RefusedError(explain(cause)) from None
            if not isinstance(error, AWAY) and not isinstance(cause, AWAY):
                raise
            raise UnavailableError(explain(cause)) from None

    def clock(self) -> str:
        """Return the present instant by Redis' clock, as tasks take it: that of this machine may be wrong.

        Raises:
            UnavailableError: Redis does not answer.
        """
        return self._reach(self._clock.now).isoformat()  # type: ignore[no-any-return]

    def seconds(self) -> float:
        """Return epoch seconds by Redis' clock.

        Raises:
            UnavailableError: Redis does not answer.
        """
        return self._reach(self._clock.now).timestamp()  # type: ignore[no-any-return]

    @cached_property
    def _clock(self) -> Clock:
        return Clock(lambda: redis_clock(self._own_keys))

    @cached_property
    def _own_keys(self) -> Any:
        return own_keys(self._redis_url)

    @cached_property
    def _app(self) -> Celery:
        app = _Sending("ebb-client", set_as_current=False)
        app.conf.update(configuration(self._redis_url))
        app.conf.update(
            broker_connection_max_retries=2,
            task_publish_retry_policy=GIVE_UP_SOON,
            redis_socket_timeout=5.0,
            redis_socket_connect_timeout=2.0,
        )
        app.conf.broker_transport_options |= {"socket_timeout": 5, "socket_connect_timeout": 2}
        app.conf.result_backend_transport_options |= {"retry_policy": GIVE_UP_SOON, "socket_timeout": 5}
        return app


class _Sending(Celery):  # type: ignore[misc]  # Celery comes without types
    """An app whose connections to the results, which each thread has for itself, end with their thread.

    Else they stay until the garbage is collected, and those of a server's threads, which come and go, may be more by
    then than a process may have open.
    """

    def _get_backend(self) -> Any:
        backend = super()._get_backend()
        # A result that came twice, by its message and when it was asked for, stays there: some 8,000 in each thread.
        backend._pending_messages.maxsize = UNASKED  # noqa: SLF001 - no setting tells it
        self._local.ending = _Ending(backend)
        return backend

    def send_task(self, name: str, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Send a task whose message shows monitors no text."""
        return super().send_task(name, args, kwargs, **options | redaction.headers(args, kwargs))


class _Ending:
    """Closes a thread's connections to the results when the thread is over, unless others wait for its results."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __del__(self) -> None:
        with suppress(Exception):  # they are of no use any more
            if not self._backend.result_consumer.subscribed_to:
                self.close()

    def close(self) -> None:
        """Close the connections."""
        self._backend.result_consumer.stop()
        self._backend.client.connection_pool.disconnect()


def _is_default(operation: Operation, name: str, value: Any) -> bool:
    field = operation.params.model_fields.get(name)
    return (value is None or value is False) and field is not None and field.default is value


def _let_go(result: AsyncResult) -> None:
    with suppress(*AWAY, RuntimeError):  # where Redis is away, the result expires
        result.forget()
    _stop_listening(result)


def _stop_listening(result: AsyncResult) -> None:
    """Stop listening for a result; otherwise the garbage collector does, whose errors are not caught."""
    with suppress(*AWAY, RuntimeError):
        result.backend.remove_pending_result(result)
