"""The recipes of the manual work as described, each as a program against a running system."""

import json
import re
import subprocess
import sys
from pathlib import Path

import anyio
import httpx2
import pytest
from ebb import Memory
from live_system import ROOT, LiveSystem, clean_environment, eventually
from llm import completion
from mcp import Client as McpClient
from mcp import StdioServerParameters
from stand_in import Handler, StandIn
from stand_in import serving as standing_in

from api.up import servers

pytestmark = pytest.mark.acceptance

RECIPES = ROOT / "api/docs/recipes"


def program(name: str, url: str, **changes: str) -> str:
    """Return the program of a recipe, with the addresses of this system."""
    (found,) = re.findall(r"^```python\n(.*?)^```", (RECIPES / name).read_text(), re.MULTILINE | re.DOTALL)
    for old, new in {"http://127.0.0.1:5556": url, **changes}.items():
        assert old in found
        found = found.replace(old, new)
    return str(found)


def test_a_chat_remembers_earlier_messages(url: str, namespace: str) -> None:
    def answer(handler: Handler) -> None:
        handler.send(200, completion(f"You said: {handler.request_json['messages'][0]['content'][-200:]}"))

    chat = program("chat.md", url, mira=namespace)
    with standing_in(StandIn(answer)) as llm:
        for question in ("\nI moved to Leipzig in the spring.\n", "Who moved to Leipzig?\n"):
            environment = clean_environment({}) | {"LLM_URL": llm.url, "NO_PROXY": "127.0.0.1"}
            done = subprocess.run(
                [sys.executable, "-c", chat],
                input=question,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
    assert "I moved to Leipzig in the spring." in done.stdout


def test_each_user_of_a_service_has_a_memory_of_their_own(url: str, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(program("fastapi.md", url, **{'f"user:{': f'f"{namespace}:{{'}))
    port = servers.free_port()
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--app-dir", str(tmp_path)]
    log = (tmp_path / "log").open("wb")
    with (
        log,
        subprocess.Popen(command, env=clean_environment({}), stdout=log, stderr=log) as service,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=None) as client,
    ):
        try:
            eventually(lambda: service.poll() is not None or answers(client), "the service answers")
            heard = client.post("/messages", json={"text": "I moved to Leipzig."}, headers={"X-User": "mira"})
            asked = {"question": "Who moved to Leipzig?"}
            known = [client.get("/known", params=asked, headers={"X-User": user}).json() for user in ("mira", "anselm")]
        finally:
            service.terminate()
            service.wait()
    assert heard.json() == 1
    assert known == [["I moved to Leipzig."], []]


def answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/docs").status_code == 200
    except httpx2.TransportError:
        return False


def test_a_celery_program_stores_by_name_and_asks_for_a_context(live: LiveSystem, url: str, namespace: str) -> None:
    source = program("celery.md", url, **{"redis://localhost:6379/0": live.redis_url})
    source += f"\nnote.apply(args=({namespace!r}, 'Mira moved to Leipzig.'), throw=True)"
    subprocess.run([sys.executable, "-c", source], env=clean_environment({}), check=True)
    with Memory(url, namespace=namespace) as memory:
        eventually(lambda: memory.facts().facts, "the fact is stored")
    asking = source.rpartition("\n")[0] + f"\nprint(prepare.apply(args=({namespace!r}, 'Who moved to Leipzig?')).get())"
    done = subprocess.run(
        [sys.executable, "-c", asking], env=clean_environment({}), capture_output=True, text=True, check=True
    )
    assert "Mira moved to Leipzig." in done.stdout


@pytest.mark.parametrize("place", [0, 1])
def test_the_configurations_start_a_server_with_tools(live: LiveSystem, place: int) -> None:
    found = re.findall(r"^```json\n(.*?)^```", (RECIPES / "mcp.md").read_text(), re.MULTILINE | re.DOTALL)
    server = json.loads(found[place])["mcpServers"]["memory"]
    assert server["command"] == "ebb"
    environment = live.environment() | server.get("env", {})
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "api.cli", *server["args"]], env=environment, cwd=ROOT
    )

    async def tools() -> set[str]:
        async with McpClient(started) as client:
            return {one.name for one in (await client.list_tools()).tools}

    assert {"recall", "store", "used"} <= anyio.run(tools)
