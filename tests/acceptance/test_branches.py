"""Branches through every interface: an older copy to decay, while the original stays unchanged."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from ebb.contract.values import MOST_RESULTS
from live_api import make_key, serving
from live_system import LiveSystem, eventually

from api.client import Client
from workers.coordination import signals
from workers.errors import InvalidInputError, NotFoundError
from workers.storage.connection import connect

pytestmark = pytest.mark.acceptance


@pytest.fixture
def client(real: LiveSystem, namespace: str) -> Iterator[Client]:
    with real.client(namespace) as client:
        client.store_many([{"text": f"Guest {number} has tea."} for number in range(30)])
        client.store("Mira is allergic to nuts.", decay_class="permanent")
        client.relate("Mira", "nuts", "avoids")
        yield client


def test_a_year_is_seen_at_the_command_line_without_touching_anything(real: LiveSystem, client: Client) -> None:
    name = client.namespace
    branch, before = f"{name}-older-365d", client.stats()
    assert real.ebb_json("branch", name, "--older", "365d") == {"branch": branch, "action": "made", "facts": 31}
    assert real.ebb_json("branch", name, "--older", "365d")["action"] == "unchanged"
    again = real.ebb("branch", name, "--older", "365d").stderr
    assert f"drop it first: ebb branch --drop --older 365d -n {name}" in " ".join(again.split())
    (listed,) = real.ebb_json("branch", name, "--list")["branches"]
    assert listed == {"branch": branch, "of": name, "days": 365, "facts": 31, "forgotten": 0, "complete": True}
    assert real.ebb_json("decay", "-n", branch, "--force")["forgotten"] == 30
    aged = real.ebb_json("stats", "-n", branch)
    assert (aged["facts"], aged["forgotten"], aged["branch_of"]) == (1, 30, name)
    assert client.stats() == before
    for older in ([], ["--older", "365d"], ["--older", "365"], ["--older", "0365d"]):
        refused = real.ebb("branch", name, "--drop", *older)
        assert (refused.returncode, "31 facts would be erased for good" in refused.stderr) == (2, True), older
    assert real.ebb_json("branch", name, "--drop", "--yes") == {"dropped": [branch]}
    assert real.ebb_json("branch", name, "--list")["total"] == 0
    assert real.rows("select count(*) from namespaces where name = %s", [branch]) == [(0,)]
    assert client.stats() == before


def test_a_branch_among_thousands_is_not_dropped_before_it_is_confirmed(real: LiveSystem, client: Client) -> None:
    branch = str(client.branch(30)["branch"])
    others = [f"0-{uuid4()}-{number}" for number in range(MOST_RESULTS)]
    adding = "insert into namespaces (name, branch_of) select unnest(%s::text[]), 'gone' returning id"
    real.rows(adding, [others])
    try:
        for dropped in (client.namespace, branch):
            refused = real.ebb("branch", dropped, "--drop")
            assert (refused.returncode, "31 facts would be erased for good" in refused.stderr) == (2, True)
    finally:
        real.rows("delete from namespaces where name = any(%s) returning id", [others])
    assert client.branches()["total"] == 1


def test_the_client_does_all_of_it_and_a_second_delivery_changes_nothing(real: LiveSystem, client: Client) -> None:
    assert client.branch(30)["facts"] == 31
    made = {"namespace": client.namespace, "older": 365}
    first, second = real.delivered("memory.branch", made, 2)
    assert (first["action"], first["facts"], second) == ("made", 31, first)
    assert [one["days"] for one in client.branches()["branches"]] == [30, 365]
    with real.client(f"{client.namespace}-older-365d") as older:
        assert older.drop_branch()["dropped"] == [older.namespace]
    assert client.drop_branch("30d")["dropped"] == [f"{client.namespace}-older-30d"]
    with pytest.raises(NotFoundError, match="is no branch and has none of that age"):
        client.drop_branch()
    with pytest.raises(NotFoundError, match="there is no 'unknown'"), real.client("unknown") as unknown:
        unknown.branch(30)
    with pytest.raises(InvalidInputError, match="older: is not allowed; give whole days"):
        client.branch("1y")


def test_branches_whose_dropping_goes_on_in_another_task_are_all_named(real: LiveSystem, client: Client) -> None:
    name = str(client.branch(30)["branch"])
    rest = {"namespace": client.namespace, "dropped": ["first"], "asked_by": str(uuid4())}
    assert real.send("memory.drop_branch", rest).get() == {"dropped": ["first", name]}


def test_a_second_delivery_of_a_drop_that_was_killed_at_its_end_names_what_is_dropped(
    real: LiveSystem, client: Client
) -> None:
    names, task_id = [str(client.branch(days)["branch"]) for days in (365, 7)], str(uuid4())
    for _ in range(2):
        result = real.send("memory.drop_branch", {"namespace": client.namespace}, task_id)
        assert sorted(result.get()["dropped"]) == sorted(names)
        result.forget()
        signals.drop_done(real.own_keys, task_id)  # which it writes after its last commit


def test_a_branch_that_another_task_copies_is_waited_for_and_one_that_is_dropped_is_not_made_again(
    real: LiveSystem, client: Client
) -> None:
    name, given = str(client.branch(30)["branch"]), {"namespace": client.namespace, "older": 30}
    for drops in (False, True):
        begun = real.begun().get("memory.branch", 0)
        with connect(real.database_url) as other:
            other.execute("update namespaces set branched_at = null where name = %s", [name])
            other.commit()
            other.execute("select from namespaces where name = %s for no key update", [name])
            sent = real.control.AsyncResult(client.accept("memory.branch", given))
            eventually(lambda begun=begun: real.begun().get("memory.branch", 0) > begun, "it has begun")
            eventually(lambda: not real.active("memory.branch"), "it waits for the other task")
        if not drops:
            assert sent.get()["facts"] == 31
            continue
        assert client.drop_branch()["dropped"] == [name]
        with pytest.raises(NotFoundError, match="was dropped while it was made"):
            sent.get()
        assert client.branches()["total"] == 0
        assert not real.accepted(sent.id)  # else it would be sent again, and make the branch


def test_over_http_a_key_branches_its_own_namespace_alone(real: LiveSystem, client: Client) -> None:
    with serving(real) as api, real.client(f"other-{uuid4()}") as other:
        other.store("Tea is at four.")
        other.branch(7)
        key = make_key(real, client.namespace, "read", "write", "admin")
        made = api.post("/memory/branches", json={"days": 365}, headers=key)
        assert made.json() == {"branch": f"{client.namespace}-older-365d", "action": "made", "facts": 31}
        assert api.get("/memory/branches", headers=key).json()["total"] == 1
        assert api.delete("/memory/branches?days=7", headers=key).status_code == 404
        assert api.delete("/memory/branches", headers=key).json() == {"dropped": [made.json()["branch"]]}
        assert other.branches()["total"] == 1
        reader = make_key(real, client.namespace, "read")
        assert api.post("/memory/branches", json={"days": 1}, headers=reader).status_code == 403
