"""Beat goes on by the time that it is, whatever its clock said before."""

import dbm
import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shelve import Shelf
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from celery import Celery

from workers.programs import Scheduler


@pytest.fixture
def app() -> Iterator[Celery]:
    with Celery(broker="memory://", set_as_current=False) as app:
        app.conf.beat_schedule = {
            name: {"task": name, "schedule": timedelta(seconds=seconds)}
            for name, seconds in (("one", 30), ("other", 60))
        }
        yield app


@pytest.fixture
def scheduler(app: Celery, tmp_path: Path) -> Iterator[Scheduler]:
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


def test_an_hour_that_comes_twice_in_autumn_is_no_clock_that_was_set_back(scheduler: Scheduler) -> None:
    zone = ZoneInfo("Europe/Berlin")
    before, after = (datetime(2026, 10, 25, *time, tzinfo=UTC).astimezone(zone) for time in ((0, 59, 50), (1, 0)))
    for entry in scheduler.schedule.values():
        entry.last_run_at, entry.schedule.nowfun = before, after.replace
    scheduler.tick()
    assert {entry.last_run_at.isoformat() for entry in scheduler.schedule.values()} == {before.isoformat()}


@pytest.mark.parametrize("rest", [b"", b"\0" * 10, b"\x80\x04\x8c\x03one."])
def test_a_schedule_file_that_was_cut_off_is_begun_anew(app: Celery, tmp_path: Path, rest: bytes) -> None:
    file = str(tmp_path / "schedule")
    Scheduler(app, schedule_filename=file).close()
    largest = max(tmp_path.iterdir(), key=lambda one: one.stat().st_size)
    largest.write_bytes(rest * (largest.stat().st_size // max(len(rest), 1)))
    for _ in range(2):
        scheduler = Scheduler(app, schedule_filename=file)
        assert {"one", "other"} <= scheduler.schedule.keys()
        scheduler.close()


def test_beat_goes_on_while_its_disk_is_full(
    app: Celery, scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = scheduler.schedule["one"].last_run_at
    with monkeypatch.context() as patch:
        patch.setattr(Shelf, "__setitem__", _refuse)
        scheduler.schedule["one"].last_run_at += timedelta(hours=1)
        scheduler.sync()
    assert scheduler.schedule["one"].last_run_at == before + timedelta(hours=1)
    scheduler.sync()
    again = Scheduler(app, schedule_filename=str(tmp_path / "schedule"))
    assert again.schedule["one"].last_run_at == before + timedelta(hours=1)
    again.close()


def test_another_file_that_is_given_as_the_schedule_is_not_lost(app: Celery, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("Buy a lantern.")
    Scheduler(app, schedule_filename=str(notes)).close()
    for file in tmp_path.glob("notes.txt*[!d]"):
        file.unlink()
    notes.write_bytes(b"\0" * 10)  # a schedule that a full disk has cut off
    Scheduler(app, schedule_filename=str(notes)).close()
    assert (tmp_path / "notes.txt.damaged").read_text() == "Buy a lantern."


def test_a_schedule_that_is_a_device_is_refused_and_stays(app: Celery, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "device")
    with patch("shelve.open", side_effect=dbm.error[0]("of no known type")), pytest.raises(SystemExit) as ended:
        Scheduler(app, schedule_filename=str(tmp_path / "device"))
    assert str(ended.value).endswith("/device cannot be used: of no known type.")
    assert (tmp_path / "device").is_fifo()


def test_a_schedule_file_that_cannot_be_made_is_one_message(app: Celery, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"ebb: The schedule file .*/there/is cannot be used: .*No such file"):
        Scheduler(app, schedule_filename=str(tmp_path / "there" / "is"))


def _refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
