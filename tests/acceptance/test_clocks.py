"""Time in a running system: the database's clock dates writes, and other clocks do no harm."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from live_api import serving
from live_system import LiveSystem, eventually

from api.client import Client
from workers.clock import AFTER
from workers.coordination.redis import clock as redis_clock
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance


@pytest.fixture
def client(real: LiveSystem, namespace: str) -> Iterator[Client]:
    with real.client(namespace) as client:
        yield client


def ahead(**by: float) -> str:
    return (datetime.now(UTC) + timedelta(**by)).isoformat()


def stored_at(real: LiveSystem, id_: str) -> datetime:
    ((at,),) = real.rows("select created_at from facts where id = %s", [id_])
    assert isinstance(at, datetime)
    return at


def since(real: LiveSystem, at: datetime) -> float:
    """Return the seconds since an instant, by the database's clock."""
    ((seconds,),) = real.rows("select extract(epoch from clock_timestamp() - %s)::float8", [at])
    return float(seconds)


def checks(real: LiveSystem) -> list[dict[str, Any]]:
    """Return the checks of `ebb doctor`, whether or not they pass."""
    found: list[dict[str, Any]] = json.loads(real.ebb("doctor", "--json").stdout)["checks"]
    return found


DESTROYING: dict[str, dict[str, Any]] = {
    "decay.plan": {"force": True},
    "decay.prune": {},
    "decay.backfill": {"prune": True},
    "memory.purge": {},
    "memory.janitor": {},
    "memory.consolidate": {"apply": True},
    "memory.prune_by_llm": {},
    "memory.thin_course": {},
    "relations.decay": {},
    "memory.doctor": {"mend": True},
}


@pytest.mark.parametrize("days", [365, 2 / 1440, -365], ids=["a year ahead", "two minutes ahead", "a year back"])
@pytest.mark.parametrize("task", DESTROYING)
def test_what_writes_is_refused_at_an_instant_out_of_bounds(
    real: LiveSystem, client: Client, task: str, days: float
) -> None:
    client.store("Tea is at four.", decay_class="session")
    before = real.state()
    everywhere = {} if task in ("memory.prune_by_llm", "memory.thin_course") else {"everywhere": True}
    with pytest.raises(InvalidInputError, match=r"now: .* the database's clock shows .*EBB_TIME_TRAVEL=true"):
        real.send(task, DESTROYING[task] | everywhere | {"now": ahead(days=days)}).get()
    assert real.state() == before


def test_every_interface_refuses_a_pass_in_the_future_but_accepts_a_dry_run(real: LiveSystem, client: Client) -> None:
    client.store("Tea is at four.", decay_class="session")
    next_year = ahead(days=365)
    done = real.ebb("decay", "--now", next_year, "-n", client.namespace)
    assert (done.returncode, "is not allowed: the database's clock shows" in done.stderr) == (1, True)
    assert real.ebb_json("decay", "--now", next_year, "--dry-run", "-n", client.namespace)["forgotten"] == 1
    with serving(real) as api:
        api.headers["X-Ebb-Namespace"] = client.namespace
        for path in ("/memory/decay", "/memory/janitor"):
            refused = api.post(path, json={"now": next_year})
            assert (refused.status_code, "the database's clock shows" in refused.text) == (422, True)
        foretold = api.post("/memory/decay", json={"now": next_year, "dry_run": True})
        assert foretold.json()["forgotten"] == 1
        assert api.post("/memory/janitor", json={"now": ahead(minutes=-5)}).status_code == 200
    assert client.stats()["forgotten"] == 0


@pytest.mark.parametrize(
    "task",
    [
        ("memory.store", {"text": "A year from now."}),
        ("memory.store_many", {"facts": [{"text": "A year from now."}]}),
        ("memory.bring_back", {"records": [{"text": "A year from now."}]}),
        ("memory.relate", {"source": "Ana", "target": "Bea", "type": "knows"}),
        ("memory.settings", {"set": {"hygiene.confidenceDecay.halfLife": 60}}),
        ("memory.put_item", {"path": ["a"], "key": "b", "document": "{}"}),
    ],
    ids=lambda task: str(task[0]),
)
def test_a_write_is_refused_too_and_stores_nothing(
    real: LiveSystem, client: Client, task: tuple[str, dict[str, Any]]
) -> None:
    name, arguments = task
    before = real.state()
    with pytest.raises(InvalidInputError, match="now: "):
        real.send(name, arguments | {"namespace": client.namespace, "now": ahead(days=365)}).get()
    assert real.state() == before


def test_a_clock_a_little_ahead_counts_as_now_and_one_behind_counts_as_it_says(
    real: LiveSystem, client: Client
) -> None:
    ids = [
        real.send("memory.store", {"text": text, "namespace": client.namespace, "now": now}).get()["id"]
        for text, now in (("Half a minute ahead.", ahead(seconds=30)), ("An hour behind.", ahead(hours=-1)))
    ]
    assert 0 <= since(real, stored_at(real, ids[0])) < 60
    assert 3_600 <= since(real, stored_at(real, ids[1])) < 3_660


@pytest.mark.parametrize("days", [365, 1 / 24, -365])
def test_an_accepted_write_is_never_lost_by_a_wrong_clock_but_counts_as_of_now(
    real: LiveSystem, client: Client, days: float
) -> None:
    arguments = {"text": f"Accepted {days}.", "namespace": client.namespace, "now": ahead(days=days)}
    client.accept("memory.store", arguments)
    (stored,) = eventually(lambda: real.facts(client.namespace), "it is stored")
    assert 0 <= since(real, stored_at(real, stored[0])) < 60


def test_what_a_client_writes_is_dated_by_the_servers_whether_it_waits_or_not(real: LiveSystem, client: Client) -> None:
    waited, accepted = client.store("It waits."), client.store("It does not.", wait=False)
    eventually(lambda: len(real.facts(client.namespace)) == 2, "both are stored")
    for id_ in (waited["id"], accepted["id"]):
        assert 0 <= since(real, stored_at(real, id_)) < 60


def test_a_gap_between_passes_is_reported_by_stats_doctor_and_log_until_it_is_confirmed(
    real: LiveSystem, client: Client
) -> None:
    aged = ahead(days=-6)
    arguments = {"text": "Tea is at four.", "decay_class": "session", "namespace": client.namespace, "now": aged}
    real.send("memory.store", arguments).get()
    client.decay(dry_run=True)
    real.rows("insert into pass_clock (at) values (now()) on conflict do nothing")
    real.rows("update pass_clock set at = now() - interval '40 days'")
    assert client.decay(everywhere=True)["held"] >= 1
    assert "NO PASS CAME from" in real.logs()
    stats = client.stats()
    assert (stats["facts"], stats["held"], set(stats["gap"])) == (1, 1, {"from", "until"})
    (clock,) = (one for one in checks(real) if one["name"] == "clock")
    assert not clock["ok"]
    assert re.search(rf"`ebb decay (-n {client.namespace}|--all) --force`", clock["says"])
    assert "kept in 1 namespaces" not in clock["says"]
    assert client.decay(force=True)["forgotten"] == 1
    assert client.stats()["gap"] is None
    client.decay(force=True, everywhere=True)
    (clock,) = (one for one in checks(real) if one["name"] == "clock")
    assert clock["ok"]


def test_a_task_that_is_due_in_an_hour_is_refused_and_one_that_is_due_in_a_moment_waits(
    real: LiveSystem, namespace: str
) -> None:
    fact = {"text": "Mira moved to Leipzig.", "namespace": namespace}
    with pytest.raises(InvalidInputError, match=r"^eta: \S+ is 3\d{3} seconds ahead.*send it when it is due"):
        real.control.send_task("memory.store", kwargs=fact, countdown=3_600).get()
    assert real.facts(namespace) == []
    assert real.control.send_task("memory.store", kwargs=fact, countdown=0.2).get()["action"] == "added"


def test_another_try_begins_at_its_instant_by_redis_whatever_the_clocks_of_workers_show(
    real: LiveSystem, namespace: str
) -> None:
    """The worker that sent it has a clock that is an hour ahead, or an hour behind."""
    for hours in (1, -1):
        fact, begin = {"text": f"Mira is {hours} late.", "namespace": namespace}, redis_clock(real.own_keys)
        due = begin + timedelta(seconds=1)
        eta = datetime.now(UTC) + timedelta(hours=hours)
        other = real.control.send_task(
            "memory.store", kwargs=fact, eta=eta, retries=1, headers={AFTER: due.isoformat()}
        )
        assert other.get()["action"] == "added"
        assert due - timedelta(seconds=0.1) < redis_clock(real.own_keys) < due + timedelta(seconds=60)
