"""Cron schedules follow the standard where Celery's differ."""

import pytest

from workers.cron import crontabs


@pytest.mark.parametrize(
    ("weekdays", "meant"),
    [
        ("7", {0}),
        ("0", {0}),
        ("sun", {0}),
        ("5-7", {5, 6, 0}),
        ("fri-sun", {5, 6, 0}),
        ("0-7", {0, 1, 2, 3, 4, 5, 6}),
        ("1-7/2", {1, 3, 5, 0}),
        ("1,7", {1, 0}),
        ("mon-fri", {1, 2, 3, 4, 5}),
        ("*", {0, 1, 2, 3, 4, 5, 6}),
    ],
)
def test_seven_is_sunday(weekdays: str, meant: set[int]) -> None:
    (when,) = crontabs(f"30 4 * * {weekdays}")
    assert when.day_of_week == meant


def test_of_a_day_of_the_month_and_a_weekday_either_is_enough() -> None:
    by_day, by_weekday = crontabs("0 3 1,15 6 fri")
    assert (by_day.day_of_month, by_day.day_of_week) == ({1, 15}, set(range(7)))
    assert (by_weekday.day_of_month, by_weekday.day_of_week) == (set(range(1, 32)), {5})
    assert {one.minute.copy().pop() for one in (by_day, by_weekday)} == {0}
    assert all((one.hour, one.month_of_year) == ({3}, {6}) for one in (by_day, by_weekday))


@pytest.mark.parametrize("given", ["0 0 1 * *", "0 0 */2 * fri", "0 0 1 * */2"])
def test_one_that_limits_only_one_of_them_is_one_schedule(given: str) -> None:
    assert len(crontabs(given)) == 1
