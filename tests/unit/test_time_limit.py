"""A call with a time limit: a slow one is abandoned, a fast one behaves like a direct call."""

from threading import Event

import pytest

from workers.threads import within


def test_results_and_exceptions_in_time_are_passed_on() -> None:
    error = ValueError("no")
    assert within(30, lambda: 7) == 7
    assert within(30, lambda: error) is error
    with pytest.raises(ZeroDivisionError):
        within(30, lambda: 1 // 0)


def test_a_function_that_does_not_return_is_not_waited_for() -> None:
    over = Event()
    with pytest.raises(TimeoutError):
        within(0.01, over.wait)
    over.set()
