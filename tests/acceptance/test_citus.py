"""The whole life of facts on a Citus cluster: a schema is placed on a node, moved, and its node killed."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from citus import holder
from databases import new_schema
from live_system import LiveSystem, eventually
from load import Load, stored, swept
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from workers.errors import SchemaError, UnavailableError
from workers.storage import migrations, schema
from workers.storage.connection import connect, scalar

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
WORKERS = "select nodename, nodeport from pg_dist_node where groupid > 0"
SETTINGS_OF_A_ROLE = "select setconfig from pg_db_role_setting where setrole = %s::regrole"
FIRST_ON_CITUS = Path(__file__).parents[1] / "integration" / "releases" / "0024.sql"
"""The first schema that could be distributed."""

OLD_FACT = """
    insert into facts (namespace, id, text, hash, entity, created_at, valid_from)
    values (1, %s, %s, %s, %s, now(), now())
"""
FOUND = "select text, entity from facts where search @@ 'strasse' and folded(entity) = 'zoe'"
MAY_HAVE_SCHEMAS = "select citus_set_node_property(%s, %s, 'shouldhaveshards', %s)"
REBALANCE = "select citus_rebalance_start(drain_only => true, shard_transfer_mode => 'block_writes')"
MOVING = """
    select 1 from pg_stat_activity where query like 'select citus_schema_move%%' and state = 'active' limit 1
"""
MOVE = "select citus_schema_move(quote_ident(current_schema())::regnamespace, %s, %s, 'block_writes')"


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


def give_to_all_nodes(url: str) -> None:
    """Give each node everything again that it knows, as one gets it that is added to the cluster."""
    with psycopg.connect(url, autocommit=True) as db:
        for node in db.execute(WORKERS).fetchall():
            db.execute("select start_metadata_sync_to_node(%s, %s)", node)


def test_a_node_that_is_added_is_given_all_of_the_schema() -> None:
    with new_schema(CITUS_URL) as url:
        schema.apply(url)
        give_to_all_nodes(url)
        with connect(url) as db:
            nodes = db.execute(NODES).fetchall()
        for host, port in nodes:
            schema.verify_at(make_conninfo(url, host=host, port=port))


@pytest.fixture
def plain_role() -> Iterator[str]:
    """A role that may make schemas, and is no superuser."""
    name = f"plain_{uuid4().hex}"
    role, database = sql.Identifier(name), sql.Identifier(str(conninfo_to_dict(CITUS_URL)["dbname"]))
    with psycopg.connect(CITUS_URL, autocommit=True) as db:
        db.execute(sql.SQL("create role {} login").format(role))
        db.execute(sql.SQL("grant create on database {} to {}").format(database, role))
        yield name
        db.execute(sql.SQL("revoke create on database {} from {}").format(database, role))
        db.execute(sql.SQL("drop role {}").format(role))


def test_a_role_that_is_no_superuser_makes_the_schema(plain_role: str) -> None:
    with new_schema(CITUS_URL) as url:
        schema.apply(make_conninfo(url, user=plain_role))
        with connect(make_conninfo(url, user=plain_role)) as db:
            assert db.execute(NODE).fetchall()
            nodes = db.execute(NODES).fetchall()
        for host, port in nodes:
            with connect(make_conninfo(CITUS_URL, user=plain_role, host=host, port=port)) as db:
                (settings,) = db.execute(SETTINGS_OF_A_ROLE, [plain_role]).fetchone() or ([],)
                assert {setting.partition("=")[0].lower() for setting in settings} == {*schema.ON_EVERY_NODE}


def test_a_schema_is_made_through_the_coordinator() -> None:
    with new_schema(CITUS_URL) as url:
        with connect(url) as db:
            (host, port), *_ = db.execute(WORKERS).fetchall()
        with pytest.raises(SchemaError, match="Only the coordinator of Citus makes schemas"):
            schema.apply(make_conninfo(url, host=host, port=port))
        schema.apply(url)
        assert schema.apply(make_conninfo(url, host=host, port=port)) == []


def test_a_schema_of_an_older_release_is_migrated_on_every_node() -> None:
    with new_schema(CITUS_URL) as url:
        with connect(url, autocommit=True) as db:
            db.execute(sql.SQL("create schema {}").format(sql.Identifier(str(scalar(db, schema.MISSING_SCHEMA)))))
            schema._prepare_nodes(db, new=True)
            for statement in migrations.statements(FIRST_ON_CITUS.read_text()):
                db.execute(statement.encode())
            db.execute("insert into namespaces (name) values ('default')")
            for text in ("The cup is green.", "Die Straße ist naß."):
                db.execute(OLD_FACT, [uuid4(), text, text.encode(), " Zoë "])
        assert schema.apply(url) == list(range(25, schema.version() + 1))
        give_to_all_nodes(url)
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


def test_a_node_that_is_away_is_reported_as_a_server_that_does_not_answer(system: LiveSystem) -> None:
    node = holder(system.database_url)
    with system.client() as client:
        client.store("The key is under the stone.")
        node.kill()
        try:
            with pytest.raises(UnavailableError, match=r"^PostgreSQL does not answer: .*Try again when it does\."):
                client.recall("Where is the key?")
        finally:
            node.start()
        eventually(lambda: client.recall("Where is the key?")["results"], "the node answers again")


def move(system: LiveSystem) -> None:
    """Move the schema to another node."""
    (target,) = system.rows(OTHER_NODE)
    system.rows(MOVE, target)
    assert system.rows(NODE) == [target]


def rebalance(system: LiveSystem) -> None:
    """Have the rebalancer take everything off the schema's node."""
    (node,) = system.rows(NODE)
    system.rows(MAY_HAVE_SCHEMAS, [*node, False])
    try:
        system.rows(REBALANCE)
        system.rows("select citus_rebalance_wait()")
    finally:
        system.rows(MAY_HAVE_SCHEMAS, [*node, True])
    assert system.rows(NODE) != [node]


def kill_and_start(system: LiveSystem) -> None:
    """Kill the schema's node, and start it again."""
    node = holder(system.database_url)
    node.kill()
    node.start()


def kill_during_a_move(system: LiveSystem) -> None:
    """Kill the node that a schema is moved from: the move fails or is complete."""
    (target,), node = system.rows(OTHER_NODE), holder(system.database_url)

    def move() -> None:
        with suppress(psycopg.Error):
            system.rows(MOVE, target)

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        eventually(lambda: moving.done() or system.rows(MOVING), "the move has begun")
        node.kill()
        node.start()


ROUNDS: tuple[Callable[[LiveSystem], None], ...] = (move, kill_and_start, rebalance, kill_during_a_move)


def test_rounds_of_moves_and_killed_nodes_lose_and_double_nothing(system: LiveSystem) -> None:
    with Load(system, wait=True) as answered, Load(system, wait=False) as accepted:
        for act in ROUNDS * (5 if os.environ.get("DEEP") else 1):
            before = len(answered.acknowledged), len(accepted.acknowledged)
            eventually(lambda before=before: len(answered.acknowledged) > before[0] + 10, "tasks are answered")  # type: ignore[misc]
            eventually(lambda before=before: len(accepted.acknowledged) > before[1] + 10, "writes are accepted")  # type: ignore[misc]
            act(system)
        before = len(answered.acknowledged), len(accepted.acknowledged)
        eventually(lambda: len(answered.acknowledged) > before[0] + 10, "tasks are answered again")
    eventually(lambda: swept(system), "what was accepted is stored")
    system.settle()
    found = stored(system)
    sys.stdout.write(
        f"{len(answered.acknowledged)} answered, {len(accepted.acknowledged)} accepted, {len(found)} stored\n"
    )
    assert len(found) == len(set(found))
    assert answered.acknowledged | accepted.acknowledged <= set(found) <= {*answered.sent, *accepted.sent}
    assert system.incomplete() == 0
    doctor = system.ebb("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
