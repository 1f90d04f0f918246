"""Kombu's Redis transports and Celery's remote control, which survive closed connections and a full Redis.

When the server is away, kombu may close a channel twice; when a task ends after a reconnect, it acknowledges its
message on the old channel. Both access a connection that no longer exists, which raises an `AttributeError` and ends
Celery. After a connection error, Celery reconnects instead.

A full Redis refuses kombu's record of a delivered message, which would end Celery as well, and the replies of workers
that are asked whether they run.

Channels keep their client: kombu creates one per command, which copies a table of a hundred entries and takes a sixth
of the CPU of a worker's main process for an empty task.
"""

import logging
from typing import Any

from celery.app import control
from kombu.exceptions import OperationalError
from kombu.pidbox import Mailbox
from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from workers.coordination.redis import is_refusal

log = logging.getLogger(__name__)


class _QoS(redis.QoS):
    """Kombu's records of delivered messages, from which they are redelivered if this worker dies."""

    def append(self, message: Any, delivery_tag: str) -> None:
        """Record a message; if Redis has no room for the record, deliver it anyway, since work frees memory.

        If the worker dies while processing it, a write is resent from the outbox; other callers get no answer.
        """
        try:
            super().append(message, delivery_tag)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            _check_refusal(error)
            log.warning("Redis refuses writes: a message is processed without a note of its delivery: %s", error)
            virtual.QoS.append(self, message, delivery_tag)  # type: ignore[no-untyped-call]

    def restore_visible(self, *args: Any, **options: Any) -> None:
        """Redeliver messages of dead workers; if Redis is full, at the next call."""
        try:
            super().restore_visible(*args, **options)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            _check_refusal(error)
            log.warning("Redis refuses writes: messages of dead workers wait: %s", error)


class _OwnChannel:
    """The parts that differ from kombu's channels: among others, it keeps its client while its pool is the same."""

    QoS = _QoS
    _kept: Any = None

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        _check_open(self)
        return super()._connparams(asynchronous)  # type: ignore[misc]

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:  # type: ignore[attr-defined]
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept


class _Channel(_OwnChannel, redis.Channel):
    pass


class _SentinelChannel(_OwnChannel, redis.SentinelChannel):
    pass


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
            super()._publish_reply(*arguments, **options)  # type: ignore[no-untyped-call]
        except (ResponseError, OperationalError) as error:
            if not isinstance(error.__cause__ or error, ResponseError):
                raise
            log.warning("Redis refused a reply: %s", error)


class Control(control.Control):  # type: ignore[misc]  # Celery comes without types
    """Remote control with this mailbox."""

    Mailbox = Replies


def install() -> None:
    """Register these transports for the Redis URL schemes of this process."""
    TRANSPORT_ALIASES.update(
        {
            "redis": f"{__name__}:Transport",
            "rediss": f"{__name__}:Transport",
            "sentinel": f"{__name__}:SentinelTransport",
        }
    )


def _check_open(channel: Any) -> None:
    if channel.connection is None or channel.connection.client is None:
        raise RedisConnectionError("This channel's connection was closed before.")


def _check_refusal(error: ResponseError) -> None:
    if not is_refusal(error):
        raise error
