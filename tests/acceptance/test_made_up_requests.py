"""Generated requests of OpenMemory's clients, MCP calls and commands: all are answered or refused with a message."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from command_line import run
from hypothesis import given
from hypothesis import strategies as st
from live_api import serving
from live_system import LiveSystem
from made_up import JSON, TEXTS, examples, spoilt
from mcp import Client as McpClient
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from typer.main import get_command
from typer.testing import CliRunner

from api.cli import command_line
from workers.errors import EbbError

pytestmark = [pytest.mark.acceptance, pytest.mark.long, pytest.mark.usefixtures("traceback_logged")]

ONE = "0198c0de-0000-7000-8000-000000000001"
LONG = "x" * 70_000
USER = "made-up-user"
FILTERS = {"sector": "semantic", "min_score": 0.1, "user_id": USER, "startTime": 1, "endTime": 10**13, "tags": ["a"]}
REQUESTS: dict[str, dict[str, Any]] = {
    "POST /memory/add": {"content": "Mira moved.", "tags": ["a"], "metadata": {"sector": "semantic"}, "user_id": USER,
                         "salience": 0.5},
    "POST /memory/query": {"query": "Mira", "k": 3, "filters": FILTERS, "user_id": USER, "startTime": 1, "endTime": 2},
    "POST /memory/reinforce": {"id": ONE, "boost": 0.2},
    "PATCH /memory/{id}": {"content": "Mira stayed.", "tags": ["b"], "metadata": {"a": 1}, "user_id": USER},
    "GET /memory/{id}": {"user_id": USER},
    "GET /memory/all": {"limit": 3, "offset": 1, "l": 3, "u": 1, "sector": "semantic", "user_id": USER},
    "GET /users/{id}/memories": {"limit": 3, "offset": 1, "l": 3, "u": 1},
    "DELETE /users/{id}/memories": {},
    "DELETE /memory/{id}": {"user_id": USER},
}  # fmt: skip
CALLS: dict[str, dict[str, Any]] = {
    "recall": {"query": "Mira", "limit": 3, "tag": "a", "known_as_of": "2026-01-01"},
    "context": {"query": "Mira", "max_tokens": 90, "kind": "semantic", "deep": True},
    "lookup": {"entity": "Mira", "key": "home"},
    "list": {"ids": [ONE], "role": "user", "limit": 3},
    "history": {"id": ONE},
    "stats": {},
    "forgotten": {"since": "2026-01-01", "reason": "expired", "run": ONE, "limit": 3},
    "held": {"limit": 3},
    "store": {"text": "Mira moved.", "supersedes": ONE, "tags": ["a"], "entity": "Mira"},
    "link": {"source": ONE, "target": ONE, "type": "RELATED_TO"},
    "relate": {"source": "Mira", "type": "sails_to", "target": "Halle"},
    "reinforce": {"id": ONE},
    "used": {"ids": [ONE]},
    "update": {"id": ONE, "tags": ["a"], "importance": 0.5},
    "forget": {"ids": [ONE]},
    "restore": {"ids": [ONE]},
}
COMMANDS: dict[str, list[str]] = {
    "store": ["Mira moved.", "--tags", "a", "--turn", "1", "--salience", "0.5", "--as-of"],
    "recall": ["Mira", "--limit", "3", "--tag", "a", "--as-of", "2026-01-01", "--explain"],
    "lookup": ["Mira", "home", "--tag", "a"],
    "timeline": ["Mira", "home", "--limit", "3"],
    "remember": ["no-such-file.json", "--session", "s"],
    "context": ["Mira", "--max-tokens", "90", "--order", "rank"],
    "reinforce": [ONE, "--boost", "0.2"],
    "used": [ONE],
    "forget": [ONE],
    "restore": [ONE],
    "forgotten": ["--since", "2026-01-01", "--reason", "expired", "--limit", "3"],
    "history": [ONE],
    "pin": [ONE, "--until", "2030-01-01"],
    "edit": [ONE, "--tag", "a", "--importance", "0.5", "--clear", "category"],
    "link": [ONE, ONE, "PART_OF", "--strength", "0.5"],
    "unlink": [ONE, ONE],
    "relate": ["Mira", "sails_to", "Halle", "--weight", "0.5"],
    "unrelate": ["Mira", "sails_to", "Halle"],
    "relations": ["--limit", "3"],
    "contradictions": ["--limit", "3"],
    "resolve": [ONE, "--keep", ONE],
    "forecast": ["--days", "3"],
    "held": ["--limit", "3"],
    "decay": ["--dry-run", "--now", "2026-01-01"],
    "prune": ["--dry-run", "--now", "2026-01-01"],
    "purge": ["--dry-run", "--now", "2026-01-01"],
    "settings": ["--set", "hygiene.schedule=manual", "--unset", "hygiene.episodicTTL"],
    "import": ["/absent.jsonl", "--from", "mem0"],
    "export": ["/absent/out.jsonl", "--now", "2026-01-01"],
    "index": ["/absent", "--register", "--as", "made"],
    "consolidate": ["--limit", "3"],
    "janitor": [],
    "list": ["--limit", "3", "--tier", "hot"],
    "stats": [],
    "doctor": [],
    "backfill-decay": ["--dry-run"],
    "branch": ["--older", "30d"],
}
ELSEWHERE = (
    "up", "down", "status", "mcp", "migrate", "reembed", "reindex", "keys", "shards", "worker", "beat", "flower", "api",
)  # fmt: skip
"""Commands that start, stop or rebuild the whole system."""

SPOKEN = st.one_of(TEXTS, st.sampled_from(["\udcff", "-", "--", "--json", "-n", "/dev/null", "1e400", "0x1"]))


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live, EBB_OPENMEMORY_API="1") as client:
        yield client


@pytest.mark.parametrize("route", sorted(REQUESTS))
@examples(10)
@given(data=st.data())
def test_any_request_of_openmemorys_clients_is_answered(api: httpx2.Client, route: str, data: st.DataObject) -> None:
    method, path = route.split(" ")
    id_ = data.draw(st.sampled_from([ONE, USER, "no-id", "%00", "%2F", "x" * 300, "%ED%A0%80"]))
    given = data.draw(st.one_of(JSON, spoilt(REQUESTS[route]))) if method in ("POST", "PATCH") else None
    asked = {} if given is not None else data.draw(spoilt(REQUESTS[route], TEXTS.filter(_is_unicode)))
    asked = {name: value for name, value in asked.items() if _is_unicode(name)}
    body, kind = json.dumps(given).encode(), {"content-type": "application/json"}
    answer = api.request(method, path.replace("{id}", id_), content=body, headers=kind, params=asked or None)
    assert answer.status_code < 500, answer.text
    assert answer.headers["content-type"].startswith("application/"), answer.text


@pytest.mark.parametrize("tool", sorted(CALLS))
@examples(4, least=2)
@given(data=st.data())
def test_any_call_of_a_tool_is_answered_with_a_message(api: httpx2.Client, tool: str, data: st.DataObject) -> None:
    arguments = data.draw(spoilt(CALLS[tool]).filter(lambda one: _is_unicode(json.dumps(one, ensure_ascii=False))))

    async def call() -> str:
        async with (
            httpx2.AsyncClient(timeout=None) as http,
            McpClient(streamable_http_client(f"{api.base_url}/mcp", http_client=http)) as client,
        ):
            try:
                result = await client.call_tool(tool, arguments)
            except MCPError as refused:
                return str(refused)
            return " ".join(getattr(part, "text", "") for part in result.content)

    said = anyio.run(call)
    assert said
    assert "The worker failed" not in said


def test_every_command_is_known_here() -> None:
    known = set(get_command(command_line()).commands)  # type: ignore[attr-defined]
    assert known == {*COMMANDS, *ELSEWHERE}


@pytest.mark.parametrize("command", sorted(COMMANDS))
@examples(5, least=2)
@given(data=st.data())
def test_any_command_line_ends_with_a_message(
    live: LiveSystem, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    monkeypatch.chdir(tmp_path)
    words = data.draw(st.lists(st.one_of(st.sampled_from([*COMMANDS[command], ONE]), SPOKEN), max_size=4))
    start = data.draw(st.sampled_from([COMMANDS[command], COMMANDS[command][:1], []]))
    words = [word for word in [*start, *words] if "\0" not in word and not (command == "index" and is_folder(word))]
    done = CliRunner(env=live.environment() | {"EBB_NAMESPACE": "made-up"}).invoke(command_line(), [command, *words])
    assert done.exit_code in (0, 1, 2), done.output
    assert isinstance(done.exception, EbbError | SystemExit | None), repr(done.exception)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["doctor"], ["stats"], ["export"], ["store", "Mira moved."], ["purge", "--scrub"]])
def test_unreachable_servers_are_reported_with_a_message(command: list[str], tmp_path: Path) -> None:
    away = {"EBB_REDIS_URL": "redis://127.0.0.1:1/0", "EBB_DATABASE_URL": "postgresql://127.0.0.1:1/x"}
    done = CliRunner(env=away | {"EBB_HOME": str(tmp_path)}).invoke(command_line(), command)
    assert done.exit_code == 1
    assert isinstance(done.exception, EbbError | SystemExit), repr(done.exception)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([LONG], f"No such command '{LONG[:79]}…'."),
        ([f"--{LONG}"], f"No such option: --{LONG[:78]}…"),
        (["store", f"--{LONG}"], f"No such option: --{LONG[:78]}…"),
        (["settings", "--set", LONG], f"'{LONG[:79]}… is no PATH=VALUE."),
        (["edit", ONE, "--clear", LONG], f"'{LONG[:79]}… is no field"),
        (["worker", "--queues", LONG], f"'{LONG[:79]}… is no queue"),
        (["export", "--home", f"/tmp/{LONG}"], f"Ebb is not running at /tmp/{LONG[:75]}…"),
    ],
)
def test_errors_show_the_beginning_of_what_is_far_too_long(command: list[str], said: str) -> None:
    done = run(command, {})
    shown = "".join(done.stderr.split())
    assert done.returncode == (1 if "--home" in command else 2)
    assert "".join(said.split()) in shown
    assert len(shown) < 500


def test_nothing_failed_unseen(traceback_logged: Callable[[], str]) -> None:
    assert not traceback_logged()


def is_folder(word: str) -> bool:
    """Return whether a word names a folder of this machine, which must not be indexed by accident."""
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):
        return False


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)
