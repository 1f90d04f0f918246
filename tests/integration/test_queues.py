"""The age of queues, by which workers are scaled."""

import json
import os
import subprocess
import sys
import time
from base64 import b64decode
from typing import Any

import pytest
from memory import Memory
from redis import Redis

from api.client import Client
from workers.coordination.shares import CLASSES
from workers.queues import FIRST, FURTHER, MAINTENANCE, age_of, lists_of


def test_the_age_of_a_queue_is_that_of_its_first_task_at_any_priority(redis_url: str) -> None:
    with Redis.from_url(redis_url) as broker, Client(redis_url) as client:
        assert age_of(broker, "recall", time.time()) == 0
        begun = client.seconds()
        for number, priority in enumerate(reversed(CLASSES)):
            client.send("memory.recall", {"query": '"ebb_sent_at": 1', "number": number}, priority=priority)
        sent = client.seconds()
        assert age_of(broker, "recall", sent + 100) == pytest.approx(100, abs=sent - begun + 0.01)
        assert age_of(broker, "recall", begun - 100) == 0
        assert age_of(broker, "store", sent + 100) == 0


SENT_BY_WORKERS = """
from workers import celery
celery.app.send_task("decay.apply", kwargs={"segment": 1})
name, entry = "memory.sweep_outbox", celery.app.conf.beat_schedule["memory.sweep_outbox"]
celery.app.send_task(entry["task"], kwargs=entry["kwargs"], **entry["options"])
"""


def test_what_beat_sends_is_taken_first_and_the_age_of_a_queue_is_known_whoever_sent_its_tasks(redis_url: str) -> None:
    with Redis.from_url(redis_url) as broker, Client(redis_url) as client:
        begun = client.seconds()
        environment = os.environ | {"EBB_REDIS_URL": redis_url}
        subprocess.run([sys.executable, "-c", SENT_BY_WORKERS], env=environment, check=True)
        sent = client.seconds()
        waiting = [message for key in lists_of(MAINTENANCE) for message in reversed(broker.lrange(key, 0, -1))]
        assert [json.loads(one)["headers"]["task"] for one in waiting] == ["memory.sweep_outbox", "decay.apply"]
        assert age_of(broker, MAINTENANCE, sent + 100) == pytest.approx(100, abs=sent - begun + 0.01)


A_PASS_AND_A_DRY_RUN = """
from celery.exceptions import Ignore
from workers.tasks import decay

for dry_run in (False, True):
    try:
        decay.plan.apply(kwargs={"namespace": "default", "dry_run": dry_run})
    except Ignore:
        pass
"""

ONE_PART = """
import json, sys
from workers.tasks import decay

decay.WORK_SECONDS = 0
decay.apply.apply(kwargs=json.loads(sys.argv[1]), priority=int(sys.argv[2]), throw=True)
"""


def test_all_parts_of_a_dry_run_are_taken_before_those_of_a_pass(memory: Memory) -> None:
    memory.store(*(f"Tea at {place}." for place in range(200)))
    own = memory.context.settings

    def sent_by(*program: str, **environment: str) -> dict[int, list[dict[str, Any]]]:
        environment |= {"EBB_DATABASE_URL": own.database_url, "EBB_REDIS_URL": own.redis_url}
        subprocess.run([sys.executable, "-c", *program], env=os.environ | environment, check=True)
        with Redis.from_url(own.redis_url) as broker:
            lists = dict(zip(CLASSES, lists_of(MAINTENANCE), strict=True))
            found = {priority: broker.lrange(key, 0, -1) for priority, key in lists.items()}
            broker.delete(*lists.values())
        bodies = {priority: [json.loads(one)["body"] for one in sent] for priority, sent in found.items() if sent}
        return {priority: [json.loads(b64decode(body))[1] for body in sent] for priority, sent in bodies.items()}

    parts = sent_by(A_PASS_AND_A_DRY_RUN)
    runs = {priority: {part["run"] for part in sent} for priority, sent in parts.items()}
    dry = dict(memory.rows("select id::text, dry_run from decay_runs"))
    assert {priority: [dry[run] for run in sent] for priority, sent in runs.items()} == {
        FIRST: [True],
        FURTHER: [False],
    }
    rests = [
        sent_by(ONE_PART, json.dumps(sent[0]), str(priority), EBB_DECAY_BATCH="1") for priority, sent in parts.items()
    ]
    assert rests == [{priority: [sent[0]]} for priority, sent in parts.items()]
