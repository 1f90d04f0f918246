"""Addresses in Redis: messages, results and Ebb's own keys each have a database of their own."""

from urllib.parse import urlsplit, urlunsplit

from redis import Redis

RESULTS_AFTER = 1
OWN_AFTER = 2
CONNECT_SECONDS = 5
ANSWER_SECONDS = 10


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


def _database_after(redis_url: str, distance: int) -> str:
    parts = urlsplit(redis_url)
    number = parts.path.strip("/")
    path = f"/{(int(number) if number else 0) + distance}"
    return urlunsplit(parts._replace(path=path))
