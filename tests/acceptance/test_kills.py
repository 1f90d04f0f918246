"""Kills at any moment: no acknowledged write is lost or doubled, and decay reaches the same result."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import server_process
from databases import SHARDS
from live_system import SHORTEST_PAUSE, LiveSystem, eventually, kill_child, state_of

from api.client import Client
from api.up import servers
from workers.context import Context
from workers.coordination import signals
from workers.decay import passes
from workers.errors import EbbError
from workers.memory import embed
from workers.memory.store import store_many
from workers.settings import Settings
from workers.storage import schema
from workers.storage.connection import connect
from workers.storage.runs import Counters
from workers.validation.facts import new_fact

pytestmark = [pytest.mark.acceptance, pytest.mark.long]

NOW = datetime(2026, 6, 1, tzinfo=UTC)
FACTS = 2_500
UNLIMITED = {"forget_limit": 1.0}
SLOW_PASS = {"EBB_DECAY_BATCH": "20", "EBB_SEGMENTS": "4", "EBB_FORGET_LIMIT": "1"}
KILLS = 5


# Storing --------------------------------------------------------------------------------------------------------


def working_child(system: LiveSystem, task: str) -> int:
    """Return the process of a child that is running a task."""
    found = eventually(lambda: system.active(task), f"a child works on {task}", SHORTEST_PAUSE)
    return int(found[0]["worker_pid"])


def writes(system: LiveSystem) -> bool:
    """Return whether a transaction that writes facts is open."""
    return bool(
        system.rows(
            """
            select pid from pg_stat_activity
            where datname = current_database() and application_name = 'ebb' and query ilike '%%insert into%%'
                and state in ('active', 'idle in transaction')
            """
        )
    )


def at_once(_system: LiveSystem) -> None:
    """Kill as soon as a child has started, before anything is written."""


def while_it_writes(system: LiveSystem) -> None:
    """Kill within the transaction."""
    eventually(lambda: writes(system), "facts are being written", SHORTEST_PAUSE)


@pytest.mark.parametrize("moment", [at_once, while_it_writes])
def test_a_child_killed_while_storing_many_facts_loses_and_doubles_none(
    idle: LiveSystem, moment: Callable[[LiveSystem], None]
) -> None:
    idle.start("worker")
    facts = [{"id": str(uuid4()), "text": f"Stone number {i} is grey."} for i in range(1_000)]
    with idle.client() as client:
        with connect(idle.database_url) as other:
            other.execute("lock table facts in share mode")  # so the task is not done before the kill
            sent = client.send_many(facts)
            child = working_child(idle, "memory.store_many")
            moment(idle)
            kill_child(child)
        answers = client.wait(sent, 60)["results"]
    assert "Worker exited prematurely" in idle.logs()
    assert [answer["id"] for answer in answers] == [fact["id"] for fact in facts]
    assert {(answer["action"], answer["embedded"]) for answer in answers} <= {("added", True), ("unchanged", True)}
    assert idle.facts("default") == sorted((fact["id"], fact["text"]) for fact in facts)
    assert idle.incomplete() == 0


# Decay ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def undisturbed(database_url: str, copy_of: Callable[[], str]) -> tuple[dict[str, list[str]], Counters]:
    """Fill the database with due facts; return the result of an undisturbed pass on a copy, and its counters."""
    original = Context(Settings(database_url=database_url, segments=4, **UNLIMITED))
    embed.check_embedder(original)
    faded = [
        {
            "id": str(UUID(int=number + 1)),
            "text": f"Pebble number {number} is round.",
            "last_seen_at": (NOW - timedelta(days=8 + number % 400)).isoformat(),
            "salience": (number % 7) / 7,
            "decay_class": "short" if number % 10 == 0 else None,
        }
        for number in range(FACTS)
    ]
    written_at = NOW - timedelta(days=500)
    store_many(original, "default", [new_fact(fact, 65_536) for fact in faded], written_at)
    original.close()
    copy = Context(Settings(database_url=copy_of(), **UNLIMITED))
    run = uuid4()
    for part in passes.plan(copy, run, NOW):
        passes.apply(copy, part, lambda: None)
    counters = passes.finish(copy, run).counters
    copy.close()
    return state_of(copy.database_url), counters


def without_startup_prune(system: LiveSystem) -> None:
    """Suppress the prune at startup, which would forget as of today while the comparison uses NOW."""
    system.own_keys.set(f"{signals.BEGUN}:start", "another worker")


def processed(system: LiveSystem) -> int:
    ((done,),) = system.rows("select coalesce(sum(processed), 0)::int from decay_parts")
    return int(done)


def due(system: LiveSystem) -> int:
    ((waiting,),) = system.rows("select count(*) from activity where due_at <= %s", [NOW])
    return int(waiting)


@pytest.mark.slow
def test_children_killed_while_facts_fade_change_nothing_in_the_end(
    idle: LiveSystem, undisturbed: tuple[dict[str, list[str]], Counters]
) -> None:
    expected, counters = undisturbed
    assert min(counters.compressed, counters.fingerprinted, counters.forgotten) > 50
    assert counters.held == 0
    idle.settings |= SLOW_PASS
    without_startup_prune(idle)
    idle.start("maintenance")
    result = idle.send("decay.plan", {"now": NOW.isoformat()})
    for _ in range(KILLS):
        before = processed(idle)
        eventually(lambda before=before: processed(idle) > before, "the pass goes on", SHORTEST_PAUSE)  # type: ignore[misc]
        assert due(idle) > 0
        kill_child(working_child(idle, "decay.apply"))
    answer = result.get()
    assert idle.logs().count("Worker exited prematurely") > 0
    assert idle.state() == expected
    assert {name: answer[name] for name in ("processed", "changed", "compressed", "fingerprinted", "forgotten")} == {
        "processed": counters.processed,
        "changed": counters.changed,
        "compressed": counters.compressed,
        "fingerprinted": counters.fingerprinted,
        "forgotten": counters.forgotten,
    }


def test_a_worker_killed_while_facts_fade_changes_nothing_in_the_end(
    idle: LiveSystem, undisturbed: tuple[dict[str, list[str]], Counters]
) -> None:
    """Its messages are lost for a while; the next plan finds what is still due."""
    expected, counters = undisturbed
    idle.settings |= SLOW_PASS
    without_startup_prune(idle)
    for _ in range(2):
        idle.start("maintenance")
        before = processed(idle)
        idle.send("decay.plan", {"now": NOW.isoformat()})
        eventually(lambda before=before: processed(idle) > before, "the pass goes on", SHORTEST_PAUSE)  # type: ignore[misc]
        idle.kill_worker("maintenance")
        assert due(idle) > 0
    idle.start("maintenance")

    def nothing_due_after_a_plan() -> bool:
        idle.send("decay.plan", {"now": NOW.isoformat()}).get()
        return due(idle) == 0

    eventually(nothing_due_after_a_plan, "nothing is due any more")
    assert idle.state() == expected
    assert processed(idle) == counters.processed


# PostgreSQL -----------------------------------------------------------------------------------------------------


@pytest.fixture
def own_postgres(server_folder: Path) -> servers.Postgres:
    folder = server_folder / uuid4().hex[:8]
    server = servers.Postgres(data=folder / "postgres", sockets=folder / "sockets")
    servers.prepare_postgres(server, report=print)
    return server


def test_acknowledged_writes_exist_once_after_an_immediate_stop_of_postgres(
    own_postgres: servers.Postgres, redis_url: str, tmp_path: Path
) -> None:
    def fault() -> str | None:
        return servers.postgres_fault(own_postgres.url("postgres"))

    acknowledged: dict[str, str] = {}
    refused: list[str] = []
    stop = threading.Event()

    def store_on_and_on(who: int) -> None:
        client, number = Client(redis_url), 0
        while not stop.is_set():
            text = f"Storyteller {who} tells story {number}."
            try:
                acknowledged[client.store(text)["id"]] = text
            except EbbError as error:
                refused.append(str(error))
            number += 1
        client.close()

    run = server_process.running
    command, log = own_postgres.command(), tmp_path / "postgres.log"
    with ThreadPoolExecutor(2) as pool:
        with run(command, log, fault, signal.SIGQUIT):
            url = servers.ensure_database(own_postgres, "ebb")
            schema.apply(url, count=SHARDS)
            system = LiveSystem(url, redis_url, tmp_path)
            system.start("worker")
            tellers = [pool.submit(store_on_and_on, who) for who in range(2)]
            eventually(lambda: len(acknowledged) > 30, "facts are stored")
        with run(command, log, fault, signal.SIGINT):
            before = len(acknowledged) + len(refused)
            eventually(lambda: len(acknowledged) > before + 30, "facts are stored again")
            stop.set()
            for teller in tellers:
                teller.result()
            stored = system.facts("default")
            lacking = system.incomplete()
            system.stop()
    assert acknowledged.items() <= dict(stored).items()
    assert len({text for _, text in stored}) == len(stored)
    assert lacking == 0
    assert all("PostgreSQL" in message or "worker failed" in message for message in refused)
