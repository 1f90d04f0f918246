"""Addresses in Redis: messages, results and Ebb's own keys each have a database of their own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import OutOfMemoryError, ReadOnlyError, RedisError, ResponseError

from workers.errors import UnavailableError

RESULTS_AFTER = 1
OWN_AFTER = 2
CONNECT_SECONDS = 5
ANSWER_SECONDS = 10
REWRITE_SECONDS = 60.0
CANNOT_SAVE = "MISCONF"


def results_url(redis_url: str) -> str:
    """Return the address of the results: the database behind that of the messages."""
    return _database_after(redis_url, RESULTS_AFTER)


class RefusedError(UnavailableError, RedisError):
    """Redis answers, but takes no writes: it is full, its disk is, or it is a replica."""


class OwnKeys(Redis):
    """Connections whose refused writes raise `RefusedError`, which says what to do."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send one command."""
        with explained():
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """Return a pipeline of commands."""
        return _Pipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


class _Pipeline(Pipeline):
    def execute(self, raise_on_error: bool = True) -> list[Any]:
        with explained():
            return super().execute(raise_on_error)


@contextmanager
def explained() -> Iterator[None]:
    """Raise `RefusedError` where Redis refuses a write."""
    try:
        yield
    except ResponseError as error:
        if not refused(error):
            raise
        raise RefusedError(trouble(error)) from None


def refused(error: BaseException) -> bool:
    """Return whether Redis answered that it takes no writes."""
    return isinstance(error, OutOfMemoryError | ReadOnlyError) or (
        isinstance(error, ResponseError) and str(error).startswith(CANNOT_SAVE)
    )


def trouble(error: BaseException) -> str:
    """Return what is the matter with Redis and what to do, for a person."""
    said = str(error).rstrip(".")
    if isinstance(error, OutOfMemoryError):
        return (
            "Redis is full and refuses writes: it has used all memory that its `maxmemory` allows. Raise that, or free "
            "memory; `ebb doctor` says how much is used. What was accepted before is kept."
        )
    if isinstance(error, ReadOnlyError):
        return f"Redis refuses writes, because it is a replica ({said}): set EBB_REDIS_URL to its primary."
    if isinstance(error, ResponseError) and said.startswith(CANNOT_SAVE):
        return f"Redis refuses writes, because it cannot save them: make room on its disk. It says: {said}."
    return f"Redis does not answer: {said}. See `ebb status`, or check EBB_REDIS_URL."


def own_keys(redis_url: str) -> Redis:
    """Return connections to the database of Ebb's own keys, opened at first use."""
    return OwnKeys.from_url(
        _database_after(redis_url, OWN_AFTER),
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=ANSWER_SECONDS,
        health_check_interval=10,
    )


def clock(redis: Redis) -> datetime:
    """Return what the server's clock shows."""
    seconds, micros = redis.time()
    return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=micros)


def drop_results(redis_url: str) -> None:
    """Forget what tasks answered that nobody has fetched; who waits for one is sent it as well, and still gets it."""
    with Redis.from_url(results_url(redis_url), socket_connect_timeout=CONNECT_SECONDS) as results:
        for key in results.scan_iter("celery-task-meta-*", count=1_000):
            results.delete(key)


def compact(redis: Redis, *, wait: bool = False) -> bool:
    """Have Redis write its file anew without what it holds no more; return whether it does, or keeps no file.

    With `wait` that is done on return, or has taken longer than a minute.
    """
    try:
        if redis.info("persistence")["aof_enabled"]:
            redis.bgrewriteaof()
        elif redis.config_get("save").get("save"):
            redis.bgsave()
    except ResponseError as error:
        return "in progress" in str(error)
    until = time.monotonic() + REWRITE_SECONDS
    while wait and time.monotonic() < until and _is_rewriting(redis):
        time.sleep(0.05)
    return True


def _is_rewriting(redis: Redis) -> bool:
    told = redis.info("persistence")
    names = ("aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress")
    return any(told.get(name) for name in names)


def _database_after(redis_url: str, distance: int) -> str:
    parts = urlsplit(redis_url)
    number = parts.path.strip("/")
    path = f"/{(int(number) if number else 0) + distance}"
    return urlunsplit(parts._replace(path=path))
