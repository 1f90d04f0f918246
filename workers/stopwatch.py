"""A stopwatch: how long the parts of one task take, told once its answer is out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

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
    """Return (part, seconds) of all that was timed since the last call, and begin anew."""
    taken = list(_laps)
    _laps.clear()
    return taken
