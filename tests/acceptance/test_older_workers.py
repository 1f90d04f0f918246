"""Interfaces with workers of the previous version: missing fields are unknown, unsupported requests are refused."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import redis
from ebb import Memory
from live_api import serving
from live_system import ROOT, LiveSystem, node
from mcp import Client as McpClient
from mcp import StdioServerParameters
from older_worker import RECORDED

from api.client import Client
from api.up import servers
from workers.coordination import key_ring, signals
from workers.errors import InvalidInputError, OlderWorkersError

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ID = RECORDED["memory.store"]["answer"]["id"]
OLDER = "The workers are of an older version"


class OlderSystem(LiveSystem):
    """A system with a worker that answers as the previous version."""

    def _launch(self, name: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "-A", "older_worker", "worker", "--pool=solo"]
        command += ["--queues=recall,store,maintenance", f"--hostname={node(name)}", "--without-mingle"]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=Path(__file__).parent, env=self.environment(), stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip


@pytest.fixture(scope="module")
def older(redis_server: servers.Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OlderSystem]:
    with redis.Redis.from_url(redis_server.url()) as keys:
        keys.flushall()
    system = OlderSystem("postgresql://127.0.0.1:1/none", redis_server.url(), tmp_path_factory.mktemp("older"))
    try:
        system.start("older")
        key_ring.copy(system.own_keys, {})
        yield system
    finally:
        system.stop()


@pytest.fixture(scope="module")
def api(older: OlderSystem) -> Iterator[httpx2.Client]:
    with serving(older) as client:
        yield client


@pytest.fixture
def memory(older: OlderSystem) -> Iterator[Client]:
    with older.client() as client:
        yield client


COMMANDS = (
    ("store", "Mira moved to Leipzig."),
    ("recall", "Where does Mira live?"),
    ("lookup", "Mira"),
    ("context", "Where does Mira live?"),
    ("history", ID),
    ("reinforce", ID),
    ("pin", ID, "--off"),
    ("forget", ID),
    ("restore", ID),
    ("stats",),
    ("forecast",),
    ("contradictions",),
    ("relations",),
    ("settings",),
    ("decay", "--dry-run"),
    ("backfill-decay", "--dry-run"),
    ("consolidate",),
    ("janitor",),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_shows_an_answer_of_older_workers(older: OlderSystem, command: tuple[str, ...]) -> None:
    done = older.ebb(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Only words were matched" not in done.stderr


REFUSED = (
    ("edit", ID, "--importance", "0.7"),
    ("forgotten",),
    ("held",),
    ("restore", "--reason", "asked", "--dry-run"),
    ("decay", "--all"),
    ("prune", "--dry-run"),
    ("purge", "--dry-run"),
    ("branch", "--older", "30d"),
)


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: command[0])
def test_a_command_that_older_workers_do_not_know_says_so(older: OlderSystem, command: tuple[str, ...]) -> None:
    done = older.ebb(*command)
    assert done.returncode == 1
    assert OLDER in done.stderr
    assert "Traceback" not in done.stderr


def test_a_prune_of_one_namespace_never_becomes_one_of_all(memory: Client) -> None:
    for prune in (memory.prune, memory.purge):
        with pytest.raises(OlderWorkersError, match="'namespace'"):
            prune()


def test_an_import_says_that_the_workers_are_older(older: OlderSystem, tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    file.write_text('{"text": "Mira moved to Leipzig."}\n')
    done = older.ebb("import", str(file))
    assert (done.returncode, OLDER in done.stderr) == (1, True)


def test_an_argument_that_no_version_knows_is_still_the_callers_mistake(memory: Client) -> None:
    options: dict[str, Any] = {"colour": "red"}
    with pytest.raises(InvalidInputError, match=r"^colour: is no argument of memory\.recall"):
        memory.recall("Where does Mira live?", **options)


def test_a_write_that_is_not_waited_for_stays_in_the_outbox(older: OlderSystem, memory: Client) -> None:
    task = memory.settings(set={"hygiene.schedule": "off"}, wait=False)["task"]
    memory.stats()
    assert older.accepted(task)
    assert memory.state(task) == {"state": "waiting"}


READ = (
    ("POST", "/memory/recall", {"query": "Where does Mira live?"}),
    ("POST", "/memory/context", {"query": "Where does Mira live?"}),
    ("POST", "/memory/facts", {"text": "Mira moved to Leipzig."}),
    ("POST", "/memory/facts/batch", {"facts": [{"text": "Mira moved to Leipzig."}]}),
    ("POST", "/memory/decay", {"dry_run": True}),
    ("GET", "/memory/lookup?entity=Mira", None),
    ("GET", "/memory/facts?limit=2", None),
    ("GET", f"/memory/facts/{ID}", None),
    ("GET", f"/memory/facts/{ID}/history", None),
    ("GET", "/memory/stats", None),
    ("GET", "/memory/forecast", None),
    ("GET", "/memory/decay/runs", None),
    ("GET", "/metrics", None),
)


@pytest.mark.parametrize(("method", "path", "body"), READ, ids=[f"{method} {path}" for method, path, _ in READ])
def test_a_route_answers_what_older_workers_answer(
    api: httpx2.Client, method: str, path: str, body: dict[str, Any] | None
) -> None:
    answer = api.request(method, path, json=body)
    assert answer.status_code < 400, answer.text


def test_a_recall_over_http_does_not_claim_what_older_workers_did_not_say(api: httpx2.Client) -> None:
    assert "by_meaning" not in api.post("/memory/recall", json={"query": "Where does Mira live?"}).json()


def test_the_library_raises_the_error_of_older_workers(api: httpx2.Client) -> None:
    with Memory(str(api.base_url), retries=0) as memory, pytest.raises(OlderWorkersError, match=OLDER):
        memory.held()


@pytest.mark.parametrize("path", ["/memory/held", "/memory/forgotten", "/memory/branches"])
def test_a_route_that_older_workers_do_not_know_is_unavailable(api: httpx2.Client, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 503
    assert OLDER in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/", "facts", f"facts/{ID}", "forecast", "runs", "recall?query=Mira", "relations"])
def test_a_page_shows_what_older_workers_answer(older: OlderSystem, api: httpx2.Client, path: str) -> None:
    with older.client() as memory:
        signals.note_heartbeat(older.own_keys, "older", ["recall", "store", "maintenance"], memory.seconds())
    page = api.get("/" if path == "/" else f"/dashboard/{path}", headers={"accept": "text/html"})
    assert page.status_code == 200, page.text
    if path.startswith("facts"):
        assert "unknown" in page.text


def test_an_agent_is_answered_by_older_workers_or_learns_that_they_are_older(older: OlderSystem) -> None:
    command, *arguments = older.command("mcp")
    server = StdioServerParameters(command=command, args=arguments, env=older.environment(), cwd=str(ROOT))
    known = {
        "recall": {"query": "Where does Mira live?"},
        "context": {"query": "Where does Mira live?"},
        "lookup": {"entity": "Mira"},
        "stats": {},
        "store": {"text": "Mira moved to Leipzig."},
        "reinforce": {"id": ID},
        "forget": {"ids": [ID]},
        "restore": {"ids": [ID]},
    }

    async def talk() -> None:
        async with McpClient(server, read_timeout_seconds=600) as agent:
            for tool, given in known.items():
                answer = await agent.call_tool(tool, given)
                assert not answer.is_error, answer.content
            for tool, given in {"held": {}, "forgotten": {}, "update": {"id": ID, "tags": ["home"]}}.items():
                refused = await agent.call_tool(tool, given)
                assert refused.is_error
                assert OLDER in json.dumps([one.model_dump(mode="json") for one in refused.content])

    anyio.run(talk)
