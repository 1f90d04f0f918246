"""Two groups of shards, each with a broker and workers: one goes on while the broker of the other is away."""

import json
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

import httpx2
import pytest
import server_process
from databases import ON_ONE_SHARD, WITHOUT_FSYNC
from ebb import broker
from live_api import serving
from live_system import LiveSystem, eventually
from load import forget_connections, swept

from api.up import servers
from workers.storage import schema
from workers.storage.shards import schema_of

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, ON_ONE_SHARD]

SHARDS = 4
NAMES = {0: "ann", 1: "zoe"}
"""A namespace of each group."""

SENT_BY_BEAT = {"scheduled": True, "everywhere": True}


class Group(LiveSystem):
    """The workers of one group, and its Redis."""

    def __init__(self, url: str, server: servers.Redis, folder: Path, **settings: str) -> None:
        folder.mkdir()
        super().__init__(url, server.url(), folder, {"EBB_SHARDS": str(SHARDS), **settings})
        self.server = server
        self.away: AbstractContextManager[object] = ExitStack()

    def start_broker(self) -> None:
        """Run this group's Redis until `away` is left."""
        log, fault = self.folder / "redis.log", partial(servers.redis_fault, self.redis_url)
        self.away = server_process.running(self.server.command(), log, fault, signal.SIGKILL)
        self.away.__enter__()

    def stop_broker(self) -> None:
        """Kill this group's Redis; its append-only file stays."""
        self.away.__exit__(None, None, None)
        self.away = ExitStack()

    def stop(self) -> None:
        super().stop()
        self.stop_broker()


@pytest.fixture
def groups(database_url: str, tmp_path: Path) -> Iterator[list[Group]]:
    schema.apply(database_url, count=SHARDS)
    made = [
        servers.Redis(data=tmp_path / f"redis-{number}", port=servers.free_port(), fsync=WITHOUT_FSYNC)
        for number in NAMES
    ]
    for server in made:
        servers.prepare_redis(server)
    brokers = " ".join(server.url() for server in made)
    groups = [Group(database_url, one, tmp_path / f"group-{n}", EBB_BROKERS=brokers) for n, one in enumerate(made)]
    try:
        for group in groups:
            group.start_broker()
            group.start("all")
        yield groups
    finally:
        for group in groups:
            group.stop()


def shards_of(group: Group, name: str) -> list[tuple[int]]:
    return group.rows("select shard from directory where name = %s", [name])


def rows_of(group: Group, shard: int, table: str) -> int:
    ((home,),) = group.rows("select current_schema()")
    ((count,),) = group.rows(f"select count(*) from {schema_of(home, shard)}.{table}")
    return int(count)


def passed(group: Group) -> bool:
    """Send a pass as beat does; return whether users did not wait."""
    return "skipped" not in group.send("decay.plan", SENT_BY_BEAT).get()


def test_each_group_has_its_shards_messages_and_passes_and_goes_on_without_the_other(groups: list[Group]) -> None:
    first, second = groups
    assert {name: broker.number_of(name, 2) for name in NAMES.values()} == {name: n for n, name in NAMES.items()}
    for name in NAMES.values():
        assert first.ebb("store", "The key is under the stone.", "-n", name).returncode == 0
        found = second.ebb_json("recall", "Where is the key?", "-n", name)["results"]
        assert [one["text"] for one in found] == ["The key is under the stone."]
    for number, group in enumerate(groups):
        group.settle()
        assert group.begun()["memory.store"] == group.begun()["memory.recall"] == 1
        ((shard,),) = shards_of(group, NAMES[number])
        assert shard % 2 == number
        assert rows_of(group, shard, "facts where forgotten_at is null") == 1
    eventually(lambda: passed(second), "the second group passes")
    assert [rows_of(first, shard, "decay_runs where work = 'decay'") for shard in range(SHARDS)] == [0, 1, 0, 1]
    eventually(lambda: passed(first), "the first group passes")
    assert [rows_of(first, shard, "decay_runs where work = 'decay'") for shard in range(SHARDS)] == [1, 1, 1, 1]
    assert first.ebb_json("reembed")["waiting"] == 0
    said = [group.ebb("shards", "add").stdout for group in groups]
    assert ["EBB_SHARDS=" in one for one in said] == [False, True], said


def test_the_api_answers_for_the_group_whose_broker_runs(groups: list[Group]) -> None:
    first, second = groups
    keys = {name: first.ebb_json("keys", "create", "-n", name)["key"] for name in NAMES.values()}
    headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
    fact = {"text": "The key is under the stone."}
    with serving(first) as http:
        for name in NAMES.values():
            assert http.post("/memory/facts", json=fact, headers=headers[name]).status_code == 201
        accepted = http.post(
            "/memory/facts?wait=false", json={"text": "The stone is behind the shed."}, headers=headers["ann"]
        )
        assert accepted.status_code == 202
        first.stop_broker()
        assert http.post("/memory/facts", json=fact, headers=headers["ann"]).status_code == 503
        for number in range(20):
            text = f"Stone {number} is red."
            assert http.post("/memory/facts", json={"text": text}, headers=headers["zoe"]).status_code == 201
        found = http.post("/memory/recall", json={"query": "Where is the key?"}, headers=headers["zoe"]).json()
        assert found["results"][0]["text"] == fact["text"]
        assert fact["text"] in http.get("/dashboard/facts", headers=headers["zoe"]).raise_for_status().text
        eventually(lambda: passed(second), "the second group passes")
        check_keys_of_commands(second)
        first.start_broker()
        forget_connections(first)
        eventually(lambda: answers(http, headers["ann"]), "the first group answers again")
        eventually(lambda: swept(first), "what was accepted is stored")
        assert len(first.ebb_json("list", "-n", "ann")["facts"]) == 2


def checked(group: Group, name: str) -> dict[str, str]:
    """Return what `ebb doctor` says of each part that it has a fault in."""
    found = json.loads(group.ebb_process("doctor", "-n", name, "--json").stdout)["checks"]
    return {check["name"]: check["says"] for check in found if not check["ok"]}


def test_doctor_says_what_is_wrong_in_which_group(groups: list[Group]) -> None:
    first, second = groups
    LiveSystem.stop(second)
    for name in NAMES.values():
        workers = checked(first, name)["workers"]
        assert "group 0: 1 answer" in workers
        assert "group 1: no worker serves maintenance, recall, store" in workers
    second.stop_broker()
    for name in NAMES.values():
        wrong = checked(first, name)
        for part in ("Redis", "workers", "outbox"):
            assert "group 0: Redis does not answer" not in wrong[part]
            assert "group 1: Redis does not answer" in wrong[part]


def check_keys_of_commands(group: Group) -> None:
    """Create and revoke a key by commands while the Redis of the other group is away."""
    created = group.ebb("keys", "create", "-n", "zoe", "--json")
    made = json.loads(created.stdout)
    assert "Redis of group 0 does not answer" in made["unpublished"]
    revoked = group.ebb("keys", "revoke", made["id"], "-n", "zoe")
    assert (revoked.returncode, "revoked in the database" in revoked.stderr) == (1, True)
    assert "Traceback" not in created.stderr + revoked.stderr


def answers(http: httpx2.Client, headers: dict[str, str]) -> bool:
    answer = http.post("/memory/recall", json={"query": "key"}, headers=headers).status_code
    assert answer in (200, 503, 504)
    return answer == 200
