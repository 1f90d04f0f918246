"""Beat goes on by the time that it is, whatever its clock said before."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from celery import Celery

from workers.programs import Scheduler


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[Scheduler]:
    with Celery(broker="memory://", set_as_current=False) as app:
        app.conf.beat_schedule = {
            name: {"task": name, "schedule": timedelta(seconds=seconds)}
            for name, seconds in (("one", 30), ("other", 60))
        }
        scheduler = Scheduler(app, schedule_filename=str(tmp_path / "schedule"))
        yield scheduler
        scheduler.close()


@pytest.mark.parametrize("begun", [False, True])
def test_tasks_are_sent_again_after_the_clock_was_set_back(scheduler: Scheduler, begun: bool) -> None:
    if begun:
        scheduler.tick()
    for entry in scheduler.schedule.values():
        entry.last_run_at += timedelta(days=1_825)
    assert scheduler.tick() <= 30
    assert all(entry.last_run_at <= datetime.now(UTC) for entry in scheduler.schedule.values())


def test_what_was_sent_just_now_is_not_sent_again(scheduler: Scheduler) -> None:
    last = {name: entry.last_run_at for name, entry in scheduler.schedule.items()}
    assert 0 < scheduler.tick() <= 30
    assert {name: entry.last_run_at for name, entry in scheduler.schedule.items()} == last
