"""The life of facts in a system with three shards: every door finds them, passes reach all, a move loses nothing."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from live_api import serving
from live_system import LiveSystem, eventually
from load import Load
from psycopg import sql

from workers.storage import schema, shard_moves

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.long]

NAMES = ("ann", "kim", "zoe")


@pytest.fixture
def system(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[LiveSystem]:
    schema.apply(database_url, count=3)
    system = LiveSystem(database_url, redis_url, tmp_path, {"EBB_SHARDS": "3"})
    system.start("worker", "maintenance")
    yield system
    system.stop()


def shards(system: LiveSystem) -> list[tuple[int, int]]:
    """Return the numbers of namespaces and facts of each shard."""
    return [(one["namespaces"], one["facts"]) for one in system.ebb_json("shards", "list")["shards"]]


def test_facts_on_three_shards_are_stored_recalled_exported_and_fade(system: LiveSystem, tmp_path: Path) -> None:
    for name in NAMES:
        with system.client(name) as client:
            facts = [{"text": f"{name} has stone number {number}."} for number in range(30)]
            assert len(client.store_many(facts)["results"]) == 30
            assert client.recall("Where is stone number 7?")["results"]
            assert client.stats()["facts"] == 30
            kept = client.store(f"{name} is born in May.", decay_class="permanent")["id"]
            assert client.forecast(30)["days"]
            assert client.history(kept)["text"].startswith(name)
    assert shards(system) == [(1, 31), (1, 31), (1, 31)]
    with system.client("ann") as client:
        found = client.recall("Who is born in May?", namespaces=list(NAMES), limit=30)["results"]
        assert {one["namespace"] for one in found} == {*NAMES}
        assert client.namespaces()["namespaces"] == sorted(NAMES)
    assert system.ebb("export", "--all", str(tmp_path / "all.jsonl")).returncode == 0
    assert (tmp_path / "all.jsonl").read_text().count('"text"') == 93
    passed = system.ebb_json("decay", "--all", "--now", "2031-01-01T00:00:00Z")
    assert passed["processed"] == 90
    for task in ("memory.lexemes", "memory.settle_tallies", "memory.clean", "memory.ann", "memory.embed_pending"):
        system.send(task, {})
    system.settle()
    doctor = system.ebb("doctor", "--all")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    branch = system.ebb_json("branch", "kim", "--older", "30d")
    assert branch["action"] == "made"
    with serving(system) as http:
        key = system.ebb_json("keys", "create", "--namespace", "zoe", "--scope", "read")["key"]
        answer = http.get("/memory/stats", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200, answer.text


def test_the_own_schedule_of_a_namespace_on_any_shard_sends_its_janitor(system: LiveSystem) -> None:
    for name in NAMES:
        with system.client(name) as client:
            client.settings(set={"hygiene.schedule": "onCapture"})
            client.store(f"{name} has a boat.")
            eventually(lambda client=client: client.janitor_snapshot()["totalRuns"], "it came")  # type: ignore[misc]


def test_moving_a_namespace_under_load_loses_and_doubles_nothing(system: LiveSystem) -> None:
    with Load(system, wait=True) as answered, Load(system, wait=False) as accepted:
        for new in ("1", "2", "0"):
            reached = len(answered.acknowledged), len(accepted.acknowledged)
            eventually(
                lambda reached=reached: (
                    len(answered.acknowledged) > reached[0] + 5  # type: ignore[misc]
                    and len(accepted.acknowledged) > reached[1] + 5
                ),
                "load",
            )
            assert system.ebb_json("shards", "move", "default", new)["new"] == int(new)
    system.settle()
    found = [one["id"] for one in system.ebb_json("list", "--limit", "10000")["facts"]]
    assert len(found) == len(set(found))
    assert answered.acknowledged | accepted.acknowledged <= set(found) <= {*answered.sent, *accepted.sent}
    doctor = system.ebb("doctor", "--all")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr


def test_shards_are_listed_and_a_namespace_is_moved_over_http(system: LiveSystem) -> None:
    for name in NAMES:
        assert system.ebb("store", f"{name} has a red bicycle.", "-n", name).returncode == 0
    with serving(system) as http:
        listed = http.get("/system/shards").json()
        assert listed == {"shards": system.ebb_json("shards", "list")["shards"]}
        assert [(one["number"], one["namespaces"], one["facts"]) for one in listed["shards"]] == [
            (number, 1, 1) for number in range(3)
        ]
        ann = {"X-Ebb-Namespace": "ann"}
        ((old,),) = system.rows("select shard from directory where name = 'ann'")
        new = (old + 1) % 3
        moved = http.post("/memory/move", json={"shard": new}, headers=ann).json()
        assert (moved["old"], moved["new"], moved["rows"] > 0) == (old, new, True)
        assert http.post("/memory/move", json={"shard": new}, headers=ann).json()["rows"] == 0
        found = http.post("/memory/recall", json={"query": "Who has a bicycle?"}, headers=ann).json()["results"]
        assert [one["text"] for one in found] == ["ann has a red bicycle."]
        refused = http.post("/memory/move", json={"shard": 3}, headers=ann)
        assert (refused.status_code, "EBB_SHARDS=3 has no shard 3" in refused.text) == (422, True)
        unknown = http.post("/memory/move", json={"shard": 1}, headers={"X-Ebb-Namespace": "never"})
        assert (unknown.status_code, "there is no 'never'" in unknown.text) == (404, True)


def test_a_move_that_is_accepted_waits_for_another_one_and_is_done_once(system: LiveSystem) -> None:
    assert system.ebb("store", "Ann has a red bicycle.", "-n", "ann").returncode == 0
    ((old,),) = system.rows("select shard from directory where name = 'ann'")
    new = (old + 1) % 3
    ann = {"X-Ebb-Namespace": "ann", "Idempotency-Key": "a move"}
    with serving(system) as http:

        def state() -> str:
            return str(http.get(f"/tasks/{task}", headers=ann).json()["state"])

        with psycopg.connect(system.database_url) as other:
            assert shard_moves.try_hold(other)
            task = http.post("/memory/move?wait=false", json={"shard": new}, headers=ann).json()["task"]
            eventually(lambda: system.ask("scheduled") and any(system.ask("scheduled").values()), "the move waits")
            assert state() == "waiting"
        eventually(lambda: state() == "done", "the namespace is moved")
        done = http.get(f"/tasks/{task}", headers=ann).json()["result"]
        assert (done["old"], done["new"]) == (old, new)
    assert system.delivered("memory.move_namespace", {"namespace": "ann", "shard": new}, 1)[0]["rows"] == 0
    again = system.send("memory.move_namespace", {"namespace": "ann", "shard": new}, task)
    assert again.get() == done


@pytest.mark.parametrize(
    ("count", "said"),
    [("1", "EBB_SHARDS=1 is not allowed: the namespace 'ann' is on shard 2."), ("4", "Shard 3: The database has no")],
)
@pytest.mark.parametrize(
    "command", [["export", "--all"], ["shards", "list"], ["keys", "list"], ["reembed"], ["reindex"]], ids=" ".join
)
def test_commands_on_the_database_refuse_another_number_of_shards(
    database_url: str, redis_url: str, tmp_path: Path, command: list[str], count: str, said: str
) -> None:
    schema.apply(database_url, count=3)
    with psycopg.connect(database_url) as db:
        db.execute("insert into directory values ('ann', 2)")
    done = LiveSystem(database_url, redis_url, tmp_path, {"EBB_SHARDS": count}).ebb(*command)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in " ".join(done.stderr.split())


def test_doctor_names_a_shard_that_is_missing_or_differs(system: LiveSystem) -> None:
    system.stop()
    assert "EBB_SHARDS=3" not in system.ebb("doctor").stdout
    with psycopg.connect(system.database_url, autocommit=True) as db:
        (home,) = db.execute("select current_schema()").fetchone() or ("",)
        db.execute(sql.SQL("alter table {}.links drop column strength").format(sql.Identifier(f"{home}_0001")))
        db.execute("insert into directory values ('lost', 7)")
    said = system.ebb("doctor").stdout
    assert "shard 1: column links.strength is missing" in " ".join(said.split())
    assert "the namespace 'lost' is on shard 7. Set EBB_SHARDS=8 or more" in " ".join(said.split())
