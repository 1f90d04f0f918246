"""All workers at one Redis use one database: those of another would store a part of what is sent there."""

from pathlib import Path

import pytest
from databases import new_database
from live_system import LiveSystem, eventually

from api.up import servers
from workers.coordination import signals
from workers.coordination.redis import clock
from workers.storage import schema

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_a_worker_of_another_database_does_not_start_and_the_doctor_names_the_databases(
    idle: LiveSystem, postgres: servers.Postgres, tmp_path: Path
) -> None:
    idle.start("all")
    assert "all@tests" in idle.ebb("doctor").stdout
    with new_database(postgres) as url:
        schema.apply(url)
        other = LiveSystem(url, idle.redis_url, tmp_path / "other")
        other.folder.mkdir()
        try:
            with pytest.raises(AssertionError, match=r"others at the same Redis use test_\w+ \(schema public, made "):
                other.start("worker")
        finally:
            other.stop()
        said = other.ebb("doctor")
    assert said.returncode == 1
    assert "and EBB_DATABASE_URL leads to another database" in " ".join(said.stdout.split())


def test_a_worker_starts_at_the_redis_of_workers_of_another_database_that_have_ended(idle: LiveSystem) -> None:
    before = clock(idle.own_keys).timestamp() - signals.ALIVE_SECONDS + 3.0
    signals.note_heartbeat(idle.own_keys, "ended@tests", ["recall"], before, "another database")
    idle.start("worker")
    now = clock(idle.own_keys).timestamp()
    assert "another database" not in signals.databases_of_workers(idle.own_keys, now)


def test_a_heartbeat_of_a_wrong_clock_keeps_no_worker_from_starting(idle: LiveSystem) -> None:
    now = clock(idle.own_keys).timestamp()
    signals.note_heartbeat(idle.own_keys, "ahead@tests", ["recall"], now + 3_600, "another database")
    assert signals.databases_of_workers(idle.own_keys, now) == {}


def test_a_worker_that_is_stopped_delays_no_worker_of_another_database(idle: LiveSystem) -> None:
    def now() -> float:
        return clock(idle.own_keys).timestamp()

    idle.start("worker")
    eventually(lambda: signals.databases_of_workers(idle.own_keys, now()), "the worker has sent a heartbeat")
    (worker,) = idle.workers.values()
    worker.terminate()
    worker.wait()
    assert signals.databases_of_workers(idle.own_keys, now()) == {}
