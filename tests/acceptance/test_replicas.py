"""Replicas of PostgreSQL: consistency of reads, and behaviour when servers lag, end and return."""

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from databases import ON_ONE_SHARD
from ebb import Memory
from ebb.contract.facts import Store
from live_api import serving
from live_system import LiveSystem, eventually
from replication import Replicated, replicated

from api.up import servers
from workers.errors import SettingsError, UnavailableError
from workers.storage import replicas, server
from workers.storage.connection import connect
from workers.storage.replicas import Replicas

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, ON_ONE_SHARD]

FAILED = "the primary is read"


@pytest.fixture(scope="module")
def both(server_folder: Path) -> Iterator[Replicated]:
    with replicated(server_folder / "replicated", eventually) as both:
        yield both


@pytest.fixture(scope="module")
def system(
    both: Replicated, redis_server: servers.Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSystem]:
    settings = {"EBB_READ_DATABASE_URL": both.url("replica"), "EBB_MAX_READ_LAG": "3600"}
    system = LiveSystem(both.url("primary"), redis_server.url(), tmp_path_factory.mktemp("replicas"), settings)
    try:
        system.start("all")
        yield system
    finally:
        system.stop()


@contextmanager
def standing_still(both: Replicated) -> Iterator[None]:
    """Have the replica stay as it is while the block runs."""
    both.catch_up()
    both.do("replica", "select pg_wal_replay_pause()")
    eventually(lambda: both.do("replica", "select pg_get_wal_replay_pause_state()") == ("paused",), "it stands still")
    try:
        yield
    finally:
        both.do("replica", "select pg_wal_replay_resume()")


def texts(found: dict[str, list[dict[str, str]]]) -> list[str]:
    return [one["text"] for one in found["results"]]


def test_a_client_sees_what_it_wrote_and_others_what_the_replica_has(
    system: LiveSystem, both: Replicated, namespace: str
) -> None:
    with system.client(namespace) as writer, system.client(namespace) as other:
        writer.store("The ferry leaves at six.")
        both.catch_up()
        assert texts(other.recall("When does the ferry leave?")) == ["The ferry leaves at six."]
        with standing_still(both):
            writer.store("The ferry returns at nine.")
            assert "The ferry returns at nine." in texts(writer.recall("When does the ferry return?"))
            assert len(writer.facts()["facts"]) == 2
            assert texts(other.recall("When does the ferry return?")) == ["The ferry leaves at six."]
            assert len(other.facts()["facts"]) == 1
        both.catch_up()
        assert len(other.facts()["facts"]) == 2


def test_the_library_sends_the_position_of_an_answer_with_its_next_read(
    system: LiveSystem, both: Replicated, namespace: str
) -> None:
    with ExitStack() as stack:
        api = stack.enter_context(serving(system))
        writer, other = (stack.enter_context(Memory(str(api.base_url), namespace=namespace)) for _ in range(2))
        writer.store("The key is under the stone.")
        both.catch_up()
        with standing_still(both):
            accepted = writer.accept(Store(text="The stone is behind the shed."))
            eventually(lambda: writer.state(accepted.task).state == "done", "it is stored")
            assert len(writer.facts().facts) == 2
            assert len(other.facts().facts) == 1
        assert api.get("/memory/facts", headers={"X-Ebb-LSN": "there"}).status_code == 422


def test_every_listed_read_is_answered_by_a_replica(system: LiveSystem, both: Replicated, namespace: str) -> None:
    with system.client(namespace) as client:
        first = client.store("Mira lives in Leipzig.", entity="Mira", key="home", value="Leipzig", tags=["home"])["id"]
        second = client.store("Mira's dog is called Knäcke.", entity="Mira")["id"]
        client.link(first, second, "RELATED_TO")
        client.relate("Mira", "Anselm", "knows")
        client.forget([client.store("Tea is at four.")["id"]])
        both.catch_up()
        for task, given in {
            "memory.recall": {"query": "Where does Mira live?", "explain": True, "why": first},
            "memory.recall_many": {"queries": [{"query": "Where does Mira live?"}, {"query": "home", "tag": "home"}]},
            "memory.lookup": {"entity": "Mira"},
            "memory.context": {"query": "Where does Mira live?"},
            "memory.fact": {"id": first},
            "memory.facts": {},
            "memory.forgotten": {},
            "memory.neighbours": {"id": first},
            "memory.relations": {},
            "memory.documents": {"name": "notes"},
            "memory.items": {"path": [], "query": "home"},
            "memory.many_items": {"queries": [{"path": []}]},
            "memory.item_paths": {},
            "memory.namespaces": {},
        }.items():
            scoped = {} if task == "memory.namespaces" else {"namespace": namespace}
            assert system.send(task, given | scoped).get(), task
        asked_deep = {"query": "Where is tea?", "namespace": namespace, "deep": True}
        system.send("memory.recall", asked_deep).get()
    system.settle()
    assert FAILED not in system.logs()


def test_reads_go_on_while_a_replica_is_away_and_return_to_it(
    system: LiveSystem, both: Replicated, namespace: str
) -> None:
    with system.client(namespace) as client:
        client.store("The bakery opens at five.")
        both.catch_up()
        assert client.recall("When does the bakery open?")["results"]
        both.end("replica")
        for _ in range(6):
            assert client.recall("When does the bakery open?")["results"]
        failed = {one["name"]: one for one in json.loads(system.ebb("doctor", "--json").stdout)["checks"]}["replicas"]
        assert not failed["ok"]
        assert "does not answer" in failed["says"]
        both.start("replica")
        both.catch_up()
        well = {one["name"]: one for one in json.loads(system.ebb("doctor", "--json").stdout)["checks"]}["replicas"]
        assert (well["ok"], "bytes and" in well["says"]) == (True, True)
        with standing_still(both), system.client(namespace) as other:
            client.store("The bakery closes at noon.")
            eventually(lambda: len(other.recall("bakery")["results"]) == 1, "the replica is read again")


def test_reads_go_on_while_the_primary_is_away(system: LiveSystem, both: Replicated, namespace: str) -> None:
    with system.client(namespace) as client, system.client(namespace) as other:
        client.store("The museum is closed on Mondays.")
        both.catch_up()
        system.settle()
        both.end("primary")
        for _ in range(4):
            assert other.recall("When is the museum closed?", touch=False)["results"]
        both.start("primary")
        client.store("The museum is free on Sundays.")
        assert len(client.facts()["facts"]) == 2


def test_the_metrics_say_how_far_a_replica_is_behind(system: LiveSystem, both: Replicated) -> None:
    name = f'replica="{Replicas("", [both.url("replica")], 1).all[0].name}"'
    with serving(system) as api:

        def figures() -> dict[str, float]:
            system.own_keys.delete("ebb:measured")
            lines = [line for line in api.get("/metrics").text.splitlines() if line.startswith("ebb_replica")]
            return {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines}

        both.catch_up()
        assert figures()[f"ebb_replica_readable{{{name}}}"] == 1
        with standing_still(both), system.client() as client:
            client.store("The tower is closed.")
            eventually(lambda: figures()[f"ebb_replica_lag_seconds{{{name}}}"] > 0, "it is behind")


def test_a_replica_that_lags_too_much_is_not_read(both: Replicated) -> None:
    known = Replicas(both.url("primary"), [both.url("replica")], most_seconds=0.05)
    with standing_still(both):
        both.do("primary", "create table if not exists public.lag ()")
        both.do("primary", "drop table public.lag")
        (late,) = eventually(lambda: [one for one in known.look() if "s behind; past" in one.fault], "it lags")
        assert late.behind > 0
    both.catch_up()
    eventually(lambda: not known.look()[0].fault, "it has caught up")


def test_a_replica_that_does_not_follow_since_it_started_is_not_read(both: Replicated) -> None:
    known = Replicas(both.url("primary"), [both.url("replica")], most_seconds=3600)
    address = f"host={both.known['primary'].sockets} user=postgres"
    both.do("primary", "checkpoint")
    both.catch_up()
    both.do("replica", "checkpoint")  # from which it starts again, so that nothing is left to be replayed
    both.do("replica", "alter system set primary_conninfo = 'host=/missing'")
    both.end("replica", signal.SIGINT)
    try:
        both.start("replica")
        both.do("primary", "create table if not exists public.lag ()")
        both.do("primary", "drop table public.lag")
        (cut_off,) = known.look()
        assert "has replayed no commit since it started" in cut_off.fault
        assert cut_off.behind > 0
    finally:
        both.do("replica", f"alter system set primary_conninfo = '{address}'")
        both.do("replica", "select pg_reload_conf()")
    both.catch_up()
    eventually(lambda: not known.look()[0].fault, "it has caught up")


@pytest.mark.parametrize("earlier", ["ended", "writes on"])
def test_a_replica_of_an_earlier_primary_is_not_read(server_folder: Path, earlier: str) -> None:
    with replicated(server_folder / f"astray-{earlier[0]}", eventually) as servers_:
        servers_.add("promoted")
        all_named = Replicas(servers_.both(), [servers_.url("primary")], most_seconds=3600)
        assert [one.is_primary for one in all_named.look()] == [True]
        servers_.end("promoted", signal.SIGINT)
        servers_.do("primary", "create table public.lost ()")
        servers_.catch_up()
        if earlier == "ended":  # the replica then is ahead of the server that is promoted
            servers_.end("primary")
        servers_.start("promoted")
        servers_.do("promoted", "select pg_promote()")
        if earlier != "ended":  # the replica then is behind, but not for long
            servers_.do("promoted", "select pg_switch_wal()")
        known = Replicas(
            servers_.url("promoted"), [servers_.url("replica"), servers_.url("primary")], most_seconds=3600
        )
        astray, old = known.look()
        assert "does not follow EBB_DATABASE_URL but an earlier primary" in astray.fault
        said = "does not answer" if earlier == "ended" else "accepts writes, and the server of EBB_DATABASE_URL too"
        assert said in old.fault
        assert [one.is_primary for one in all_named.look()] == [earlier != "ended"]


def test_commits_that_wait_for_a_synchronous_replica_are_named(both: Replicated) -> None:
    both.do("primary", "alter system set synchronous_standby_names = 'missing'")
    both.do("primary", "select pg_reload_conf()")
    waiting = threading.Thread(target=both.do, args=("primary", "create table if not exists public.waits ()"))
    waiting.start()
    try:
        eventually(lambda: both.do("primary", server.TAKES_NONE)[1], "a commit waits")
        with connect(both.url("primary")) as db, pytest.raises(UnavailableError, match="for a synchronous replica"):
            server.try_write(db)
    finally:
        both.do("primary", "alter system reset synchronous_standby_names")
        both.do("primary", "select pg_reload_conf()")
        waiting.join()


def test_a_commit_of_another_database_that_waits_for_a_replica_is_none_of_ours(both: Replicated) -> None:
    applied = b"set synchronous_commit = remote_apply; create table if not exists public.applied ()"
    waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep' and now() - query_start > '5 s'"
    both.do("primary", "alter system set synchronous_standby_names = '*'")
    both.do("primary", "select pg_reload_conf()")
    try:
        with (
            psycopg.connect(both.known["primary"].url("postgres"), autocommit=True) as other,
            ThreadPoolExecutor() as pool,
        ):
            with standing_still(both):
                waiting = pool.submit(other.execute, applied)
                eventually(lambda: both.do("primary", waits) == (1,), "a commit waits")
                with connect(both.url("primary")) as db:
                    server.try_write(db)
            waiting.result()
    finally:
        both.do("primary", "alter system reset synchronous_standby_names")
        both.do("primary", "select pg_reload_conf()")


def test_the_primary_answers_until_a_replica_has_replayed_a_migration(
    system: LiveSystem, both: Replicated, namespace: str
) -> None:
    with system.client(namespace) as client, system.client(namespace) as other:
        client.store("The bridge is closed at night.")
        system.settle()
        both.do("primary", "alter table facts rename to facts_before")
        with standing_still(both):
            both.do("primary", "alter table facts_before rename to facts")
            assert texts(other.recall("When is the bridge closed?")) == ["The bridge is closed at night."]


def test_a_copy_of_another_database_is_refused_and_the_primary_itself_is_no_replica(
    both: Replicated, system: LiveSystem, database_url: str, tmp_path: Path
) -> None:
    another = Replicas(both.url("primary"), [database_url], most_seconds=10)
    with pytest.raises(SettingsError, match=r"EBB_READ_DATABASE_URL: .* is no copy of EBB_DATABASE_URL.*pg_basebackup"):
        replicas.verify(another)
    (itself,) = Replicas(both.url("primary"), [both.url("primary")], most_seconds=10).look()
    assert (itself.fault, itself.is_read, "is the server of EBB_DATABASE_URL" in str(itself)) == ("", False, True)
    worker = LiveSystem(both.url("primary"), system.redis_url, tmp_path, {"EBB_READ_DATABASE_URL": database_url})
    refused = worker.ebb_process("worker", "--queues=recall")
    assert refused.returncode == 1
    assert "is no copy of EBB_DATABASE_URL" in refused.stderr
