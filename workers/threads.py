"""Beside: something runs on a thread of its own while its caller does another, both waiting for the database.

A process has few such threads, begun at first use because none survives a fork.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

MOST_THREADS = 4
"""As many as there are connections in a process's pool."""

_threads: dict[int, ThreadPoolExecutor] = {}
_beginning = Lock()


@contextmanager
def beside(
    function: Callable[Given, Answer], *given: Given.args, **named: Given.kwargs
) -> Iterator[Callable[[], Answer]]:
    """Run a function beside the block; what the block is given waits for its answer, or raises what it raised.

    If the block fails, nobody waits for the function, which must have an end of its own.
    """
    running: Future[Answer] = _own_threads().submit(function, *given, **named)
    try:
        yield running.result
    finally:
        running.cancel()


def _own_threads() -> ThreadPoolExecutor:
    with _beginning:
        if os.getpid() not in _threads:
            _threads[os.getpid()] = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="ebb-beside")
        return _threads[os.getpid()]
