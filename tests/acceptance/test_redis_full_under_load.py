"""A system on a Redis with little memory: callers get an error, workers continue, nothing accepted is lost."""

import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
import redis
import server_process
from live_api import serving
from live_system import LiveSystem, eventually
from redis.exceptions import OutOfMemoryError

from api.up import servers
from workers.coordination import outbox
from workers.errors import BusyError

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ROOM = 16 * 1024**2
"""Bytes that the server may use beyond those with idle workers."""

MORE_THAN_IT_HOLDS = 12
"""Messages, more than a worker takes before it has settled some."""


@pytest.fixture
def small(database_url: str, server_folder: Path, tmp_path: Path) -> Iterator[LiveSystem]:
    """Return a system on its own Redis, whose memory a test may limit."""
    server = servers.Redis(data=server_folder / f"redis-{uuid4().hex}", port=servers.free_port())
    servers.prepare_redis(server)
    log = tmp_path / "redis.log"
    with server_process.running(server.command(), log, lambda: servers.redis_fault(server.url()), signal.SIGTERM):
        system = LiveSystem(database_url, server.url(), tmp_path)
        system.own_keys.hset("ebb:keys", "copied", "1")
        yield system
        system.stop()


def limited(system: LiveSystem) -> redis.Redis:
    keys = redis.Redis.from_url(system.redis_url)
    keys.config_set("maxmemory", keys.info("memory")["used_memory"] + ROOM)
    return keys


def fill(keys: redis.Redis) -> None:
    """Fill Redis to the last hundred bytes; repeat it for memory that connections release later."""
    for size in (100_000, 1_000, 100):
        try:
            while True:
                keys.rpush("ballast", "x" * size)
        except OutOfMemoryError:
            continue


def ended(system: LiveSystem) -> list[str]:
    return [name for name, worker in system.workers.items() if worker.poll() is not None]


def test_readiness_doctor_and_answers_report_a_full_redis_and_the_system_recovers(small: LiveSystem) -> None:
    small.start("worker", "maintenance")
    with serving(small) as api, limited(small) as keys:
        assert api.get("/health/ready").status_code == 200

        def refuses() -> httpx2.Response | None:
            fill(keys)
            answer = api.get("/health/ready")
            return answer if "Redis is full" in answer.json()["checks"]["redis"] else None

        ready = eventually(refuses, "it is not ready")
        assert ready is not None
        assert ready.status_code == 503
        refused = api.post("/memory/facts", params={"wait": "false"}, json={"text": "An otter."})
        assert refused.status_code in (429, 503), refused.text
        assert int(refused.headers["retry-after"]) > 0
        diagnosis = small.ebb("doctor")
        assert diagnosis.returncode == 1
        assert "nine tenths" in diagnosis.stdout or "Redis is full" in diagnosis.stdout
        assert "Traceback" not in diagnosis.stdout + diagnosis.stderr
        keys.delete("ballast")
        eventually(lambda: api.get("/health/ready").status_code == 200, "it is ready again")
        assert api.post("/memory/facts", json={"text": "An otter."}).status_code == 201
        assert ended(small) == []


def test_tasks_that_can_be_neither_done_nor_tried_again_do_not_hold_up_the_worker(small: LiveSystem) -> None:
    small.start("worker")
    with limited(small) as keys:
        small.workers["worker"].send_signal(signal.SIGSTOP)
        for _ in range(MORE_THAN_IT_HOLDS):
            small.send("memory.publish_keys", {})
        fill(keys)
        small.workers["worker"].send_signal(signal.SIGCONT)
        eventually(lambda: keys.llen("recall") == 0 or fill(keys), "the worker has taken all")
        keys.delete("ballast")
    with small.client("mira") as client:
        stored = client.store("An otter.")
    assert [stored["id"]] == [id_ for id_, _ in small.facts("mira")]


def test_workers_wait_for_a_redis_that_refuses_writes_for_lack_of_replicas(small: LiveSystem) -> None:
    def reported() -> bool:
        assert ended(small) == []
        return small.logs().count("no message can be taken") > 1

    small.start("worker", "maintenance")
    with serving(small) as api, redis.Redis.from_url(small.redis_url) as keys:
        keys.config_set("min-replicas-to-write", 1)
        eventually(reported, "both workers report it")
        assert "CPendingDeprecationWarning" not in small.logs()
        for path, body in {"facts": {"text": "An otter."}, "recall": {"query": "Where is the otter?"}}.items():
            refused = api.post(f"/memory/{path}", json=body)
            assert refused.status_code == 503
            assert "min-replicas-to-write" in refused.json()["detail"]
        diagnosis = small.ebb("doctor")
        assert "min-replicas-to-write" in diagnosis.stdout
        assert "Traceback" not in diagnosis.stdout + diagnosis.stderr
        keys.config_set("min-replicas-to-write", 0)
        eventually(lambda: api.get("/health/ready").status_code == 200, "it is ready again")
        assert api.post("/memory/facts", json={"text": "An otter."}).status_code == 201
        assert ended(small) == []


def test_a_flood_is_refused_before_redis_is_full_and_all_accepted_writes_are_stored(small: LiveSystem) -> None:
    accepted, ballast = [], {"letter": "x" * 60_000}
    with limited(small) as keys, small.client("mira") as client:
        with pytest.raises(BusyError, match=r"`maxmemory`"):  # noqa: PT012 - it ends the flood
            while True:
                accepted.append(client.store(f"Fact {len(accepted)}.", metadata=ballast, wait=False)["id"])
        small.start("worker", "maintenance")
        eventually(lambda: outbox.size(small.own_keys) == 0, "all are stored")
        assert keys.llen("store") == 0
    assert sorted(id_ for id_, _ in small.facts("mira")) == sorted(accepted)
    assert "OutOfMemoryError" not in small.logs()


def test_a_namespace_with_too_many_writes_is_answered_429_and_others_are_not(small: LiveSystem) -> None:
    outbox.publish_bounds(small.own_keys, outbox.Bounds(2, 10_000))
    with serving(small) as api:
        answers = [
            api.post("/memory/facts", params={"wait": "false"}, json={"text": f"Otter {place}."}) for place in range(3)
        ]
        assert [one.status_code for one in answers] == [202, 202, 429]
        assert "EBB_MAX_OUTBOX_WRITES=2" in answers[2].json()["detail"]
        assert int(answers[2].headers["retry-after"]) > 0
