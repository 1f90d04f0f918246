"""The API says that it lives while every one of its threads waits for a worker."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from live_api import serving
from live_system import LiveSystem, eventually

from api.http.app import THREADS

pytestmark = pytest.mark.acceptance


def test_it_is_known_that_the_api_lives_while_all_its_threads_wait(idle: LiveSystem) -> None:
    """No worker runs until the end: each request waits."""
    idle.own_keys.hset("ebb:keys", "copied", "1")
    with serving(idle) as api, ThreadPoolExecutor(2 * THREADS) as waiting:
        wait = {"timeout": 120}
        pending = [
            waiting.submit(api.post, "/memory/recall", params=wait, json={"query": "key"}, timeout=240)
            for _ in range(THREADS)
        ]
        try:
            with redis.Redis.from_url(idle.redis_url) as queues:
                eventually(lambda: queues.llen("recall") >= THREADS, "all threads wait", 90)
            assert api.get("/health/live").json() == {"status": "live"}
            assert not any(one.done() for one in pending)
        finally:
            idle.start("worker")
