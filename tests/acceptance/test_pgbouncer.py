"""The life of facts through PgBouncer in transaction mode, with four sessions for all clients."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from live_system import LiveSystem, eventually
from pgbouncer import PROGRAM, pgbouncer, pooled

from api.up import servers
from workers.admin import shard_moves
from workers.context import Context
from workers.errors import SettingsError
from workers.settings import Settings
from workers.storage import schema
from workers.storage.connection import SEARCH, close_pools, connect, reading, snapshot, transaction

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="needs PgBouncer: apt-get install pgbouncer"),
]

SETTINGS = {"plan_cache_mode": "force_custom_plan", "statement_timeout": "55s"} | SEARCH


@pytest.fixture(scope="module")
def port(postgres: servers.Postgres, server_folder: Path) -> Iterator[int]:
    with pgbouncer(postgres, server_folder / "pgbouncer") as port:
        yield port
        close_pools()


def test_a_transaction_has_its_settings_and_leaves_none_behind(database_url: str, port: int) -> None:
    url = pooled(database_url, port)
    for reads in (transaction, reading):
        with reads(url) as db:
            for name, value in SETTINGS.items():
                assert db.execute("select current_setting(%s)", [name]).fetchone() == (value,)
    with psycopg.connect(url) as other:
        assert other.execute("show plan_cache_mode").fetchone() == ("auto",)


def test_a_snapshot_has_no_time_limits(database_url: str, port: int) -> None:
    limits = ("statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout")
    for url in (database_url, pooled(database_url, port)):
        with snapshot(url) as db:
            assert [db.execute("select current_setting(%s)", [name]).fetchone() for name in limits] == [("0",)] * 3


def test_operations_that_need_a_session_name_the_setting_for_it(database_url: str, port: int) -> None:
    with pytest.raises(SettingsError, match="EBB_DIRECT_DATABASE_URL"):
        connect(pooled(database_url, port), autocommit=True)


def test_a_move_that_could_not_delete_old_rows_does_not_begin(database_url: str, redis_url: str, port: int) -> None:
    schema.apply(database_url, count=2)
    given = Settings(database_url=pooled(database_url, port), redis_url=redis_url, shards=2)
    with transaction(database_url) as db:
        db.execute("insert into namespaces (name) values ('ann')")
    with pytest.raises(SettingsError, match="EBB_DIRECT_DATABASE_URL"):
        shard_moves.move(Context(given), "ann", 1)
    with transaction(database_url) as db:
        assert db.execute("select name from namespaces").fetchall() == [("ann",)]


@pytest.mark.parametrize(
    "command", ["migrate", "reembed", "shards add", "shards move ann 0", "doctor --json", "worker"]
)
def test_a_direct_address_of_another_database_is_refused(
    database_url: str, module_database: str, redis_url: str, port: int, tmp_path: Path, command: str
) -> None:
    settings = {"EBB_DIRECT_DATABASE_URL": module_database}
    system = LiveSystem(pooled(database_url, port), redis_url, tmp_path, settings)
    refused = system.ebb_process(*command.split())
    assert refused.returncode == 1
    assert "EBB_DIRECT_DATABASE_URL leads to" in refused.stdout + refused.stderr


@pytest.fixture
def system(database_url: str, redis_url: str, port: int, tmp_path: Path) -> Iterator[LiveSystem]:
    settings = {"EBB_DIRECT_DATABASE_URL": database_url, "EBB_ANN_THRESHOLD": "60"}
    system = LiveSystem(pooled(database_url, port), redis_url, tmp_path, settings)
    system.start("worker", "maintenance")
    yield system
    system.stop()


def test_facts_are_stored_recalled_indexed_exported_and_fade(system: LiveSystem, tmp_path: Path) -> None:
    with system.client("mira") as client:
        facts = [{"text": f"Stone number {number} lies on shelf {number % 7}."} for number in range(200)]
        assert len(client.store_many(facts)["results"]) == 200
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(client.recall, f"Where is stone number {number}?") for number in range(80)]
        for number, one in enumerate(asked):
            assert any(found["text"] == facts[number]["text"] for found in one.result()["results"])
        system.send("memory.ann", {})
        indexes = "select indexname from pg_indexes where indexname like 'signatures_near_%%'"
        eventually(lambda: system.rows(indexes), "the namespace has its vector index")
        client.decay(now="2031-01-01T00:00:00Z")
        system.settle()
        assert client.stats()["forgotten"] > 0
    exported = system.ebb("export", "--all", str(tmp_path / "all.jsonl"))
    assert exported.returncode == 0, exported.stderr
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) > 200
    system.send("memory.clean", {})
    system.settle()
    doctor = system.ebb("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
