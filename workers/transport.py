"""Kombu's Redis transports, with channels that report a closed connection as a connection error.

When the server is away, kombu may close a channel twice; when a task ends after a reconnect, it acknowledges its
message on the old channel. Both access a connection that no longer exists, which raises an `AttributeError` and ends
Celery. After a connection error, Celery reconnects instead.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ConnectionError as RedisConnectionError


class _Channel(redis.Channel):
    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        _check_open(self)
        found: dict[str, Any] = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        return found


class _SentinelChannel(redis.SentinelChannel):
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
