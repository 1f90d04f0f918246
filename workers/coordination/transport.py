"""Kombu's Redis transports, which keep Celery running where a connection is closed or Redis refuses writes.

When the server is away, kombu may close a channel twice; when a task ends after a reconnect, it acknowledges its
message on the old channel. Both access a connection that no longer exists, which raises an `AttributeError` and ends
Celery. After a connection error, Celery reconnects instead.

A Redis that is full refuses kombu's note of a delivered message, which would end Celery as well.

Channels keep their client: kombu makes one for each command, which copies a table of a hundred entries and takes a
sixth of what a worker's main process does for an empty task.
"""

import logging
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from workers.coordination.redis import is_refusal

log = logging.getLogger(__name__)


class _QoS(redis.QoS):
    """Kombu's notes of delivered messages, by which they are delivered again if this worker dies."""

    def append(self, message: Any, delivery_tag: str) -> None:
        """Note a message; without room for the note it is delivered all the same, since work frees memory.

        If the worker dies at it, a write from the outbox is sent again, and the caller of anything else gets no answer.
        """
        try:
            super().append(message, delivery_tag)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            _check_refusal(error)
            log.warning("Redis refuses writes: a message is processed without a note of its delivery: %s", error)
            virtual.QoS.append(self, message, delivery_tag)  # type: ignore[no-untyped-call]

    def restore_visible(self, *args: Any, **options: Any) -> None:
        """Deliver again what dead workers had; without room for it, at the next call."""
        try:
            super().restore_visible(*args, **options)  # type: ignore[no-untyped-call]
        except ResponseError as error:
            _check_refusal(error)
            log.warning("Redis refuses writes: messages of dead workers wait: %s", error)


class _KeepsClient:
    """Keeps the client of a channel as long as its connections are the same."""

    _kept: Any = None

    def _create_client(self, asynchronous: bool = False) -> Any:
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[misc]
        if self._kept is None or self._kept.connection_pool is not self.pool:  # type: ignore[attr-defined]
            self._kept = super()._create_client()  # type: ignore[misc]
        return self._kept


class _Channel(_KeepsClient, redis.Channel):
    QoS = _QoS

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        _check_open(self)
        found: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        return found


class _SentinelChannel(_KeepsClient, redis.SentinelChannel):
    QoS = _QoS

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        _check_open(self)
        found: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        return found


class Transport(redis.Transport):
    """Transport over one Redis."""

    Channel = _Channel


class SentinelTransport(redis.SentinelTransport):
    """Transport over a Redis found through Sentinels."""

    Channel = _SentinelChannel


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
