"""Flower with real workers: it requires a password, answers only to its own host names, and shows no texts."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from live_system import ROOT, LiveSystem, end, eventually

from api.up import processes, servers, supervision
from api.up.home import Home
from workers.errors import NotFoundError

pytestmark = pytest.mark.acceptance

LOGIN = ("mira", "a password")
PAGES = ("/", "/workers", "/tasks", "/broker", "/metrics", "/api/workers?refresh=1", "/api/tasks")
TABLE = "/tasks/datatable?draw=1&start=0&length=1000&search[value]=&order[0][column]=0&order[0][dir]=asc"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of what Flower prints."""
    return tmp_path_factory.mktemp("flower") / "flower.out"


@pytest.fixture(scope="module")
def flower(live: LiveSystem, log: Path) -> Iterator[httpx2.Client]:
    """Yield a client of a Flower that watches the workers of the shared system."""
    port = servers.free_port()
    with started(live, processes.flower("127.0.0.1", port).command, port, log) as client:
        yield client


@contextmanager
def started(
    live: LiveSystem, command: Sequence[str], port: int, log: Path, **variables: str
) -> Iterator[httpx2.Client]:
    """Start Flower; yield a client of it when it answers."""
    environment = live.environment() | {"FLOWER_BASIC_AUTH": ":".join(LOGIN)} | variables
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output) as process,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=None, trust_env=False) as client,
    ):
        try:
            eventually(lambda: _is_well(client) or process.poll() is not None, "Flower answers")
            yield client
        finally:
            end(process)


def _is_well(client: httpx2.Client) -> bool:
    try:
        return client.get("/healthcheck").status_code == 200
    except httpx2.TransportError:
        return False


def _finished(client: httpx2.Client, *names: str) -> dict[str, Any]:
    """Return the tasks that Flower has seen finish, once all of these names are among them."""
    found: dict[str, Any] = client.get("/api/tasks", auth=LOGIN).json()
    ended = {task["name"] for task in found.values() if task["state"] in ("SUCCESS", "FAILURE")}
    return found if ended >= set(names) else {}


def test_flower_answers_where_up_waits_for_it_whatever_its_own_variables_say(live: LiveSystem, tmp_path: Path) -> None:
    port = servers.free_port()
    command = {one.name: one.command for one in supervision.own(Home(tmp_path), children=1, port=port)}["flower"]
    variables = {"FLOWER_UNIX_SOCKET": f"{tmp_path}/flower.sock", "FLOWER_URL_PREFIX": "flower"}
    variables |= {"FLOWER_CERTFILE": "/missing.pem", "FLOWER_KEYFILE": "/missing.pem"}
    with started(live, command, port, tmp_path / "flower.out", **variables) as client:
        assert _is_well(client)


@pytest.mark.parametrize("options", [[], ["--address=127.0.0.1"]], ids=["everywhere", "to this machine alone"])
def test_a_flower_without_password_is_refused(idle: LiveSystem, options: list[str]) -> None:
    command = [sys.executable, "-m", "celery", "-A", "workers", "flower", *options]
    ended = subprocess.run(command, cwd=ROOT, env=idle.environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "not allowed without authentication" in ended.stderr
    assert "--auth" not in ended.stderr, "an option that `ebb flower` does not have"
    assert "FLOWER_BASIC_AUTH" in ended.stderr


@pytest.mark.slow
def test_flower_asks_for_its_password_and_refuses_foreign_names(flower: httpx2.Client) -> None:
    for path in PAGES:
        assert flower.get(path).status_code == 401, path
        assert flower.get(path, auth=("mira", "another")).status_code == 401, path
        assert flower.get(path, auth=LOGIN).status_code == 200, path
    assert flower.get("/healthcheck").text == "OK", "it says no more than that, to a container's health check"
    for path in (*PAGES, "/healthcheck"):
        for host in ("evil.com", "127.0.0.1.evil.com", "localhost.evil.com:80"):
            assert flower.get(path, auth=LOGIN, headers={"Host": host}).status_code == 403, (path, host)
    for host in ("localhost", "[::1]:5555", "127.0.0.1"):
        assert flower.get("/tasks", auth=LOGIN, headers={"Host": host}).status_code == 200, host


def test_flower_sends_no_tasks_as_one_makes_a_key_for_any_namespace(flower: httpx2.Client) -> None:
    for route in ("send-task", "async-apply", "apply"):
        sent = flower.post(f"/api/task/{route}/memory.stats", auth=LOGIN, content="{}")
        assert (sent.status_code, "not sent from here" in sent.text) == (403, True), route


@pytest.mark.slow
def test_no_page_shows_flower_in_a_frame_or_sends_it_what_to_do(flower: httpx2.Client) -> None:
    for path in ("/workers", "/api/workers", "/unknown", "/static/js/flower.js"):
        assert flower.get(path, auth=LOGIN).headers["x-frame-options"] == "DENY", path
    there = {"origin": "http://evil.com", "content-type": "text/plain"}
    revoking = "/api/task/revoke/01a1fd54-5b58-7629-9b8d-dfaf36313cae"
    assert flower.post(revoking, auth=LOGIN, headers=there, content="{}").status_code == 403


def test_flower_shows_tasks_but_no_text_of_any_memory(
    live: LiveSystem, flower: httpx2.Client, log: Path, namespace: str
) -> None:
    with live.client(namespace) as memory:
        eventually(lambda: memory.stats() and flower.get("/api/tasks", auth=LOGIN).json(), "Flower takes events")
        stored = memory.store("Bramblewick hides the key", entity="Quillfeather", value="Zanzibar", tags=["wombat"])
        memory.store_many([{"text": "Bramblewick again"}, {"text": "", "summary": "Bramblewick fails"}])
        memory.recall("where is Bramblewick?")
        with pytest.raises(NotFoundError):
            memory.pin("01a1fd54-5b58-7629-9b8d-dfaf36313cae")
        other = live.send("memory.lookup", {"entity": "Quillfeather", "namespace": namespace})
        assert "Bramblewick" in str(other.get())
        names = ("memory.store", "memory.store_many", "memory.recall", "memory.pin", "memory.lookup")
        tasks = eventually(lambda: _finished(flower, *names), "Flower has seen all tasks")
        pages = [flower.get(path, auth=LOGIN).text for path in (*PAGES, TABLE, *(f"/task/{id_}" for id_ in tasks))]
        result = flower.get(f"/api/task/result/{other.id}", auth=LOGIN)
        logged = log.read_text()
    (store,) = [task for task in tasks.values() if task["name"] == "memory.store" and namespace in task["kwargs"]]
    assert stored["id"] in store["kwargs"]
    assert result.status_code == 403
    shown = "\n".join([*pages, result.text, logged])
    assert [word for word in ("Bramblewick", "Quillfeather", "Zanzibar", "wombat") if word in shown] == []


def test_a_worker_reports_no_text_of_its_current_task(live: LiveSystem, namespace: str) -> None:
    with psycopg.connect(live.database_url) as db:
        db.execute("lock table facts")
        waiting = live.send("memory.store", {"text": "Bramblewick hides the key", "namespace": namespace})
        (request,) = eventually(lambda: live.active("memory.store"), "a worker is at it")
        db.rollback()
    assert waiting.get()["action"] == "added"
    assert namespace in str(request)
    assert "Bramblewick" not in str(request)
