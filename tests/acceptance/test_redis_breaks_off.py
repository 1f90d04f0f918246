"""Connections to Redis that break off: between a task's commit and its answer, and while an import waits."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import redis
import server_process
from live_system import LiveSystem, eventually

from api import archive_import
from api.archive_import import import_file
from api.client import Client
from api.up import servers
from workers.coordination import signals
from workers.coordination.redis import open_redis
from workers.errors import UnavailableError
from workers.queues import length_of

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

FOREVER_MS = 600_000
STONE = "A stone lies in the well."
WAITS = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@contextmanager
def broken_off_after_the_commit(system: LiveSystem, commits: str) -> Iterator[None]:
    """Break off the connection to Redis of the task that is sent within the block, once `commits` finds what it wrote.

    Redis stops to write, so the task is held up at its first write to Redis after its commit.
    """
    keys = system.own_keys
    with psycopg.connect(system.database_url) as db:
        db.execute("lock table activity in share mode")
        yield
        eventually(lambda: system.rows(WAITS), "it is about to write")
        keys.execute_command("CLIENT", "PAUSE", FOREVER_MS, "WRITE")
    try:
        eventually(lambda: system.rows(commits), "it has committed")
        held_up = eventually(lambda: _held_up(keys), "it is held up")
        for one in held_up:
            keys.client_kill_filter(_id=one)
    finally:
        keys.execute_command("CLIENT", "UNPAUSE")


def _held_up(keys: redis.Redis) -> list[str]:
    own = str(keys.connection_pool.connection_kwargs["db"])
    return [one["id"] for one in keys.client_list() if one["db"] == own and "b" in one["flags"]]


def test_a_write_whose_connection_to_redis_breaks_off_after_its_commit_is_answered_as_done(idle: LiveSystem) -> None:
    idle.start("worker")
    with idle.client() as client, ThreadPoolExecutor() as pool:
        with broken_off_after_the_commit(idle, "select 1 from facts"):
            stored = pool.submit(client.store, STONE)
        done = stored.result()
        assert done["action"] == "added"
        assert idle.facts("default") == [(done["id"], STONE)]


def test_a_write_is_not_answered_before_it_is_noted_so_that_no_late_delivery_repeats_it(idle: LiveSystem) -> None:
    idle.start("worker")
    with idle.client() as client, ThreadPoolExecutor() as pool:
        given, task_id = {"id": client.store(STONE)["id"], "namespace": "default"}, str(uuid4())
        with broken_off_after_the_commit(idle, "select 1 from activity where pinned_until > now()"):
            pinned = pool.submit(client.call, "memory.pin", given, 600.0, task_id=task_id)
        assert pinned.result()["id"] == given["id"]
        assert signals.done_before(idle.own_keys, task_id) is not None


@dataclass
class Restartable:
    """A Redis of a test's own."""

    server: servers.Redis
    log: Path
    running: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        command, url = self.server.command(), self.server.url()
        running = server_process.running(command, self.log, lambda: servers.redis_fault(url), signal.SIGKILL)
        self.running.enter_context(running)

    def kill(self) -> None:
        self.running.close()


@pytest.fixture
def own_redis(server_folder: Path, tmp_path: Path) -> Iterator[Restartable]:
    server = servers.Redis(data=server_folder / f"redis-{uuid4().hex}", port=servers.free_port())
    servers.prepare_redis(server)
    own = Restartable(server, tmp_path / "redis.log")
    own.start()
    yield own
    own.kill()


@pytest.fixture
def noticed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set once a client has noticed that Redis is away."""
    event, reach = threading.Event(), Client._reach

    def noticing(client: Client, act: Callable[[], object]) -> object:
        try:
            return reach(client, act)
        except UnavailableError:
            event.set()
            raise

    monkeypatch.setattr(Client, "_reach", noticing)
    return event


@pytest.mark.parametrize("scope", [{"everywhere": True}, {"namespace": "default"}])
def test_a_call_that_may_take_minutes_is_answered_after_redis_was_killed_and_restarted(
    database_url: str, own_redis: Restartable, tmp_path: Path, noticed: threading.Event, scope: dict[str, Any]
) -> None:
    system = LiveSystem(database_url, own_redis.server.url(), tmp_path)
    with system.client() as client, ThreadPoolExecutor() as pool:
        done = pool.submit(client.call, "decay.plan", scope, 600.0)
        with open_redis(system.redis_url) as queues:
            eventually(lambda: length_of(queues, "maintenance"), "it waits")
        own_redis.kill()
        noticed.wait()
        own_redis.start()
        system.start("maintenance")
        assert done.result()["processed"] == 0
    system.stop()


def test_an_import_goes_on_after_redis_was_killed_and_restarted(
    database_url: str,
    own_redis: Restartable,
    tmp_path: Path,
    noticed: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_import, "WINDOW", 25)
    system = LiveSystem(database_url, own_redis.server.url(), tmp_path)
    file = tmp_path / "facts.jsonl"
    file.write_text("".join(json.dumps({"text": f"Stone {number} is grey."}) + "\n" for number in range(200)))
    with system.client() as client, ThreadPoolExecutor() as pool, file.open("rb") as opened:
        done = pool.submit(import_file, client, opened, None, print, lambda _: None)
        with open_redis(system.redis_url) as queues:
            eventually(lambda: length_of(queues, "store") > 1, "some batches wait")
        own_redis.kill()
        noticed.wait()
        own_redis.start()
        system.start("all")
        assert done.result().added == 200
    assert len(system.facts("default")) == 200
    system.stop()
