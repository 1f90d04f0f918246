"""Beat sends every scheduled task; no cron is needed."""

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

PROGRAM = """
import json
from workers.celery import app
app.loader.import_default_modules()
sent = app.conf.beat_schedule
print(json.dumps({
    name: when.total_seconds()
    if hasattr(when := entry["schedule"], "total_seconds")
    else [str(when), str(when.tz), app.tasks[entry["task"]].name]
    for name, entry in sent.items()
}))
"""


@cache
def schedule(**settings: str) -> dict[str, Any]:
    """Return beat's schedule: intervals in seconds, or times with their time zone."""
    environment = os.environ | {"EBB_REDIS_URL": "redis://unused/0"} | settings
    program = [sys.executable, "-c", PROGRAM]
    answer = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    seconds: dict[str, Any] = json.loads(answer.stdout)
    return seconds


CHANGED = {
    "EBB_DECAY_INTERVAL_MINUTES": "7",
    "EBB_FOLDERS": "/srv/notes",
    "EBB_FOLDER_MINUTES": "2",
    "EBB_RELATION_SCHEDULE": "15 3 * * *",
    "EBB_TIMEZONE": "Europe/Berlin",
}


def test_a_prune_is_sent_every_hour_and_a_pass_as_often_as_set() -> None:
    sent = schedule(**CHANGED)
    assert (sent["decay.prune"], sent["decay.plan"]) == (3_600, 420)


def test_registered_folders_are_read_where_workers_may_read_any() -> None:
    assert "memory.read_folders" not in schedule()
    assert schedule(**CHANGED)["memory.read_folders"] == 120


def test_relations_fade_every_sunday_at_half_past_four_by_default() -> None:
    assert schedule()["relations.decay"] == ["<crontab: 30 4 * * 0 (m/h/dM/MY/d)>", "UTC", "relations.decay"]
    sent = schedule(**CHANGED)["relations.decay"]
    assert sent == ["<crontab: 15 3 * * * (m/h/dM/MY/d)>", "Europe/Berlin", "relations.decay"]


def test_a_schedule_by_days_and_weekdays_is_due_on_either() -> None:
    sent = schedule(EBB_RELATION_SCHEDULE="30 4 1,15 * 7")
    assert sent["relations.decay"][0] == "<crontab: 30 4 1,15 * * (m/h/dM/MY/d)>"
    assert sent["relations.decay by weekday"][0] == "<crontab: 30 4 * * 0 (m/h/dM/MY/d)>"


def test_without_relation_decay_relations_fade_only_on_request() -> None:
    assert "relations.decay" not in schedule(EBB_RELATION_DECAY="false")


def test_everything_is_consolidated_daily() -> None:
    assert schedule()["memory.consolidate_all"] == 86_400
