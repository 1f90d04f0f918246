"""Standard cron schedules, which say two things otherwise than Celery: 7 is Sunday, and either of two days suffices."""

from celery.schedules import crontab

SUNDAY = 7


def crontabs(given: str) -> list[crontab]:
    """Return schedules of Celery that together are due when a cron schedule of five fields is.

    Where both the day of the month and the weekday are limited, cron runs on each day that fits one of them: that takes
    two schedules.

    Raises:
        ValueError: it has not five fields, or no such time.
        ParseException: a field cannot be read.
    """
    fields = given.split()
    if len(fields) != len(("minute", "hour", "day", "month", "weekday")):
        raise ValueError("it has not five fields")
    minute, hour, day, month, weekday = fields
    either = not day.startswith("*") and not weekday.startswith("*")
    days = [(day, "*"), ("*", weekday)] if either else [(day, weekday)]
    return [
        crontab(minute, hour, day_of_week=_from_sunday(weekdays), day_of_month=month_days, month_of_year=month)
        for month_days, weekdays in days
    ]


def _from_sunday(weekdays: str) -> str:
    """Return weekdays without 7, which Celery does not know."""
    return ",".join(_part(one) for one in weekdays.split(","))


def _part(weekdays: str) -> str:
    days, _, step = weekdays.partition("/")
    first, _, last = days.partition("-")
    if first == str(SUNDAY):
        return weekdays.replace(first, "0", 1)
    if last != str(SUNDAY) or not first.isdecimal():
        return weekdays
    every = int(step) if step.isdecimal() and int(step) else 1
    return ",".join(str(one % SUNDAY) for one in range(int(first), SUNDAY + 1, every))
