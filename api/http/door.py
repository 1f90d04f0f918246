"""The state that all requests of one API process share, above all connections to Redis."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from fastapi import Request

from api.client import Client
from api.http.limits import Turns
from api.transport import AWAY, HANGS_SECONDS
from workers.coordination import key_ring, signals
from workers.coordination.key_ring import Found
from workers.coordination.redis import explain, open_redis, own_keys
from workers.errors import BusyError, SettingsError, UnavailableError
from workers.queues import QUEUES, length_of, route
from workers.settings import Settings

if TYPE_CHECKING:
    from api.http.tokens import Tokens


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is loopback."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


@contextmanager
def reaching_redis() -> Iterator[None]:
    """Raise `UnavailableError` if Redis does not answer within the block."""
    try:
        yield
    except AWAY as error:
        raise UnavailableError(explain(error)) from None


LENGTH_SECONDS = 0.2
"""Seconds for which a queue's length is cached."""

KEYS_SECONDS = 5.0
"""Seconds that workers may take to fill an empty key ring."""


class Door:
    """The settings, the client that all requests send through, and Ebb's own keys in Redis.

    Raises:
        SettingsError: EBB_REDIS_URL is not set.
    """

    def __init__(self, settings: Settings) -> None:
        if not settings.redis_url:
            raise SettingsError("EBB_REDIS_URL is not set. Set it, or let `ebb up` start servers of its own.")
        self.settings = settings
        self.client = Client(settings.redis_url, settings.namespace)
        self.redis = own_keys(settings.redis_url, answer_seconds=HANGS_SECONDS)
        """Connections to Ebb's own data."""
        self.broker = open_redis(settings.redis_url, answer_seconds=HANGS_SECONDS)
        """Connections to the queues."""
        self.turns = Turns(settings.max_requests, settings.max_outbox_bytes)
        """The queue for threads."""
        self.known_health: tuple[float, dict[str, str]] = (float("-inf"), {})
        self.checking = threading.Lock()
        self._lengths: dict[str, tuple[float, int]] = {}
        self._others: dict[str, Door] = {}

    @cached_property
    def tokens(self) -> "Tokens":
        """Return what verifies tokens of authorization servers."""
        from api.http.tokens import Tokens  # noqa: PLC0415 - few systems have such servers

        return Tokens(self.settings)

    def of(self, namespace: str) -> "Door":
        """Return the door to the group of shards of a namespace."""
        return self._at(self.settings.broker_of(namespace))

    def _at(self, redis_url: str) -> "Door":
        if redis_url == self.settings.redis_url:
            return self
        if redis_url not in self._others:
            self._others[redis_url] = Door(self.settings.model_copy(update={"redis_url": redis_url}))
        return self._others[redis_url]

    def look_up(self, digest: str | None) -> Found:
        """Return the grant of the key with a digest, from the own group of shards or, if its Redis is away, another.

        Raises:
            UnavailableError: no Redis and no workers answer, so no key can be checked.
        """
        try:
            return self.look_up_here(digest)
        except UnavailableError:
            for url in self.settings.broker_urls:
                if url != self.settings.redis_url:
                    with suppress(UnavailableError):
                        return self._at(url).look_up_here(digest)
            raise

    def look_up_here(self, digest: str | None) -> Found:
        """Return the grant of the key with a digest; if Redis has lost the keys, workers publish them again."""
        with reaching_redis():
            found = key_ring.look_up(self.redis, digest)
            if not found.copied:
                self.client.call("memory.publish_keys", {}, KEYS_SECONDS)
                found = key_ring.look_up(self.redis, digest)
        return found

    def refuse_backlog(self, task: str) -> None:
        """Raise `BusyError` if the queue of a task is longer than EBB_MAX_QUEUE."""
        queue = route(task)["queue"]
        length = self.waiting(queue)
        if length > self.settings.max_queue:
            raise BusyError(
                f"{length} tasks wait in the queue {queue!r}, more than EBB_MAX_QUEUE={self.settings.max_queue}; "
                "ask again later, and start more workers if this lasts."
            )

    def waiting(self, queue: str) -> int:
        """Return the length of a queue, cached for `LENGTH_SECONDS`."""
        now = time.monotonic()
        at, length = self._lengths.get(queue, (float("-inf"), 0))
        if now - at > LENGTH_SECONDS:
            with reaching_redis():
                length = length_of(self.broker, queue)
            self._lengths[queue] = (now, length)
        return length

    def lanes(self) -> list[dict[str, Any]]:
        """Return each queue with its name, length, and number of workers."""
        alive = signals.live_workers(self.redis, self.client.seconds())
        return [
            {"name": queue, "waiting": self.waiting(queue), "workers": sum(queue == own for own, _ in alive)}
            for queue in QUEUES
        ]

    def check(self) -> None:
        """Refuse to listen on another address than loopback without keys.

        Raises:
            SettingsError: another host than loopback needs a key, or an extra is missing.
            UnavailableError: the keys cannot be read.
        """
        if self.settings.oauth_issuers:
            _ = self.tokens
        elif not is_loopback(self.settings.host) and not self.look_up(None).any_key:
            raise SettingsError(
                f"EBB_HOST={self.settings.host!r} is not allowed without keys: anyone there could read and change "
                "all memory. Make one with `ebb keys create`, or listen on 127.0.0.1."
            )

    def prepare(self) -> None:
        """Make the Celery apps of all groups of shards: the first request would make one on the event loop."""
        for url in self.settings.broker_urls:
            self._at(url).client.prepare()

    def close(self) -> None:
        """Close the connections."""
        for other in self._others.values():
            other.close()
        self.client.close()
        self.redis.close()
        self.broker.close()


def door_of(request: Request) -> Door:
    """Return the shared state for a request."""
    return request.app.state.door
