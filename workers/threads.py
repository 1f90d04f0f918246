"""Run a function in a thread, with a time limit."""

from collections.abc import Callable
from concurrent.futures import Future
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
    done = Future[Answer]()

    def run() -> None:
        try:
            done.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            done.set_exception(error)

    Thread(target=run, name="ebb-deadline", daemon=True).start()
    return done.result(timeout=seconds)
