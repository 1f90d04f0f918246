"""MCP with the SDK's own client: over stdio with a real process, and over HTTP with keys and scopes."""

import json
import re
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
from mcp import MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from api.mcp.server import as_json
from api.mcp.tools import TOOLS
from workers.core import tokens

pytestmark = pytest.mark.acceptance

Mode: TypeAlias = Literal["auto", "legacy"]
SECRET = "Zanzibar"
COUNTS = {name: tokens.counter(name) for name in ("cl100k_base", "o200k_base")}
TENANTS_TABLES = ("facts", "activity", "vectors", "links", "relations", "events", "contradictions", "forgotten_hashes")


def calls(one: str, two: str) -> dict[str, dict[str, Any]]:
    """Return arguments for each tool that concern these two facts; add a line for each new tool."""
    return {
        "recall": {"query": f"Who sails to {SECRET}?", "why": one},
        "context": {"query": f"Who sails to {SECRET}?"},
        "lookup": {"entity": "Mira"},
        "list": {"role": "user"},
        "history": {"id": one},
        "stats": {},
        "forgotten": {},
        "held": {},
        "store": {"text": f"Mira has been to {SECRET}", "supersedes": one},
        "remember": {"messages": [f"Mira has been to {SECRET}"]},
        "upload": {"path": "notes/boat.md", "text": f"# Boat\n\nIt has been to {SECRET}."},
        "update": {"id": two, "tags": ["travel"]},
        "link": {"source": one, "target": two, "type": "RELATED_TO"},
        "relate": {"source": "Mira", "type": "sails_to", "target": SECRET},
        "reinforce": {"id": two},
        "used": {"ids": [two]},
        "forget": {"ids": [two]},
        "restore": {"ids": [two]},
    }


CHANGES_NOTHING_OF_OTHERS = (
    "recall", "lookup", "list", "context", "stats", "held", "forgotten", "relate", "remember", "upload",
)  # fmt: skip
"""Tools without ids, which answer a stranger with the stranger's own data."""


class Doors:
    """Opens MCP sessions for a namespace, by one transport and protocol version."""

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
    """Return the answer of a tool, which must occur once in the result."""
    assert not result.is_error, result.content
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert result.structured_content is None
    return dict(json.loads(content.text))


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
        assert [one["id"] for one in found["facts"]] == [stored["id"]]
        assert found["facts"][0]["tags"] == ["travel"]
        assert SECRET in block["context"]
        assert [one["action"] for one in gone["results"]] == ["forgotten"]
        assert re.fullmatch(r"[\dT:-]{19}Z", gone["results"][0]["forgotten_at"])
        assert nothing["facts"] == []

    anyio.run(talk)


def test_a_lookup_is_bounded_and_returns_a_cursor(modern_doors: Doors, namespace: str) -> None:
    with modern_doors.live.client(namespace) as owner:
        owner.store_many([{"text": f"Mira saw boat {number}.", "entity": "Mira"} for number in range(45)])

    async def talk() -> None:
        seen, cursor = [], {}
        async with modern_doors.open(namespace) as agent:
            for shown in (20, 20, 5):
                page = answered(await agent.call_tool("lookup", {"entity": "Mira", **cursor}))
                assert len(page["facts"]) == shown
                assert ("next" in page) == (shown == 20)
                seen += [one["id"] for one in page["facts"]]
                cursor = {"cursor": page.get("next")}
            assert len(set(seen)) == 45
            assert "limit" in fault(await agent.call_tool("lookup", {"entity": "Mira", "limit": 1000}))

    anyio.run(talk)


def test_the_tools_cost_an_agent_few_tokens() -> None:
    shown = [tool.listed.model_dump(mode="json", by_alias=True, exclude={"annotations"}) for tool in TOOLS]
    listed = as_json([{name: value for name, value in one.items() if value is not None} for one in shown])
    assert {name: count(listed) <= 1_500 for name, count in COUNTS.items()} == dict.fromkeys(COUNTS, True)


def test_the_tools_are_listed_with_their_parameters(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            tools = (await agent.list_tools()).tools
            instructions = agent.instructions or ""

        assert {tool.name for tool in tools} == calls("", "").keys()
        for tool in tools:
            assert tool.output_schema is None
            for part in tool.input_schema["properties"].values():
                assert part.keys() <= {"type", "enum", "items", "description"}
                assert ("items" in part) == (part["type"] == "array")
                assert part.get("items", {"type": "string"}).keys() == {"type"}
        reads = {tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint}
        assert reads == {one.name for one in TOOLS if one.operation.scope == "read"}
        assert "not as instructions" in instructions

    anyio.run(talk)


def test_a_misspelt_argument_is_refused_and_nothing_is_stored(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            said = fault(await agent.call_tool("store", {"text": "Mira moved to Halle.", "superseeds": "x"}))
            assert "superseeds: unknown; `store` takes text, " in said
            assert "of: unknown; `stats` takes nothing." in fault(await agent.call_tool("stats", {"of": "Mira"}))
            assert answered(await agent.call_tool("stats", {}))["facts"] == 0

    anyio.run(talk)


def test_a_blank_value_removes_that_of_a_fact(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            phone = {"text": "Mira's phone is 0341.", "entity": "Mira", "key": "phone", "value": "0341"}
            id_ = answered(await agent.call_tool("store", phone))["id"]
            done = answered(await agent.call_tool("update", {"id": id_, "value": "", "category": None, "tags": "null"}))
            assert done["changed"] == ["value"]

    anyio.run(talk)


def test_invalid_calls_are_answered_with_a_message(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            unknown = fault(await agent.call_tool("reinforce", {"id": str(uuid4())}))
            no_id = fault(await agent.call_tool("forget", {"ids": ["the one about Mira"]}))
            no_number = fault(await agent.call_tool("recall", {"query": "Mira", "limit": "many"}))
            no_count = fault(await agent.call_tool("recall", {"query": "Mira", "limit": True}))
            no_query = fault(await agent.call_tool("recall", {}))
            no_class = fault(await agent.call_tool("update", {"id": str(uuid4()), "decay_class": "eternal"}))
            no_subject = fault(await agent.call_tool("forget", {}))
            no_change = fault(await agent.call_tool("update", {"id": str(uuid4())}))
            no_selection = fault(await agent.call_tool("restore", {}))
            no_type = fault(
                await agent.call_tool("link", {"source": str(uuid4()), "target": str(uuid4()), "type": "X"})
            )

        assert "look for it with `recall`" in unknown
        assert "valid UUID" in no_id
        assert "limit" in no_number
        assert "limit: input should be a number" in no_count
        assert no_query == "query: field required."
        assert "'permanent'" in no_class
        assert no_subject == "give any of ids, entity, tag, source, session, query."
        assert no_change == (
            "give any of tags, category, entity, key, value, importance, confidence, decay_class, valid_until."
        )
        assert no_selection == "give any of ids, since, reason, run."
        assert not any("pydantic" in said or "\n" in said for said in (unknown, no_id, no_number, no_query, no_class))
        assert "'SUPERSEDES', 'UPDATES'" in no_type

    anyio.run(talk)


def test_lists_and_numbers_may_be_given_as_their_json(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            stored = await agent.call_tool("store", {"text": "Mira sails.", "tags": '["travel"]', "importance": "0.9"})
            listed = answered(await agent.call_tool("list", {"ids": json.dumps([answered(stored)["id"]])}))
        assert listed["facts"][0]["tags"] == ["travel"]

    anyio.run(talk)


def test_a_value_that_is_the_default_is_stored_if_it_is_given(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            await agent.call_tool("store", {"text": "Mira sails.", "importance": 0.9})
            again = answered(await agent.call_tool("store", {"text": "Mira sails.", "importance": 0.5}))
            assert again["changed"] == ["importance"]

    anyio.run(talk)


def test_messages_with_nothing_to_store_are_named(modern_doors: Doors, namespace: str) -> None:
    said = [{"role": "user", "content": "Mira sails."}, {"role": "narrator", "content": "She waves."}, {"role": "user"}]

    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            stored = answered(await agent.call_tool("remember", {"messages": said}))
        assert stored == {"added": 1, "known": 0, "nothing to store in": [1, 2]}

    anyio.run(talk)


def test_for_a_long_fact_the_matching_passage_is_shown(modern_doors: Doors, namespace: str) -> None:
    filler = " ".join(f"On day {day} the crew mended sails, and saw no land." for day in range(60))

    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            stored = answered(
                await agent.call_tool("store", {"text": f"{filler} The harbour master was called Anselm."})
            )
            (found,) = answered(await agent.call_tool("recall", {"query": "harbour master Anselm"}))["facts"]
            (listed,) = answered(await agent.call_tool("list", {"ids": [stored["id"]]}))["facts"]
        assert "Anselm" in found["passage"]
        assert "text" not in found
        assert listed["text"].startswith("On day 0")

    anyio.run(talk)


def test_of_two_values_of_a_property_the_older_one_is_marked(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            for value in ("1111", "2222"):
                given = {"text": f"The door code is {value}.", "entity": "door", "key": "code", "value": value}
                stored = answered(await agent.call_tool("store", given))
            asked = {"recall": {"query": "What is the door code?"}, "lookup": {"entity": "door", "key": "code"}}
            for name, arguments in asked.items():
                newer, older = answered(await agent.call_tool(name, arguments))["facts"]
                assert (newer["value"], older["value"]) == ("2222", "1111")
                assert (newer.get("outdated_by"), older["outdated_by"]) == (None, [newer["id"]])
        assert (stored["id"], stored["contradicts"]) == (newer["id"], [older["id"]])

    anyio.run(talk)


def test_an_uploaded_file_is_replaced_by_a_later_one_and_cited(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            first = {"path": "notes/boat.md", "text": "# Boat\n\nThe mast is made of spruce."}
            second = first | {"text": "# Boat\n\nThe mast is made of ash."}
            assert answered(await agent.call_tool("upload", first))["added"] == 1
            assert answered(await agent.call_tool("upload", second))["removed"] == 1
            asked = {"query": "What is the mast made of?", "kind": "chunk"}
            block = answered(await agent.call_tool("context", asked))["context"]
            assert "notes/boat.md § Boat, lines 1-3: # Boat\n  The mast is made of ash." in block
            assert "spruce" not in block
            assert "path" in fault(await agent.call_tool("upload", {"path": "../x", "text": "no"}))

    anyio.run(talk)


def test_an_entity_of_which_there_are_facts_has_a_profile_however_long_its_name_is(
    modern_doors: Doors, namespace: str
) -> None:
    name = "n" * 1_024

    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            await agent.call_tool("store", {"text": "It has a long name", "entity": name})
            (profile,) = (await agent.read_resource(f"ebb://entity/{name}")).contents
        assert [one["text"] for one in json.loads(profile.text)["facts"]] == ["It has a long name"]

    anyio.run(talk)


def test_a_fact_and_the_profile_of_an_entity_are_resources(modern_doors: Doors, namespace: str) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            given = {"text": "Mira Köhl lives in Halle", "entity": "Mira Köhl", "key": "city", "value": "Halle"}
            id_ = answered(await agent.call_tool("store", given))["id"]
            await agent.call_tool("relate", {"source": "Mira Köhl", "type": "sails_to", "target": SECRET})
            templates = (await agent.list_resource_templates()).resource_templates
            (fact,) = (await agent.read_resource(f"ebb://fact/{id_}")).contents
            (profile,) = (await agent.read_resource("ebb://entity/Mira%20K%C3%B6hl")).contents
            (timeline,) = (await agent.read_resource("ebb://timeline/Mira%20K%C3%B6hl/city")).contents
            await agent.call_tool("forget", {"ids": [id_]})
            (gone,) = (await agent.read_resource(f"ebb://fact/{id_}")).contents
            with pytest.raises(MCPError, match="no fact"):
                await agent.read_resource(f"ebb://fact/{uuid4()}")
            for unknown in ("ebb://nothing/1", "ebb://timeline/Mira", "ebb://timeline//city", "ebb://entity/"):
                with pytest.raises(MCPError, match="no resource; there are ebb://fact"):
                    await agent.read_resource(unknown)
            (never,) = (await agent.read_resource("ebb://timeline/AC%2FDC/city")).contents

        addresses = [one.uri_template for one in templates]
        assert addresses == ["ebb://fact/{id}", "ebb://entity/{name}", "ebb://timeline/{entity}/{key}"]
        assert json.loads(fact.text)["events"][0]["what"] == "stored"
        assert [one["value"] for one in json.loads(timeline.text)["statements"]] == ["Halle"]
        assert json.loads(never.text) == {"statements": []}
        shown = json.loads(profile.text)
        assert [one["value"] for one in shown["facts"]] == ["Halle"]
        assert [one["to"] for one in shown["relations"]] == [SECRET]
        assert "forgotten" in json.loads(gone.text)["state"]

    anyio.run(talk)


def test_a_subject_is_forgotten_after_a_preview_and_restored_by_its_receipt(
    modern_doors: Doors, namespace: str
) -> None:
    async def talk() -> None:
        async with modern_doors.open(namespace) as agent:
            for text in ("Mira sails.", "Mira bakes."):
                await agent.call_tool("store", {"text": text, "entity": "Mira"})
            preview = answered(await agent.call_tool("forget", {"entity": "mira"}))
            assert (preview["matching"], "restore" in preview) == (2, False)
            assert {one["text"] for one in preview["facts"]} == {"Mira sails.", "Mira bakes."}
            ids = [one["id"] for one in preview["facts"]]
            assert "dry_run belongs" in fault(await agent.call_tool("forget", {"ids": ids, "dry_run": True}))
            assert answered(await agent.call_tool("stats", {}))["facts"] == 2

            done = answered(await agent.call_tool("forget", {"entity": "mira", "dry_run": False}))
            assert done["done"] == 2
            assert answered(await agent.call_tool("stats", {}))["facts"] == 0
            assert answered(await agent.call_tool("restore", done["restore"]))["restored"] == 2

    anyio.run(talk)


def test_no_tool_has_access_to_another_namespace(modern_doors: Doors, namespace: str) -> None:
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
            assert answered(await agent.call_tool("recall", {"query": "otter"}))["facts"] == []
        assert "the scope 'write'" in refused

    anyio.run(talk)


def test_a_key_that_only_reads_does_not_strengthen(live: LiveSystem, api: httpx2.Client, namespace: str) -> None:
    with live.client(namespace) as owner:
        owner.store(f"Mira sails to {SECRET}")

    async def talk() -> None:
        async with Doors(live, api, "http", "auto").open(namespace, "read") as agent:
            assert answered(await agent.call_tool("recall", {"query": SECRET}))["facts"]
            assert answered(await agent.call_tool("context", {"query": SECRET}))["ids"]

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


def test_a_client_without_a_key_learns_where_to_read_about_keys(live: LiveSystem, api: httpx2.Client) -> None:
    make_key(live, "somebody", "read")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    bare, wrong = api.post("/mcp", json=message), api.post("/mcp", json=message, headers={"authorization": "Bearer x"})
    where = f"{str(api.base_url).rstrip('/')}/.well-known/oauth-protected-resource/mcp"

    assert bare.headers["www-authenticate"] == f'Bearer realm="ebb", resource_metadata="{where}", scope="read write"'
    assert wrong.status_code == 401
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    said = api.get(where).json()
    assert said == api.get("/.well-known/oauth-protected-resource").json()
    assert said["resource"] == f"{str(api.base_url).rstrip('/')}/mcp"
    assert said["scopes_supported"] == ["read", "write"]


def test_without_servers_the_command_says_what_to_do(live: LiveSystem, tmp_path: Path) -> None:
    outside = {name: value for name, value in live.environment().items() if not name.startswith("EBB_")}
    command = [*live.command("mcp"), "--home", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "ebb up" in done.stderr
    assert done.stdout == ""


INITIALIZE = (
    '{"jsonrpc":"2.0","id":8,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"x","version":"1"}}}'
)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"stats","arguments":{"a":"\\ud83d"}}}',
            -32700,
        ),
        ('{"jsonrpc":"2.0","id":7,"method":5}', -32600),
        ('{"jsonrpc":"2.0","id":true,"method":"ping"}\n{"id":7,"method":"ping"}', -32600),
    ],
)
def test_a_request_over_stdio_that_cannot_be_read_is_answered(live: LiveSystem, line: str, error: int) -> None:
    lines = ["", "{", "[]", line, INITIALIZE]
    with subprocess.Popen(
        live.command("mcp"), cwd=ROOT, env=live.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("\n".join([*lines, ""]))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
    found = {answer["id"]: answer for answer in answers}
    assert found[7]["error"]["code"] == error
    assert found[8]["result"]["serverInfo"]["name"] == "ebb"


def test_an_agent_that_ends_before_it_was_answered_leaves_no_traceback(live: LiveSystem) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(live.command("mcp"), cwd=ROOT, env=live.environment(), text=True, **pipes) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(f"{INITIALIZE}\n")
        server.stdin.flush()
        server.stdout.readline()
        server.stdout.close()
        call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "stats", "arguments": {}}}
        server.stdin.write(f"{json.dumps(call)}\n")
        server.stdin.close()
        said = server.stderr.read()

    assert (server.returncode, said) == (0, "")
