"""Standard cron schedules for Celery, with 7 as Sunday and with day of month and weekday as alternatives."""

from datetime import datetime, timedelta
from typing import Any

from celery.schedules import crontab

SUNDAY = 7


class Schedule(crontab):  # type: ignore[misc]  # Celery comes without types
    """Celery's schedule, corrected: Celery's own is due again and again in the hour that comes twice in autumn."""

    def remaining_estimate(self, last_run_at: datetime, *given: Any) -> timedelta:
        """Return the time until the next run, counted from an hour later if Celery places it before the last run."""
        left: timedelta = super().remaining_estimate(last_run_at, *given)
        if left.total_seconds() > last_run_at.timestamp() - self.now().timestamp():
            return left
        return self.remaining_estimate(last_run_at + timedelta(hours=1), *given)


def crontabs(given: str) -> list[Schedule]:
    """Return Celery schedules that together are due when a cron schedule of five fields is.

    If both the day of the month and the weekday are limited, cron runs on days that match either: that takes two
    schedules.

    Raises:
        ValueError: it does not have five fields, or a value is out of range.
        ParseException: a field cannot be parsed.
    """
    fields = given.split()
    if len(fields) != len(("minute", "hour", "day", "month", "weekday")):
        raise ValueError("it has not five fields")
    minute, hour, day, month, weekday = fields
    either = not day.startswith("*") and not weekday.startswith("*")
    weekday = ",".join(map(_from_sunday, weekday.split(",")))
    days = [(day, "*"), ("*", weekday)] if either else [(day, weekday)]
    return [
        Schedule(minute, hour, day_of_week=weekdays, day_of_month=month_days, month_of_year=month)
        for month_days, weekdays in days
    ]


def _from_sunday(weekdays: str) -> str:
    """Return one of the parts between commas without 7, which Celery does not accept."""
    days, _, step = weekdays.partition("/")
    first, _, last = days.partition("-")
    if first == str(SUNDAY):
        return weekdays.replace(first, "0", 1)
    if last != str(SUNDAY) or not first.isdecimal():
        return weekdays
    every = int(step) if step.isdecimal() and int(step) else 1
    return ",".join(str(one % SUNDAY) for one in range(int(first), SUNDAY + 1, every))
