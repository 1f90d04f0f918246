"""The age of queues, by which workers are scaled."""

import json
import os
import subprocess
import sys
import time

import pytest
from redis import Redis

from api.client import Client
from workers.coordination.shares import CLASSES
from workers.queues import MAINTENANCE, age_of, lists_of


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
