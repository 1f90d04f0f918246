"""Timings: how long things took, summed up in Redis over all workers, as a histogram needs it."""

import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from redis import Redis

KEY = "ebb:timings"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
"""Upper bounds, in seconds."""

RECALL = "recall"
"""What the parts of a recall begin with; what follows is the part."""

WRITE = "write"
"""From when a write was sent until it could be read."""

Histogram = tuple[list[int], float]
"""How many observations up to each bound, as Prometheus counts them, and the sum of all."""


def observe(redis: Redis, observations: Iterable[tuple[str, float]]) -> None:
    """Add what took so many seconds."""
    with redis.pipeline(transaction=False) as pipeline:
        for what, seconds in observations:
            taken = max(0.0, seconds)
            pipeline.hincrby(KEY, f"{what}|{bisect_left(BUCKETS, taken)}")
            pipeline.hincrbyfloat(KEY, f"{what}|sum", taken)
        pipeline.execute()


def read(redis: Redis) -> dict[str, Histogram]:
    """Return all that was observed, by what it was."""
    found: dict[bytes, bytes] = redis.hgetall(KEY)  # type: ignore[assignment]  # redis types answers for async too
    counts: dict[str, list[int]] = {}
    sums: dict[str, float] = {}
    for name, value in found.items():
        what, _, place = name.decode().rpartition("|")
        if place == "sum":
            sums[what] = float(value)
        else:
            counts.setdefault(what, [0] * len(BUCKETS))[int(place)] = int(value)
    return {what: (_cumulated(each), sums.get(what, 0.0)) for what, each in counts.items()}


def quantile(counts: list[int], share: float) -> float | None:
    """Return the value below which that share lies, as if each bucket were evenly filled; none where there is none.

    What lies beyond the last finite bound counts as that.
    """
    if not counts or not counts[-1]:
        return None
    wanted, below, begins = share * counts[-1], 0, 0.0
    for bound, count in zip(BUCKETS, counts, strict=True):
        if count >= wanted:
            return begins if math.isinf(bound) else begins + (bound - begins) * (wanted - below) / (count - below)
        below, begins = count, bound
    return begins


def _cumulated(counts: list[int]) -> list[int]:
    total, upto = 0, []
    for count in counts:
        total += count
        upto.append(total)
    return upto


_laps: list[tuple[str, float]] = []
"""Of the one task that this process works on."""


@contextmanager
def timed(part: str) -> Iterator[None]:
    """Note how long the block takes."""
    began = time.perf_counter()
    try:
        yield
    finally:
        _laps.append((part, time.perf_counter() - began))


def take() -> list[tuple[str, float]]:
    """Return (part, seconds) of all that was timed since the last call, and reset."""
    taken = list(_laps)
    _laps.clear()
    return taken
