"""Addresses in Redis: messages, results and Ebb's own keys each have a database of their own."""

import time
from urllib.parse import urlsplit, urlunsplit

from redis import Redis
from redis.exceptions import ResponseError

RESULTS_AFTER = 1
OWN_AFTER = 2
CONNECT_SECONDS = 5
ANSWER_SECONDS = 10
REWRITE_SECONDS = 60.0


def results_url(redis_url: str) -> str:
    """Return the address of the results: the database behind that of the messages."""
    return _database_after(redis_url, RESULTS_AFTER)


def own_keys(redis_url: str) -> Redis:
    """Return connections to the database of Ebb's own keys, opened at first use."""
    return Redis.from_url(
        _database_after(redis_url, OWN_AFTER),
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=ANSWER_SECONDS,
        health_check_interval=10,
    )


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
