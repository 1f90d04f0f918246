"""Run a function in a thread, with a time limit."""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def within(seconds: float, function: Callable[[], Answer]) -> Answer:
    """Return what a function returns, or raise what it raises, within `seconds`.

    A function that takes longer continues in a daemon thread, which does not keep the process alive, and must have a
    time limit of its own. The limit includes DNS and connecting, which an HTTP client limits separately.

    Raises:
        TimeoutError: the function has not returned yet.
    """
    done: SimpleQueue[Answer | BaseException] = SimpleQueue()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.put(function())
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
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
