"""Threads: run a function in a thread beside the caller, or for a limited time."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Lock, Thread
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

    If the block fails, the function is not waited for; it must end by itself.
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


def within(seconds: float, function: Callable[[], Answer]) -> Answer:
    """Return what a function returns, or raise what it raises, within so many seconds.

    A function that takes longer goes on in a daemon thread, which does not keep the process from ending; it must have a
    time limit of its own. Looking up a host name and connecting count, which an HTTP client limits one by one.

    Raises:
        TimeoutError: the function has not returned yet.
    """
    done: SimpleQueue[Answer | BaseException] = SimpleQueue()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.put(function())
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
            failed.append(error)
            done.put(error)

    Thread(target=run, name="ebb-deadline", daemon=True).start()
    try:
        answer = done.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if failed:
        raise failed[0]
    return answer  # type: ignore[return-value]  # an exception was raised above
