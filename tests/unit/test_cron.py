"""Cron schedules follow the standard where Celery's differ."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery import Celery

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


@pytest.mark.parametrize(
    ("schedule", "begin", "times"),
    [
        ("30 2 * * *", "2027-03-28", ["03-28T03:30+02:00", "03-29T02:30+02:00"]),
        ("30 2 * * *", "2026-10-25", ["10-25T02:30+02:00", "10-26T02:30+01:00"]),
        ("0 1-3 * * *", "2026-10-25", ["10-25T01:00+02:00", "10-25T02:00+02:00", "10-25T03:00+01:00"]),
    ],
)
def test_a_time_that_the_clock_leaves_out_is_an_hour_later_and_one_that_comes_twice_counts_once(
    schedule: str, begin: str, times: list[str]
) -> None:
    zone, (when,) = ZoneInfo("Europe/Berlin"), crontabs(schedule)
    now = last = datetime.fromisoformat(f"{begin}T00:00:00Z") - timedelta(hours=2)
    due = []
    with Celery(set_as_current=False) as when.app:
        when.app.conf.timezone = zone.key
        when.nowfun = lambda: now.astimezone(zone)
        while len(due) < len(times):
            if when.is_due(last.astimezone(zone)).is_due:
                due.append(now.astimezone(zone).isoformat(timespec="minutes")[5:])
                last = now
            now += timedelta(minutes=1)
    assert due == times


def test_one_that_begins_in_the_second_of_two_equal_hours_is_due_the_next_day() -> None:
    zone, (when,) = ZoneInfo("Europe/Berlin"), crontabs("30 2 * * *")
    begin = datetime.fromisoformat("2026-10-25T01:10:00Z")
    with Celery(set_as_current=False) as when.app:
        when.app.conf.timezone = zone.key
        when.nowfun = lambda: (begin + timedelta(minutes=1)).astimezone(zone)
        assert when.is_due(begin.astimezone(zone)) == (False, (24 * 60 + 19) * 60)
