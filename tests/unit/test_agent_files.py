"""Conversion of agent files to facts: blocks, passages, statements and turns."""

import io
import json
import tarfile
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import JSON, examples, spoilt, spoilt_within

from api.contrib import foreign
from api.contrib.agent_files import LONGEST_MANIFEST, letta
from api.contrib.records import LONGEST
from workers.errors import InvalidInputError
from workers.validation.facts import new_fact

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CALL = {"id": "c", "type": "function", "function": {"name": "send_message", "arguments": '{"message": "Since when?"}'}}
SEARCH = {"id": "c", "type": "function", "function": {"name": "archival_memory_search", "arguments": "{}"}}
AGENT_FILE = {
    "agents": [
        {
            "id": "agent-0",
            "name": "Skipper",
            "system": "You are Skipper.",
            "block_ids": ["block-0"],
            "in_context_message_ids": ["message-0"],
            "messages": [
                {"id": "message-0", "role": "system", "content": "You are Skipper."},
                {
                    "id": "message-1", "role": "user", "created_at": "2026-01-31T08:00:00+00:00",
                    "content": [{"type": "text", "text": '{"type": "user_message", "message": "I moved to Leipzig."}'}],
                },
                {"id": "message-2", "role": "user", "content": '{"type": "heartbeat", "reason": "again"}'},
                {"id": "message-3", "role": "assistant", "content": "I look it up.", "tool_calls": [SEARCH]},
                {"id": "message-4", "role": "tool", "content": '{"status": "OK", "message": "None"}'},
                {"id": "message-5", "role": "assistant", "content": "They moved.", "tool_calls": [CALL]},
                {"id": "message-6", "role": "user", "content": "Since May."},
            ],
        }
    ],
    "blocks": [{"id": "block-0", "label": "human", "value": "Name: Mira", "limit": 5000}, {"id": "b", "value": "x"}],
    "tools": [],
}  # fmt: skip
COGX: dict[str, list[Any]] = {
    "manifest.json": [{"cogx_version": "0.1"}],
    "entities.jsonl": [
        {"kind": "entity", "external_id": "e1", "name": "Mira", "entity_type": "person", "description": "a sailor"},
        {"kind": "entity", "external_id": "e2", "name": "Leipzig"},
    ],
    "facts.jsonl": [
        {
            "kind": "fact", "external_id": "f1", "subject_ref": "e1", "predicate": "lives_in", "object_ref": "e2",
            "valid_at": "2026-05-01T00:00:00Z", "invalid_at": "2026-09-01T00:00:00Z", "confidence": 0.9,
        }
    ],
    "memories.jsonl": [
        {
            "kind": "memory", "external_id": "m1", "content": "Mira likes tea", "categories": ["Taste"],
            "scope": {"user_id": "mira", "session_id": "s"}, "created_at": "2026-01-31T08:00:00Z",
        }
    ],
    "memory_blocks.jsonl": [{"kind": "memory_block", "external_id": "b1", "label": "human", "value": "Name: Mira"}],
    "episodes.jsonl": [
        {
            "kind": "episode", "external_id": "p1", "turns": [
                {"role": "user", "content": "Hello", "occurred_at": "2026-01-31T08:00:00Z"},
                {"role": "assistant", "content": "Hi"},
            ],
        }
    ],
    "documents.jsonl": [{"kind": "document", "external_id": "d1", "content": "word " * 20_000, "title": "Words"}],
    "nodes.jsonl": [{"id": "n", "type": "TextSummary"}],
}  # fmt: skip


def facts(product: str, content: bytes) -> list[Any]:
    with foreign.lines(io.BytesIO(content), product, NOW) as lines:
        return [json.loads(line) for line in lines]


def packed(files: dict[str, Any], mode: str = "w:gz") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:  # type: ignore[call-overload]  # the mode is a test's
        for name, records in files.items():
            content = "\n".join(map(json.dumps, records)).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def test_an_agent_file_has_blocks_and_turns() -> None:
    block, *turns = facts("letta", json.dumps(AGENT_FILE).encode())

    assert (block["text"], block["category"], block["source"]) == ("Name: Mira", "human", "letta")
    assert block["metadata"] == {"agent": "Skipper", "label": "human"}
    assert [(one["role"], one["text"], one["turn"]) for one in turns] == [
        ("user", "I moved to Leipzig.", 0), ("assistant", "Since when?", 1), ("user", "Since May.", 2),
    ]  # fmt: skip
    assert turns[0]["source_date"] == "2026-01-31T08:00:00+00:00"
    assert {one["session"] for one in turns} == {"Skipper"}


def test_an_agent_at_the_top_of_a_file_has_passages_too() -> None:
    agent = {
        "name": "Skipper",
        "core_memory": [{"label": "persona", "value": "A sailor"}],
        "archival_memory": [{"text": "The boat leaks", "created_at": "2026-01-31"}, {"text": "word " * 20_000}],
    }  # fmt: skip
    block, passage, *parts = facts("letta", json.dumps(agent).encode())

    assert (block["text"], passage["text"], passage["metadata"]) == ("A sailor", "The boat leaks", {"agent": "Skipper"})
    assert [len(one["text"].encode()) <= 65_536 for one in parts] == [True, True]


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_a_cogx_archive_has_memories_statements_and_turns(mode: str) -> None:
    found = facts("cogx", packed({f"./{name}": records for name, records in COGX.items()}, mode))
    by_text = {one["text"]: one for one in found}

    assert by_text["Mira: a sailor"]["entity"] == "Mira"
    lives = by_text["Mira lives in Leipzig"]
    assert (lives["entity"], lives["key"], lives["value"]) == ("Mira", "lives_in", "Leipzig")
    assert (lives["valid_from"], lives["valid_until"]) == ("2026-05-01T00:00:00Z", "2026-09-01T00:00:00Z")
    tea = by_text["Mira likes tea"]
    assert (tea["namespace"], tea["session"], tea["tags"]) == ("mira", "s", ["taste"])
    assert [(one["role"], one["text"]) for one in found if one.get("session") == "p1"] == [
        ("user", "Hello"), ("assistant", "Hi"),
    ]  # fmt: skip
    assert sum(one["text"].startswith("word") for one in found) == 2
    assert len(found) == 8


def test_edges_of_nodes_without_a_name_are_no_statements() -> None:
    chunk, mira = "11111111-2222-4333-8444-555555555555", "11111111-2222-4333-8444-666666666666"
    edges = [
        {"kind": "fact", "external_id": "1", "subject_ref": chunk, "predicate": "contains", "object_ref": mira},
        {"kind": "fact", "external_id": "2", "subject_ref": mira, "predicate": "is_a", "object_ref": chunk,
         "fact_text": "Mira is a person"},
        {"kind": "fact", "external_id": "3", "subject_ref": mira, "predicate": "likes", "object_ref": "tea"},
    ]  # fmt: skip
    named = [{"kind": "entity", "external_id": mira, "name": "Mira"}]
    found = facts("cogx", packed({"entities.jsonl": named, "facts.jsonl": edges}))

    assert [(one["text"], one.get("entity")) for one in found] == [
        ("Mira is a person", None),
        ("Mira likes tea", "Mira"),
    ]


def test_a_missing_name_is_not_called_none() -> None:
    nameless = {"kind": "entity", "external_id": "e", "name": None, "description": "A ferry to Pula."}
    edges = [
        {"kind": "fact", "subject_ref": "Ana", "object_ref": None, "predicate": "knows"},
        {"kind": "fact", "subject_ref": "Ana", "object_ref": "Bonn"},
        {"kind": "fact", "subject_ref": "e", "object_ref": "Bonn", "predicate": "goes_to"},
    ]
    found = facts("cogx", packed({"entities.jsonl": [nameless], "facts.jsonl": edges}))
    assert [(one["text"], one.get("entity")) for one in found] == [("A ferry to Pula.", None)]


def test_an_archive_of_a_later_version_is_refused() -> None:
    assert facts("cogx", packed({**COGX, "manifest.json": [{"cogx_version": "0.2"}]}))
    with pytest.raises(InvalidInputError, match=r"version 1\.0 of COGX"):
        facts("cogx", packed({**COGX, "manifest.json": [{"cogx_version": "1.0"}]}))


def test_a_manifest_without_end_is_not_read_to_its_end() -> None:
    endless = packed({**COGX, "manifest.json": [{"padding": " " * 64 * LONGEST_MANIFEST}]})
    tracemalloc.start()
    try:
        assert facts("cogx", endless)
        assert tracemalloc.get_traced_memory()[1] < 16 * LONGEST_MANIFEST
    finally:
        tracemalloc.stop()


def test_the_lines_of_one_file_of_an_archive_are_read_too() -> None:
    assert [one["text"] for one in facts("cogx", json.dumps(COGX["memories.jsonl"][0]).encode())] == ["Mira likes tea"]


def test_the_same_file_has_the_same_ids_again() -> None:
    for product, content in [("letta", json.dumps(AGENT_FILE).encode()), ("cogx", packed(COGX))]:
        ids = [one["id"] for one in facts(product, content)]
        assert ids == [one["id"] for one in facts(product, content)]
        assert len(set(ids)) == len(ids)


def test_two_agents_whose_parts_have_the_same_numbers_have_ids_of_their_own() -> None:
    other = {
        "agents": [AGENT_FILE["agents"][0] | {"messages": [{"id": "message-1", "role": "user", "content": "Hello"}]}],
        "blocks": [{"id": "block-0", "label": "human", "value": "Name: Jonas"}],
    }
    first, second = (facts("letta", json.dumps(one).encode()) for one in (AGENT_FILE, other))

    assert {one["id"] for one in first}.isdisjoint(one["id"] for one in second)


def test_a_later_export_of_an_agent_gives_known_turns_the_same_ids() -> None:
    said = [
        {"role": "user", "content": f"Day {day}", "created_at": f"2026-01-0{day}T08:00:00+00:00"} for day in (1, 2, 3)
    ]
    first, second = (
        facts("letta", json.dumps({"name": "Skipper", "messages": messages}).encode())
        for messages in (said[:2], said[1:])
    )

    assert first[1]["id"] == second[0]["id"]
    assert len({one["id"] for one in first + second}) == 3


def test_agent_messages_without_a_tool_are_read_besides_tool_calls() -> None:
    content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look it up."}]
    messages = [{"role": "assistant", "content": content, "tool_calls": [SEARCH]}]
    agent = {"agent_type": "letta_v1_agent", "messages": messages}

    assert [one["text"] for one in facts("letta", json.dumps(agent).encode())] == ["I look it up."]
    assert facts("letta", json.dumps(agent | {"agent_type": "memgpt_agent"}).encode()) == []


@pytest.mark.parametrize("ids", [[["block-0"]], [{}], 5, [None]])
def test_ids_of_blocks_of_other_types_name_no_block(ids: Any) -> None:
    agent = {"name": "Skipper", "block_ids": ids, "messages": [{"role": "user", "content": "Since May."}]}
    blocks = [{"id": ["block-0"], "value": "A"}, {"id": "b", "value": "B"}, {"value": "C"}]

    found = [one["text"] for one in facts("letta", json.dumps({"agents": [agent], "blocks": blocks}).encode())]
    assert "Since May." in found
    assert not {"B", "C"} & {*found}


def test_an_agent_file_that_is_one_json_string_is_read() -> None:
    content = json.dumps(AGENT_FILE)
    assert facts("letta", json.dumps(content).encode()) == facts("letta", content.encode())
    for other in ("no agent", "12"):
        with pytest.raises(InvalidInputError, match="is a single value"):
            facts("letta", json.dumps(other).encode())
    with pytest.raises(InvalidInputError, match="one JSON string of more than 8,388,608 characters"):
        facts("letta", json.dumps(json.dumps(AGENT_FILE) + " " * LONGEST).encode())


def test_a_file_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no agent file: it has neither agents nor"):
        list(letta(io.BytesIO(b'[{"mapping": {}, "title": "An export of ChatGPT"}]')))


def test_empty_blocks_are_left_out() -> None:
    blocks = [{"label": "human", "value": ""}, {"label": "ideas", "value": "\n\n"}]
    blocks.append({"label": "persona", "value": "A sailor"})

    assert [one["text"] for one in facts("letta", json.dumps({"core_memory": blocks}).encode())] == ["A sailor"]


def test_converted_facts_can_be_stored() -> None:
    for product, content in [("letta", json.dumps(AGENT_FILE).encode()), ("cogx", packed(COGX))]:
        found = facts(product, content)
        assert found
        for fact in found:
            assert new_fact({name: one for name, one in fact.items() if name != "namespace"}, 65_536).text


def test_an_archive_is_read_from_a_pipe() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    statement = {"kind": "memory", "content": "Mira sails."}
    with foreign.lines(Pipe(packed({"memories.jsonl": [statement]})), "cogx", NOW) as lines:
        assert [json.loads(line)["text"] for line in lines] == ["Mira sails."]


def test_a_cogx_archive_of_several_folders_is_read_whole() -> None:
    one, two = ({"kind": "memory", "content": f"Mira likes {what}"} for what in ("tea", "milk"))
    found = facts("cogx", packed({"a/memories.jsonl": [one], "b/memories.jsonl": [two]}))
    assert [fact["text"] for fact in found] == ["Mira likes tea", "Mira likes milk"]


def test_a_tar_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"TAR without entities\.jsonl"):
        facts("cogx", packed({"notes.txt": []}))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_truncated_archive_is_refused(mode: str, share: float) -> None:
    whole = packed({"documents.jsonl": COGX["documents.jsonl"]}, mode)

    with pytest.raises(InvalidInputError, match=r"cannot be read|no UTF-8 text"):
        facts("cogx", whole[: int(len(whole) * share)])


@examples(150)
@given(st.one_of(JSON, spoilt_within(AGENT_FILE), spoilt(COGX["facts.jsonl"][0]), spoilt(COGX["episodes.jsonl"][0])))
def test_generated_files_are_read_or_refused_with_a_message(content: Any) -> None:
    for product in ("letta", "cogx"):
        with suppress(InvalidInputError):
            assert isinstance(facts(product, json.dumps(content).encode()), list)
