"""The whole life of facts on a Citus cluster: a schema is placed on a node, moved, and its node killed."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from databases import new_schema
from live_system import LiveSystem, eventually
from load import Load, stored, swept
from psycopg import sql
from psycopg.conninfo import make_conninfo

from workers.errors import SchemaError
from workers.storage import migrations, schema
from workers.storage.connection import connect

CITUS_URL = os.environ.get("EBB_TEST_CITUS_URL", "")

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(not CITUS_URL, reason="EBB_TEST_CITUS_URL names no cluster"),
]

NODE = """
    select nodename, nodeport from citus_shards where table_name = 'facts'::regclass
"""
OTHER_NODE = """
    select nodename, nodeport from pg_dist_node
    where noderole = 'primary' and shouldhaveshards and nodeport <> (
        select nodeport from citus_shards where table_name = 'facts'::regclass
    )
    limit 1
"""
NODES = "select nodename, nodeport from pg_dist_node"
FIRST_ON_CITUS = Path(__file__).parents[1] / "integration" / "releases" / "0024.sql"
"""The first schema that could be distributed."""

OLD_FACT = """
    insert into facts (namespace, id, text, hash, entity, created_at, valid_from)
    values (1, %s, %s, %s, %s, now(), now())
"""
FOUND = "select text, entity from facts where search @@ 'strasse' and folded(entity) = 'zoe'"
MOVE = "select citus_schema_move(current_schema()::regnamespace, %s, %s, 'block_writes')"


@pytest.fixture
def system(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[LiveSystem]:
    system = LiveSystem(database_url, redis_url, tmp_path)
    system.start("all")
    yield system
    system.stop()


def test_public_is_refused_and_another_schema_is_made() -> None:
    with pytest.raises(SchemaError, match=r"does not place the schema `public`.*csearch_path"):
        schema.apply(CITUS_URL)
    with new_schema(CITUS_URL) as url:
        schema.apply(url)
        schema.verify_at(url)
        with connect(url) as db:
            assert len(db.execute(NODE).fetchall()) == 1


def test_a_schema_of_an_older_release_is_migrated_on_every_node() -> None:
    with new_schema(CITUS_URL) as url:
        with connect(url, autocommit=True) as db:
            db.execute(sql.SQL("create schema {}").format(sql.Identifier(str(schema._missing_schema(db)))))
            schema._distribute(db)
            for statement in migrations.statements(FIRST_ON_CITUS.read_text()):
                db.execute(statement.encode())
            db.execute("insert into namespaces (name) values ('default')")
            for text in ("The cup is green.", "Die Straße ist naß."):
                db.execute(OLD_FACT, [uuid4(), text, text.encode(), " Zoë "])
        assert schema.apply(url) == list(range(25, schema.version() + 1))
        with connect(url) as db:
            assert db.execute(FOUND).fetchall() == [("Die Straße ist naß.", "Zoë")]
            nodes = db.execute(NODES).fetchall()
        for host, port in nodes:
            schema.verify_at(make_conninfo(url, host=host, port=port))


def test_facts_are_stored_recalled_exported_and_fade(system: LiveSystem, tmp_path: Path) -> None:
    with system.client("mira") as client:
        facts = [{"text": f"Stone number {number} lies on shelf {number % 7}."} for number in range(100)]
        assert len(client.store_many(facts)["results"]) == 100
        for number in range(0, 100, 10):
            found = client.recall(f"Where is stone number {number}?")["results"]
            assert facts[number]["text"] in [one["text"] for one in found]
        assert client.janitor()["totalRuns"] == 1
        client.decay(now="2031-01-01T00:00:00Z")
        system.settle()
        assert client.stats()["forgotten"] > 0
    exported = system.ebb("export", "--all", str(tmp_path / "all.jsonl"))
    assert exported.returncode == 0, exported.stderr
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) > 100
    for task in ("memory.lexemes", "memory.settle_tallies", "memory.clean", "memory.purge"):
        system.send(task, {"everywhere": True} if task == "memory.purge" else {})
    system.settle()
    doctor = system.ebb("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr


def test_a_worker_may_use_any_node(system: LiveSystem, tmp_path: Path) -> None:
    (node,) = system.rows(OTHER_NODE)
    other = LiveSystem(make_conninfo(system.database_url, host=node[0], port=node[1]), system.redis_url, tmp_path)
    with system.client() as client:
        fact = client.store("The key is under the stone.")["id"]
    system.stop()
    try:
        other.start("all")
        with other.client() as client:
            client.store("The stone is behind the shed.")
            assert client.recall("Where is the key?")["results"][0]["id"] == fact
        with other.client("mira") as client:
            client.store_many([{"text": "The shed is locked."}])
            assert client.recall("Is the shed locked?")["results"]
    finally:
        other.stop()


def test_moving_the_schema_under_load_loses_and_doubles_nothing(system: LiveSystem) -> None:
    with Load(system, wait=True) as answered, Load(system, wait=False) as accepted:
        eventually(lambda: min(len(answered.acknowledged), len(accepted.acknowledged)) > 10, "load")
        (target,) = system.rows(OTHER_NODE)
        system.rows(MOVE, target)
        assert system.rows(NODE) == [target]
        before = len(answered.acknowledged)
        eventually(lambda: len(answered.acknowledged) > before + 10, "tasks are answered on the other node")
    check(system, answered, accepted)


def test_a_node_that_is_killed_and_started_again_loses_and_doubles_nothing(system: LiveSystem) -> None:
    node = Node(system)
    with Load(system, wait=True) as answered, Load(system, wait=False) as accepted:
        eventually(lambda: min(len(answered.acknowledged), len(accepted.acknowledged)) > 10, "load")
        node.kill()
        reached = len(accepted.sent)
        eventually(lambda: len(accepted.sent) > reached + 20, "writes are accepted meanwhile")
        node.start()
        before = len(answered.acknowledged)
        eventually(lambda: len(answered.acknowledged) > before + 10, "tasks are answered again")
    check(system, answered, accepted)


def check(system: LiveSystem, answered: Load, accepted: Load) -> None:
    """Check that all that was acknowledged is stored, once, and complete."""
    eventually(lambda: swept(system), "what was accepted is stored")
    system.settle()
    found = stored(system)
    assert len(found) == len(set(found))
    assert answered.acknowledged | accepted.acknowledged <= set(found) <= {*answered.sent, *accepted.sent}
    assert system.incomplete() == 0
    doctor = system.ebb("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr


class Node:
    """The node that holds the facts of a system, on this machine."""

    def __init__(self, system: LiveSystem) -> None:
        (place,) = system.rows(NODE)
        self.url = make_conninfo(system.database_url, host=place[0], port=place[1])
        self.data, self.programs = Path(self._shown("data_directory")), Path(self._bindir())
        if not self.data.exists():
            pytest.skip("the nodes are on other machines, where this test cannot kill them")

    def kill(self) -> None:
        """End it as a crash does."""
        self._control("stop", "--mode=immediate")

    def start(self) -> None:
        """Start it, and return when it answers."""
        self._control("start", f"--log={self.data}.log")
        eventually(self._answers, "the node answers")

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url):
            return True
        time.sleep(0.1)
        return False

    def _control(self, *arguments: str) -> None:
        command = [str(self.programs / "pg_ctl"), f"--pgdata={self.data}", "--wait", *arguments]
        owner: dict[str, Any] = {} if os.getuid() else {"user": self.data.stat().st_uid}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **owner)

    def _shown(self, name: str) -> str:
        with psycopg.connect(self.url) as db:
            return str((db.execute("select current_setting(%s)", [name]).fetchone() or ("",))[0])

    def _bindir(self) -> str:
        with psycopg.connect(self.url) as db:
            return str((db.execute("select setting from pg_config where name = 'BINDIR'").fetchone() or ("",))[0])
