"""Regrets: how often what was asked for had ended by itself, counted in Redis by namespace."""

from redis import Redis

KEY = "ebb:regrets"


def count(redis: Redis, namespace: str) -> None:
    """Count a question whose best answer lies in deep memory."""
    redis.hincrby(KEY, namespace)


def read(redis: Redis, namespace: str) -> int:
    """Return how many of them a namespace had."""
    return int(redis.hget(KEY, namespace) or 0)


def total(redis: Redis) -> int:
    """Return how many of them there were in all."""
    return sum(map(int, redis.hvals(KEY)))
