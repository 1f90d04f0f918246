"""`ebb doctor` on real workers: it finds and repairs faults, and names what does not answer."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest
from databases import new_database
from kombu import Connection
from kombu.pidbox import Mailbox
from live_system import ROOT, LiveSystem, eventually
from psycopg import errors
from redis.exceptions import ConnectionError as RedisConnectionError

from api.cli import admin, doctor
from api.up import servers
from workers.coordination import signals
from workers.coordination.redis import clock, open_redis, own_keys
from workers.queues import MAINTENANCE, SENT_AT, lists_of
from workers.storage.vectors import COUNT_PENDING

pytestmark = pytest.mark.acceptance


@pytest.mark.slow
def test_the_doctor_finds_and_mends_a_fact_whose_vector_is_gone(idle: LiveSystem) -> None:
    idle.start("all")
    with idle.client("boats") as client:
        client.store("The boat is moored at the third pier.")
    said = " ".join(idle.ebb("doctor").stdout.split())
    assert "compares meaning, of English words" in said
    assert "facts: 0 examined in 'default', nothing is wrong" in said
    idle.rows("delete from vectors")
    diagnosis = idle.ebb("doctor", "-n", "boats")
    assert diagnosis.returncode == 1
    assert "1 fact, no vector" in diagnosis.stdout
    assert "1 fact examined in 'boats'; run `ebb doctor -n boats --mend`" in " ".join(diagnosis.stdout.split())
    assert "1 fact examined in all namespaces; run `ebb doctor --all --mend`" in " ".join(
        idle.ebb("doctor", "--all").stdout.split()
    )
    mended = idle.ebb_json("doctor", "-n", "boats", "--mend")
    assert [(one["fault"], one["facts"]) for one in mended["facts"]["faults"]] == [("no vector", 1)]
    eventually(lambda: not idle.incomplete(), "the vector is computed again")
    assert idle.ebb_json("doctor", "--all")["facts"] == {"examined": 1, "faults": [], "mended": False}


@pytest.mark.slow
def test_the_doctor_warns_of_large_namespaces_without_a_vector_index(idle: LiveSystem) -> None:
    idle.settings["EBB_ANN_THRESHOLD"] = "2"
    idle.start("all")
    with idle.client() as client:
        client.store_many([{"text": "The boat is moored."}, {"text": "The mast is pine."}])

        def said(what: str) -> bool:
            diagnosis = idle.ebb("doctor")
            assert diagnosis.returncode == 0, diagnosis.stdout
            return what in " ".join(diagnosis.stdout.split())

        assert said("warning: 1 of 1 namespace with 2 facts or more have no vector index")
        client.send("memory.ann", {})
        eventually(lambda: said("1 namespace with 2 facts or more; no vector index is missing"), "it is built")


def test_the_doctor_says_which_queue_has_no_worker(idle: LiveSystem) -> None:
    idle.start("worker")
    diagnosis = idle.ebb("doctor")
    assert diagnosis.returncode == 1
    assert "no worker serves maintenance" in diagnosis.stdout
    assert "Facts were not examined" in diagnosis.stdout


def test_the_doctor_counts_no_workers_of_other_programs() -> None:
    found = {"celery@a": ["tutor"], "worker@a": ["recall", "store"], "maintenance@a": ["maintenance"]}
    assert doctor.lanes(found) == "2 answer: maintenance@a, worker@a"


def test_a_worker_of_another_program_hides_none_of_the_same_name(idle: LiveSystem) -> None:
    idle.start("worker")
    stopped = threading.Event()
    with Connection(idle.redis_url) as connection, idle.client() as client:
        mailbox = Mailbox("celery", type="fanout", accept=["json"])
        handlers = {"active_queues": lambda _: [{"name": "lessons"}]}
        mailbox.Node("worker@tests", handlers=handlers, channel=connection.channel()).listen()

        def answer() -> None:
            while not stopped.is_set():
                with suppress(TimeoutError):
                    connection.drain_events(timeout=0.1)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            found = client.workers()
        finally:
            stopped.set()
            thread.join()
    assert set(found["worker@tests"]) == {"recall", "store", "lessons"}


def test_a_long_command_says_that_it_waits_for_a_worker(idle: LiveSystem) -> None:
    idle.start("worker")
    command = idle.command("decay")
    with subprocess.Popen(command, cwd=ROOT, env=idle.environment(), stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith("No worker serves the queue maintenance: this waits until one")
        idle.start("maintenance")
        assert waiting.wait() == 0
    assert "No worker" not in idle.ebb("decay").stderr


@pytest.mark.slow
def test_doctor_and_log_say_which_settings_of_workers_differ(idle: LiveSystem) -> None:
    def said(status: int) -> str:
        diagnosis = idle.ebb("doctor")
        assert diagnosis.returncode == status, diagnosis.stdout
        return " ".join(diagnosis.stdout.split())

    def settings() -> int:
        return len(signals.settings_of_workers(idle.own_keys, clock(idle.own_keys).timestamp()))

    idle.start("all")
    eventually(lambda: settings() == 1, "the worker has noted its settings")
    assert "settings: the same in 1 worker" in said(0)
    idle.settings |= {"EBB_COLD_THRESHOLD": "0.4", "EBB_LOG_FORMAT": "json"}
    idle.start("maintenance")
    eventually(lambda: settings() == 2, "the second worker has noted its settings")
    assert "EBB_COLD_THRESHOLD is 0.25 at all@tests, 0.4 at maintenance@tests" in said(1)
    assert "EBB_COLD_THRESHOLD is 0.25 at all@tests" in (idle.folder / "maintenance.log").read_text()
    idle.workers["maintenance"].terminate()
    idle.workers.pop("maintenance").wait()
    assert "settings: the same in 1 worker" in said(0)


@pytest.mark.slow
def test_the_doctor_says_which_workers_have_another_embedder_than_the_database_has_now(idle: LiveSystem) -> None:
    idle.start("all")
    eventually(
        lambda: signals.settings_of_workers(idle.own_keys, clock(idle.own_keys).timestamp()), "it noted its settings"
    )
    idle.settings["EBB_EMBEDDER"] = "hashing"
    assert idle.ebb("reembed").returncode == 0
    diagnosis = idle.ebb("doctor")
    assert diagnosis.returncode == 1
    said = " ".join(diagnosis.stdout.split())
    assert "but all@tests has static:minilm-distilled:256. Such workers store facts without vectors" in said


@pytest.mark.slow
def test_reembedding_does_not_wait_for_what_workers_with_the_old_embedder_store_meanwhile(
    idle: LiveSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle.start("all")
    numbers, ended = count(), threading.Event()

    def store() -> None:
        client.store(f"Fender {next(numbers)} is new.")

    def store_until_the_end() -> None:
        eventually(
            lambda: idle.rows("select name from embedders where name like 'hashing%%'"), "the embedder is replaced"
        )
        idle.rows("update activity set fidelity = 1 where fact = (select id from facts limit 1)")
        have_them_counted(idle, ended)
        store()
        have_them_counted(idle, ended)
        monkeypatch.setattr(admin, "WAITS_FOR_WORKERS", 1.0)
        while not ended.is_set():
            store()

    with idle.client() as client, ThreadPoolExecutor(1) as pool:
        client.store_many([{"text": "The boat is moored."}, {"text": "The mast is pine."}])
        idle.settings["EBB_EMBEDDER"] = "hashing"
        stored = pool.submit(store_until_the_end)
        try:
            done = idle.ebb_json("reembed")
        finally:
            ended.set()
        stored.result()
    assert (done["facts"], done["embedded"]) == (2, 1)
    assert done["waiting"] > 1


def have_them_counted(idle: LiveSystem, ended: threading.Event) -> None:
    """Return when a command has counted the facts without a vector as of now, or has ended."""
    waits = "select pid from pg_stat_activity where wait_event_type = 'Lock' and query = %s"
    for _ in range(2):  # it has used what it counted when it counts again
        with psycopg.connect(idle.database_url) as db:
            db.execute("lock table tallies")
            eventually(lambda: ended.is_set() or idle.rows(waits, [COUNT_PENDING]), "it counts")


@pytest.mark.slow
def test_the_doctor_says_that_beat_sends_nothing(idle: LiveSystem) -> None:
    idle.start("all")
    assert "warning: no beat has sent a task" in " ".join(idle.ebb("doctor").stdout.split())
    for minutes, status in ((0, 0), (10, 1)):
        signals.note_beat(idle.own_keys, clock(idle.own_keys).timestamp() - 60 * minutes)
        diagnosis = idle.ebb("doctor")
        assert diagnosis.returncode == status, diagnosis.stdout
    assert "sent its last task 10 minutes ago, so nothing fades" in " ".join(diagnosis.stdout.split())


def test_the_doctor_says_that_tasks_have_waited_for_long(idle: LiveSystem) -> None:
    for minutes, is_named in ((4, False), (20, True)):
        sent_at = clock(idle.own_keys).timestamp() - 60 * minutes
        idle.control.send_task("decay.plan", headers={SENT_AT: sent_at})
        said = " ".join(idle.ebb("doctor").stdout.split())
        assert ("warning: the first task in maintenance has waited for 20 minutes" in said) == is_named
        with open_redis(idle.redis_url) as queues:
            queues.delete(*lists_of(MAINTENANCE))


@pytest.mark.slow
def test_the_doctor_says_what_does_not_answer(idle: LiveSystem) -> None:
    idle.settings["EBB_DATABASE_URL"] = "postgresql://127.0.0.1:9/ebb"
    diagnosis = idle.ebb("doctor")
    assert diagnosis.returncode == 1
    assert "PostgreSQL does not answer" in diagnosis.stdout
    assert "error connecting" not in diagnosis.stderr


@contextmanager
def ending_connections() -> Iterator[tuple[int, list[None]]]:
    """Yield the port of a server that ends each connection, and one entry for each of them."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        met: list[None] = []

        def end_all() -> None:
            with suppress(OSError):
                while True:
                    connection = listening.accept()[0]
                    met.append(None)
                    connection.close()

        threading.Thread(target=end_all, daemon=True).start()
        try:
            yield listening.getsockname()[1], met
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def test_the_doctor_waits_once_for_each_server_that_does_not_answer(idle: LiveSystem) -> None:
    with ending_connections() as (postgres, of_postgres), ending_connections() as (redis, of_redis):
        idle.settings["EBB_DATABASE_URL"] = f"postgresql://127.0.0.1:{postgres}/ebb?sslmode=disable"
        idle.settings["EBB_REDIS_URL"] = f"redis://127.0.0.1:{redis}/0"
        diagnosis = idle.ebb("doctor", "--json")
        of_doctor = len(of_redis)
        with own_keys(idle.settings["EBB_REDIS_URL"]) as keys, pytest.raises(RedisConnectionError):
            keys.ping()
    assert diagnosis.returncode == 1
    checks = json.loads(diagnosis.stdout)["checks"]
    assert [check["name"] for check in checks if "does not answer" not in check["says"]] == []
    assert len(of_postgres) == 1
    assert of_doctor == len(of_redis) - of_doctor


def test_the_doctor_does_not_show_statements_where_the_schema_is_missing(
    live: LiveSystem, postgres: servers.Postgres, tmp_path: Path
) -> None:
    with new_database(postgres, "template0") as url:
        said = LiveSystem(url, live.redis_url, tmp_path).ebb("doctor").stdout
    assert "run `ebb migrate`" in said
    assert "LINE 1" not in said
    assert said.count("cannot be checked without the schema") == 4


def test_a_check_that_postgresql_breaks_off_says_what_to_do() -> None:
    locked = errors.LockNotAvailable("canceling statement due to lock timeout\nLINE 1")
    assert "see `pg_locks`" in doctor._unforeseen(locked)
    assert doctor._unforeseen(errors.QueryCanceled("too slow.")) == (
        "PostgreSQL broke this off: too slow. Run the command again."
    )
    assert doctor._unforeseen(ValueError("odd")) == "ValueError: odd"
