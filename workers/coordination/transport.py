"""Celery on Redis: transports, remote control and results, which survive closed connections and a full Redis.

When the server is away, kombu may close a channel twice; when a task ends after a reconnect, it acknowledges its
message on the old channel. Both access a connection that no longer exists, which raises an `AttributeError` and ends
Celery. After a connection error, Celery reconnects instead.

Times of delivery are by Redis' clock. By their own clocks a worker whose clock is minutes ahead would redeliver all
messages that others are processing, each second, and one that is behind would redeliver those of dead workers late.

A full Redis refuses kombu's record of a delivered message, which would end Celery as well, and the replies of workers
that are asked whether they run.

Channels keep their client: kombu creates one per command, which copies a table of a hundred entries and takes a sixth
of the CPU of a worker's main process for an empty task.

As in Celery, the result of a success is not replaced: a task that was lost and runs again does not change the answer.
Celery's own backends read the earlier result first, and its clients subscribe to each result before they send its task.
Ebb's clients wait for a mark in a list instead; the result is published as well, for other Celery programs.
"""

import logging
import math
import time
from contextlib import suppress
from datetime import datetime
from json import JSONDecodeError
from queue import Empty
from typing import Any

from celery import Celery
from celery.app import control
from celery.app.utils import Settings
from celery.backends import redis as celery_redis
from celery.loaders.app import AppLoader
from celery.states import FAILURE, READY_STATES, SUCCESS
from ebb.broker import KEEPALIVE
from ebb.contract.operation import find
from kombu.exceptions import OperationalError
from kombu.pidbox import Mailbox
from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from kombu.utils.json import dumps
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from workers.clock import UNTIL, Clock, has_passed
from workers.coordination.redis import ask_once, is_refusal
from workers.coordination.redis import clock as server_clock
from workers.core.cost import check_size
from workers.errors import InvalidInputError

log = logging.getLogger(__name__)


class _QoS(redis.QoS):
    """Kombu's records of delivered messages, from which they are redelivered if this worker dies."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._clock = Clock(self._server_time)

    def _server_time(self) -> datetime:
        with self.channel.conn_or_acquire() as client:
            return server_clock(client)

    def append(self, message: Any, delivery_tag: str) -> None:
        """Record a message; if Redis has no room for the record, deliver it anyway, since work frees memory.

        If the worker dies while processing it, a write is resent from the outbox; other callers get no answer.
        """
        try:
            self._record(message, delivery_tag)
        except ResponseError as error:
            if not is_refusal(error):
                raise
            log.warning("Redis refuses writes: a message is processed without a note of its delivery: %s", error)
        virtual.QoS.append(self, message, delivery_tag)

    def _record(self, message: Any, delivery_tag: str) -> None:
        """Do what kombu's `append` does, by Redis' clock."""
        sent = message.delivery_info
        record = dumps([message._raw, sent["exchange"], sent["routing_key"]])  # noqa: SLF001 - kombu gives no other
        with self.pipe_or_acquire() as pipe:
            pipe.zadd(self.unacked_index_key, {delivery_tag: self._clock.now().timestamp()})
            pipe.hset(self.unacked_key, delivery_tag, record).execute()

    @property
    def visibility_timeout(self) -> float:
        """Return how long ago by this machine's clock, which kombu reads, a message to redeliver was delivered."""
        return float(self.channel.visibility_timeout) + time.time() - self._clock.now().timestamp()

    def restore_visible(self, *args: Any, **options: Any) -> None:
        """Redeliver messages of dead workers; if Redis is full, at the next call.

        Each worker looks every second, mostly in vain: kombu's lock would make that three trips to Redis.
        """
        try:
            with self.channel.conn_or_acquire() as client:
                delivered = client.zcount(self.unacked_index_key, 0, time.time() - self.visibility_timeout)
            if delivered:
                super().restore_visible(*args, **options)
        except ResponseError as error:
            if not is_refusal(error):
                raise
            log.warning("Redis refuses writes: messages of dead workers wait: %s", error)


class _UnreadableError(ValueError):
    """An entry of a queue is no message."""


class _Message(virtual.Message):
    """A message whose envelope is checked: kombu alone would end the worker, with the entry lost in any case."""

    def __init__(self, payload: Any, channel: Any = None, **options: Any) -> None:
        try:
            super().__init__(payload, channel, **options)
            _ = self.delivery_info["exchange"], self.delivery_info["routing_key"]
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise _UnreadableError(f"{type(error).__name__} in its envelope") from None


class _OwnChannel:
    """The parts that differ from kombu's channels: among others, it keeps its client while its pool is the same."""

    QoS = _QoS
    Message = _Message
    _kept: Any = None

    def _brpop_read(self, **options: Any) -> Any:
        """Deliver the message that was read, or drop an entry that is none: any client of Redis can push to a list."""
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]  # kombu has no types
        except (_UnreadableError, JSONDecodeError, UnicodeDecodeError) as error:
            why = error if isinstance(error, _UnreadableError) else "no JSON"
            log.error("An entry of a queue is no message of Celery and is dropped: %s", why)  # noqa: TRY400 - it may quote
            raise Empty from None

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:  # type: ignore[attr-defined]  # kombu has no types
            raise RedisConnectionError("This channel's connection was closed before.")
        return super()._connparams(asynchronous)  # type: ignore[misc]  # kombu has no types

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]  # kombu has no types
        if self._kept is None or self._kept.connection_pool is not self.pool:  # type: ignore[attr-defined]  # kombu has no types
            self._kept = super()._create_client()  # type: ignore[misc]  # kombu has no types
        return self._kept


class _Channel(_OwnChannel, redis.Channel):
    pass


class _SentinelChannel(_OwnChannel, redis.SentinelChannel):
    def _sentinel_managed_pool(self, asynchronous: bool = False) -> Any:
        pool = super()._sentinel_managed_pool(asynchronous)
        ask_once(pool.sentinel_manager)
        return pool


class Transport(redis.Transport):
    """Transport over one Redis."""

    Channel = _Channel


class SentinelTransport(redis.SentinelTransport):
    """Transport over a Redis found through Sentinels."""

    Channel = _SentinelChannel


class Replies(Mailbox):
    """A mailbox that drops what Redis refuses.

    After any error Celery binds the mailbox again, which a full Redis refuses too, and then stops the worker.
    """

    def _publish_reply(self, *arguments: Any, **options: Any) -> None:
        try:
            super()._publish_reply(*arguments, **options)
        except (ResponseError, OperationalError) as error:
            if not isinstance(error.__cause__ or error, ResponseError):
                raise
            log.warning("Redis refused a reply: %s", error)


class Control(control.Control):  # type: ignore[misc]  # Celery comes without types
    """Remote control with this mailbox."""

    Mailbox = Replies


class _OwnSettings(Settings):  # type: ignore[misc]  # Celery comes without types
    """Settings without the variables of the environment that Celery prefers to them."""

    broker_url = broker_read_url = broker_write_url = property(lambda self: self.first("broker_url"))
    result_backend = property(lambda self: self.first("result_backend"))


def _own(settings: Any) -> Any:
    """Return the settings of an app as `_OwnSettings`.

    Celery chooses their class, and assigning an attribute would store a setting.
    """
    object.__setattr__(settings, "__class__", _OwnSettings)
    return settings


class _OwnLoader(AppLoader):  # type: ignore[misc]  # Celery comes without types
    """A loader that reads no module of settings which the environment names."""

    def read_configuration(self, env: str = "") -> None:
        """Return nothing, as where CELERY_CONFIG_MODULE is not set."""


class App(Celery):  # type: ignore[misc]  # Celery comes without types
    """A Celery app that ignores the environment variables of other Celery programs.

    These are CELERY_BROKER_URL and its like, CELERY_RESULT_BACKEND, CELERY_CONFIG_MODULE, CELERY_LOADER and
    DJANGO_SETTINGS_MODULE.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "loader": _OwnLoader, "fixups": ()})  # unpickling passes them too
        _own(self._conf)

    def _load_config(self) -> Any:
        return _own(super()._load_config())


def install() -> None:
    """Register these transports for the Redis URL schemes of this process."""
    TRANSPORT_ALIASES.update(
        {
            "redis": f"{__name__}:Transport",
            "rediss": f"{__name__}:Transport",
            "sentinel": f"{__name__}:SentinelTransport",
        }
    )


READY = "ebb:ready:"
"""Beginning of the key of a list, by task id, that gets an element when the result is there."""

LOOK_SECONDS = 1.0
"""Time after which a client looks for a result without a mark: workers of earlier versions set none."""

LEAST_SECONDS = 0.01
"""Redis would wait forever for a time that it rounds to 0."""

STORE_RESULT = """
    local known = redis.call('get', KEYS[1])
    if known and string.sub(known, 1, #ARGV[3]) == ARGV[3] then return end
    redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
    redis.call('publish', KEYS[1], ARGV[1])
    if ARGV[4] == '1' then
        redis.call('rpush', KEYS[2], 1)
        redis.call('expire', KEYS[2], ARGV[2])
    end
"""

SUCCEEDED = '{"status": "SUCCESS"'
"""Beginning of the result of a task that succeeded, in JSON as kombu writes it."""

MOST_LATE_BYTES = 16 * 2**10
"""Maximum size of what was read for a caller who no longer waits."""


class _InOneTrip:
    """Stores results by a script, on connections that are kept alive, for which Celery has no setting."""

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.connparams |= KEEPALIVE

    def _store_result(
        self: Any, task_id: str, result: Any, state: str, traceback: Any = None, request: Any = None, **_: Any
    ) -> Any:
        """Store and publish a result, unless the task succeeded before; in place of one that is too large, an error.

        A large result of a read is dropped if its caller no longer waits: it would stay in Redis until it expires.
        """
        meta = self._get_result_meta(result=result, state=state, traceback=traceback, request=request)
        seconds = math.ceil(self.failure_expires if state == FAILURE else self.expires)
        stored = self.encode(meta | {"task_id": task_id})
        try:
            if state == SUCCESS:
                check_size(len(stored))
        except InvalidInputError as error:
            return self._store_result(task_id, self.prepare_exception(error), FAILURE, request=request)
        if state == SUCCESS and len(stored) > MOST_LATE_BYTES and self._is_late_read(request):
            return result
        keys, is_ready = (self.get_key_for_task(task_id), READY + task_id), int(state in READY_STATES)
        self.ensure(self.client.eval, (STORE_RESULT, len(keys), *keys, stored, seconds, SUCCEEDED, is_ready))
        return result

    def _is_late_read(self: Any, request: Any) -> bool:
        """Return whether a task only reads, and its caller's deadline has passed."""
        operation = find(getattr(request, "task", None) or "")
        if operation is None or operation.scope != "read":
            return False
        return has_passed(getattr(request, UNTIL, None), self.app.server_clock)


class Backend(_InOneTrip, celery_redis.RedisBackend):  # type: ignore[misc]  # Celery comes without types
    """Results in one Redis."""


class SentinelBackend(_InOneTrip, celery_redis.SentinelBackend):  # type: ignore[misc]  # Celery comes without types
    """Results in a Redis found through Sentinels."""

    def _get_sentinel_instance(self, **params: Any) -> Any:
        return ask_once(super()._get_sentinel_instance(**params))


BACKENDS = {
    "redis": f"{__name__}:Backend",
    "rediss": f"{__name__}:Backend",
    "sentinel": f"{__name__}:SentinelBackend",
}
"""Backends by the scheme of a URL, in place of Celery's."""


def take_result(backend: Any, task_id: str, seconds: float, *, is_shared: bool = False) -> dict[str, Any] | None:
    """Wait for the result of a task, remove it and return it, decoded; None if it does not come within `seconds`.

    A success that callers share stays for the others until it expires; each of them has sent the task.
    """
    deadline, keys = time.monotonic() + seconds, (backend.get_key_for_task(task_id), READY + task_id)
    while (left := deadline - time.monotonic()) > 0:
        is_ready = _await_mark(backend, keys[1], max(min(left, LOOK_SECONDS), LEAST_SECONDS))
        stored = backend.ensure(backend.client.get, keys[:1])
        found: dict[str, Any] = {} if stored is None else backend.decode(stored)
        if found.get("status") in READY_STATES:
            with suppress(RedisError):  # it then expires
                if is_shared and found["status"] == SUCCESS:
                    _mark_again(backend, keys[1])
                else:
                    backend.client.delete(*keys)
            return found
        if is_ready and stored is None and not is_shared:  # an erasure dropped it
            return None
    return None


def drop_failure(backend: Any, task_id: str) -> None:
    """Remove the error of an earlier delivery, so that it does not answer a caller who sends the task again."""
    keys = backend.get_key_for_task(task_id), READY + task_id
    stored = backend.ensure(backend.client.get, keys[:1])
    if stored is not None and backend.decode(stored).get("status") == FAILURE:
        backend.client.delete(*keys)


def _mark_again(backend: Any, mark: str) -> None:
    with backend.client.pipeline() as pipeline:
        pipeline.delete(mark)  # the task may have left one more
        pipeline.rpush(mark, 1)
        pipeline.expire(mark, math.ceil(backend.expires))
        pipeline.execute()


def _await_mark(backend: Any, mark: str, seconds: float) -> bool:
    try:
        return backend.ensure(backend.client.blpop, (mark, seconds)) is not None
    except ResponseError as error:
        if not str(error).startswith("UNBLOCKED"):
            raise
        return False  # the server is a replica now
