"""Beat sends every scheduled task; no cron is needed."""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

PROGRAM = """
import json, os, sys
from workers import celery
from workers.settings import Settings
celery.app.loader.import_default_modules()
assert celery.app.conf.beat_schedule == celery.schedule(celery.settings)
print(json.dumps([
    {
        name: when.total_seconds()
        if hasattr(when := entry["schedule"], "total_seconds")
        else [str(when), str(when.tz), celery.app.tasks[entry["task"]].name]
        for name, entry in celery.schedule(Settings.from_environment(os.environ | given)).items()
    }
    for given in json.loads(sys.argv[1])
]))
"""

CHANGED = {
    "EBB_DECAY_INTERVAL_MINUTES": "7",
    "EBB_FOLDERS": "/srv/notes",
    "EBB_FOLDER_MINUTES": "2",
    "EBB_RELATION_SCHEDULE": "15 3 * * *",
    "EBB_TIMEZONE": "Europe/Berlin",
}
BY_DAYS = {"EBB_RELATION_SCHEDULE": "30 4 1,15 * 7"}
NO_RELATIONS = {"EBB_RELATION_DECAY": "false"}
OF_ONE_PROCESS = ([{}, BY_DAYS, NO_RELATIONS], [CHANGED])
"""Settings whose schedules one process shows; it has the first of them, and the time zone is its own."""


@cache
def schedules(process: int) -> list[dict[str, Any]]:
    """Return beat's schedule for each of the settings of a process: intervals in seconds, or times with their zone."""
    settings = OF_ONE_PROCESS[process]
    program = [sys.executable, "-c", PROGRAM, json.dumps(settings)]
    environment = os.environ | {"EBB_REDIS_URL": "redis://unused/0"} | settings[0]
    answer = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(answer.stdout)
    return found


def schedule(settings: dict[str, str] | None = None) -> dict[str, Any]:
    ((process, place),) = [
        (process, given.index(settings or {}))
        for process, given in enumerate(OF_ONE_PROCESS)
        if (settings or {}) in given
    ]
    return schedules(process)[place]


def test_a_prune_is_sent_every_hour_and_a_pass_as_often_as_set() -> None:
    sent = schedule(CHANGED)
    assert (sent["decay.prune"], sent["decay.plan"]) == (3_600, 420)


def test_registered_folders_are_read_where_workers_may_read_any() -> None:
    assert "memory.read_folders" not in schedule()
    assert schedule(CHANGED)["memory.read_folders"] == 120


def test_relations_fade_every_sunday_at_half_past_four_by_default() -> None:
    assert schedule()["relations.decay"] == ["<crontab: 30 4 * * 0 (m/h/dM/MY/d)>", "UTC", "relations.decay"]
    sent = schedule(CHANGED)["relations.decay"]
    assert sent == ["<crontab: 15 3 * * * (m/h/dM/MY/d)>", "Europe/Berlin", "relations.decay"]


def test_a_schedule_by_days_and_weekdays_is_due_on_either() -> None:
    sent = schedule(BY_DAYS)
    assert sent["relations.decay"][0] == "<crontab: 30 4 1,15 * * (m/h/dM/MY/d)>"
    assert sent["relations.decay by weekday"][0] == "<crontab: 30 4 * * 0 (m/h/dM/MY/d)>"


def test_without_relation_decay_relations_fade_only_on_request() -> None:
    assert "relations.decay" not in schedule(NO_RELATIONS)


def test_everything_is_consolidated_daily() -> None:
    assert schedule()["memory.consolidate_all"] == 86_400
