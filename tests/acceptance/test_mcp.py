"""MCP, with the SDK's own client: over stdio with a real process, and over HTTP with keys and scopes."""

import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import anyio
import httpx2
import pytest
from live_api import make_key, serving
from live_system import ROOT, LiveSystem
from made_up import DEEP
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

pytestmark = pytest.mark.acceptance

Mode: TypeAlias = Literal["auto", "legacy"]
SECRET = "Zanzibar"
TENANTS_TABLES = ("facts", "activity", "vectors", "links", "relations", "events", "contradictions", "forgotten_hashes")


def calls(one: str, two: str) -> dict[str, dict[str, Any]]:
    """Return for each tool arguments that concern these two facts; a new tool needs its line here."""
    return {
        "recall": {"query": f"Who sails to {SECRET}?", "explain": True},
        "context": {"query": f"Who sails to {SECRET}?"},
        "lookup": {"entity": "Mira"},
        "facts": {"role": "user"},
        "stats": {},
        "forgotten": {},
        "held": {},
        "store": {"text": f"Mira has been to {SECRET}", "supersedes": one},
        "remember": {"messages": [f"Mira has been to {SECRET}"]},
        "update": {"id": two, "tags": ["travel"]},
        "link": {"source": one, "target": two, "type": "RELATED_TO"},
        "relate": {"source": "Mira", "type": "sails_to", "target": SECRET},
        "reinforce": {"id": two},
        "used": {"ids": [two]},
        "forget": {"ids": [two]},
        "restore": {"ids": [two]},
    }


CHANGES_NOTHING_OF_OTHERS = ("recall", "lookup", "facts", "context", "stats", "held", "forgotten", "relate", "remember")
"""Tools that take no ids: they answer a stranger, with what is the stranger's own."""


class Doors:
    """Opens MCP sessions for a namespace, by one transport and in one era of the protocol."""

    def __init__(self, live: LiveSystem, api: httpx2.Client, transport: str, mode: Mode) -> None:
        self.live, self.api, self.transport, self.mode = live, api, transport, mode

    @asynccontextmanager
    async def open(self, namespace: str, *scopes: str) -> AsyncIterator[McpClient]:
        if self.transport == "stdio":
            command, *arguments = self.live.command("mcp", "--namespace", namespace)
            server = StdioServerParameters(command=command, args=arguments, env=self.live.environment(), cwd=str(ROOT))
            async with McpClient(server, mode=self.mode, read_timeout_seconds=600) as client:
                yield client
            return
        key = make_key(self.live, namespace, *scopes or ("read", "write"))
        async with (
            httpx2.AsyncClient(headers=key, timeout=None) as http,
            McpClient(streamable_http_client(f"{self.api.base_url}/mcp", http_client=http), mode=self.mode) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


@pytest.fixture(params=[("stdio", "auto"), ("stdio", "legacy"), ("http", "auto"), ("http", "legacy")], ids=" ".join)
def doors(request: pytest.FixtureRequest, live: LiveSystem, api: httpx2.Client) -> Doors:
    return Doors(live, api, *request.param)


@pytest.fixture(params=["stdio", "http"] if DEEP else ["http"])
def modern_doors(request: pytest.FixtureRequest, live: LiveSystem, api: httpx2.Client) -> Doors:
    return Doors(live, api, request.param, "auto")


def answered(result: CallToolResult) -> dict[str, Any]:
    """Return what a tool answered, which stands in the text as well, for agents that read only that."""
    assert not result.is_error, result.content
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == result.structured_content
    return dict(result.structured_content or {})


def fault(result: CallToolResult) -> str:
    (content,) = result.content
    assert result.is_error
    assert isinstance(content, TextContent)
    return content.text


def rows_of(live: LiveSystem, namespace: str) -> dict[str, Any]:
    """Return every row of one tenant."""
    ((tenant,),) = live.rows("select id from namespaces where name = %s", [namespace])
    return {
        table: live.rows(f"select row_::text from {table} as row_ where namespace = %s order by 1", [tenant])
        for table in TENANTS_TABLES
    }


def test_an_agent_stores_recalls_and_forgets(doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with doors.open(namespace) as agent:
            stored = answered(await agent.call_tool("store", {"text": f"Mira sails to {SECRET}", "tags": ["travel"]}))
            found = answered(await agent.call_tool("recall", {"query": f"Who sails to {SECRET}?"}))
            block = answered(await agent.call_tool("context", {"query": f"Who sails to {SECRET}?"}))
            gone = answered(await agent.call_tool("forget", {"ids": [stored["id"]]}))
            nothing = answered(await agent.call_tool("recall", {"query": f"Who sails to {SECRET}?"}))

        assert stored["action"] == "added"
        assert [one["id"] for one in found["results"]] == [stored["id"]]
        assert found["results"][0]["tags"] == ["travel"]
        assert SECRET in block["context"]
        assert [one["action"] for one in gone["results"]] == ["forgotten"]
        assert nothing["results"] == []

    anyio.run(talk)


def test_a_lookup_is_bounded_and_says_what_it_cut(modern_doors: Doors, namespace: str) -> None:
    with modern_doors.live.client(namespace) as owner:
        owner.store_many([{"text": f"Mira saw boat {number}.", "entity": "Mira"} for number in range(45)])

    async def talk() -> None:
        seen, cursor = [], {}
        async with modern_doors.open(namespace) as agent:
            for shown in (20, 20, 5):
                page = answered(await agent.call_tool("lookup", {"entity": "Mira", **cursor}))
                assert len(page["results"]) == shown
                assert ("cut" in page, "next" in page) == (shown == 20, shown == 20)
                seen += [one["id"] for one in page["results"]]
                cursor = {"cursor": page.get("next")}
            assert len(set(seen)) == 45
            assert "limit" in fault(await agent.call_tool("lookup", {"entity": "Mira", "limit": 1000}))

    anyio.run(talk)


def test_every_tool_says_when_to_use_it_and_what_comes_back(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            tools = (await agent.list_tools()).tools
            instructions = agent.instructions or ""

        assert {tool.name for tool in tools} == calls("", "").keys()
        for tool in tools:
            assert "Return" in (tool.description or "")
            assert all(part.get("description") for part in tool.input_schema.get("properties", {}).values()), tool.name
            assert "call" not in tool.input_schema.get("properties", {})
            assert tool.input_schema["additionalProperties"] is False
        assert "not as instructions" in instructions

    anyio.run(talk)


def test_a_misspelt_argument_is_refused_and_nothing_is_stored(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            said = fault(await agent.call_tool("store", {"text": "Mira moved to Halle.", "superseeds": "x"}))
            assert "superseeds" in said
            assert answered(await agent.call_tool("stats", {}))["facts"] == 0

    anyio.run(talk)


def test_what_cannot_be_is_answered_in_words(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            unknown = fault(await agent.call_tool("reinforce", {"id": str(uuid4())}))
            no_id = fault(await agent.call_tool("forget", {"ids": ["the one about Mira"]}))
            no_number = fault(await agent.call_tool("recall", {"query": "Mira", "limit": "many"}))
            no_type = fault(
                await agent.call_tool("link", {"source": str(uuid4()), "target": str(uuid4()), "type": "X"})
            )

        assert "look for it with `recall`" in unknown
        assert "valid UUID" in no_id
        assert "limit" in no_number
        assert "'SUPERSEDES', 'CAUSED_BY'" in no_type

    anyio.run(talk)


def test_no_tool_reaches_into_another_namespace(modern_doors: Doors, namespace: str) -> None:
    live, stranger, tools = modern_doors.live, f"{namespace}-stranger", calls("", "")
    with live.client(namespace) as owner:
        pairs = {
            tool: [owner.store(f"{name} sails to {SECRET} by {tool}")["id"] for name in ("Mira", "Anselm")]
            for tool in tools
        }
        owner.relate("Anselm", SECRET, "sails_to")
    with live.client(stranger) as other:
        other.store("An otter in the harbour")
    before = rows_of(live, namespace)

    async def talk(name: str) -> dict[str, CallToolResult]:
        async with modern_doors.open(name) as agent:
            assert {known.name for known in (await agent.list_tools()).tools} == tools.keys()
            return {tool: await agent.call_tool(tool, calls(*pairs[tool])[tool]) for tool in tools}

    answers = anyio.run(talk, stranger)
    live.settle()

    assert rows_of(live, namespace) == before
    for tool, answer in answers.items():
        shown = str(answer.content).replace(SECRET, "", 1) if tool == "relate" else str(answer.content)
        assert SECRET not in shown, tool
        assert tool in CHANGES_NOTHING_OF_OTHERS or "unknown" in shown or answer.is_error, tool
    assert not any(answer.is_error for answer in anyio.run(talk, namespace).values())


def test_a_key_without_the_scope_may_not_write(live: LiveSystem, api: httpx2.Client, namespace: str) -> None:
    async def talk() -> None:
        async with Doors(live, api, "http", "auto").open(namespace, "read") as agent:
            refused = fault(await agent.call_tool("store", {"text": "An otter"}))
            assert answered(await agent.call_tool("recall", {"query": "otter"}))["results"] == []
        assert "the scope 'write'" in refused

    anyio.run(talk)


def test_a_key_that_only_reads_does_not_strengthen(live: LiveSystem, api: httpx2.Client, namespace: str) -> None:
    with live.client(namespace) as owner:
        owner.store(f"Mira sails to {SECRET}")

    async def talk() -> None:
        async with Doors(live, api, "http", "auto").open(namespace, "read") as agent:
            assert answered(await agent.call_tool("recall", {"query": SECRET}))["results"]
            assert answered(await agent.call_tool("context", {"query": SECRET}))["facts"]

    anyio.run(talk)
    live.settle()
    ((recalls,),) = live.rows(
        """
        select recall_count from activity join namespaces on namespaces.id = activity.namespace where name = %s
        """,
        [namespace],
    )
    assert recalls == 0


def test_without_a_key_no_caller_is_answered_once_there_are_keys(live: LiveSystem, api: httpx2.Client) -> None:
    make_key(live, "somebody", "read")
    answer = api.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

    assert answer.status_code == 401
    assert "ebb keys create" in answer.json()["detail"]


def test_without_servers_the_command_says_what_to_do(live: LiveSystem, tmp_path: Path) -> None:
    outside = {name: value for name, value in live.environment().items() if not name.startswith("EBB_")}
    command = [*live.command("mcp"), "--home", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "ebb up" in done.stderr
    assert done.stdout == ""
