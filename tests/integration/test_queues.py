"""The age of queues, by which workers are scaled."""

import time

import pytest
from redis import Redis

from api.client import Client
from workers.coordination.shares import CLASSES
from workers.queues import age_of


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
