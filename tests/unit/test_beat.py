"""Beat goes on by the time that it is, whatever its clock said before."""

import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shelve import Shelf
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


def test_a_beat_that_is_killed_has_written_when_it_sent_its_tasks(app: Celery, tmp_path: Path) -> None:
    file = str(tmp_path / "schedule")
    if not (pid := os.fork()):
        killed = Scheduler(app, schedule_filename=file)
        killed.schedule["one"].last_run_at -= timedelta(hours=1)
        killed.sync()
        os._exit(0)
    os.waitpid(pid, 0)
    again = Scheduler(app, schedule_filename=file)
    assert again.schedule["one"].last_run_at < datetime.now(UTC) - timedelta(minutes=59)
    again.close()


def test_another_file_that_is_given_as_the_schedule_is_not_lost(app: Celery, tmp_path: Path) -> None:
    notes, damaged = tmp_path / "notes", tmp_path / "notes.dir"
    for file in (notes, damaged):
        file.write_text("Buy a lantern.")
    Scheduler(app, schedule_filename=str(notes)).close()
    assert (notes.read_text(), (tmp_path / "notes.dir.damaged").read_text()) == ("Buy a lantern.",) * 2
    damaged.write_bytes(b"\0" * 10)  # an index that a full disk has cut off
    Scheduler(app, schedule_filename=str(notes)).close()
    assert (tmp_path / "notes.dir.damaged").read_text() == "Buy a lantern."


def test_a_folder_in_place_of_the_schedule_is_refused_and_stays(app: Celery, tmp_path: Path) -> None:
    (tmp_path / "schedule.dat").mkdir()
    with pytest.raises(SystemExit, match=r"/schedule cannot be used: .*Is a directory"):
        Scheduler(app, schedule_filename=str(tmp_path / "schedule"))
    assert (tmp_path / "schedule.dat").is_dir()


def test_a_schedule_file_that_cannot_be_made_is_one_message(app: Celery, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"ebb: The schedule file .*/there/is cannot be used: .*No such file"):
        Scheduler(app, schedule_filename=str(tmp_path / "there" / "is"))


def _refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
