"""Threads: run a function in a thread for a limited time."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


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
