"""Kombu's transports for Redis, with channels that report a closed connection as a connection error.

When the server is away, kombu may close a channel twice. When a task ends after a reconnect, it acknowledges its
message on the old channel. In both cases kombu asks for the address of a connection that no longer exists, which raises
an `AttributeError`. Celery ends with that error; after a connection error it connects again.
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
    """Messages in one Redis."""

    Channel = _Channel


class SentinelTransport(redis.SentinelTransport):
    """Messages in the Redis that Sentinels name."""

    Channel = _SentinelChannel


def install() -> None:
    """Have this process use these transports, whatever address it is given."""
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
