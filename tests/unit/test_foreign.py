"""Conversion of other products' exports to import lines."""

import gzip
import io
import json
import os
import tracemalloc
import zipfile
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.contrib import foreign
from api.contrib.records import LONGEST, records
from workers.errors import InvalidInputError
from workers.validation.facts import new_fact

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ID = "0193a7c0-0000-4000-8000-000000000001"

OPENMEMORY = {
    "id": ID,
    "user_id": "mira",
    "content": "Mira sails to Zanzibar",
    "primary_sector": "episodic",
    "tags": '["Travel, far", "travel, far", "sea"]',
    "meta": '{"chat": 7}',
    "created_at": 1_735_689_600_000,
    "updated_at": 1_735_689_600_000,
    "last_seen_at": 1_738_368_000_500,
    "salience": 1.2,
    "decay_lambda": 0.02,
    "coactivations": 3,
    "version": 2,
}

MEM0 = {
    "id": "m-1",
    "memory": "Mira sails to Zanzibar",
    "hash": "abc",
    "user_id": "mira",
    "agent_id": "skipper",
    "run_id": "run 7",
    "categories": ["travel"],
    "role": "user",
    "metadata": {"chat": 7},
    "created_at": "2025-01-01T00:00:00",
    "updated_at": "2025-02-01T00:00:00.5-07:00",
    "expiration_date": "2099-01-01",
    "score": 0.4,
}


def facts(product: str, content: bytes | Any) -> list[Any]:
    given = content if isinstance(content, bytes) else json.dumps(content).encode()
    with foreign.lines(io.BytesIO(given), product, NOW) as lines:
        return [json.loads(line) for line in lines]


def test_a_memory_of_openmemory_keeps_what_a_fact_can_have() -> None:
    (fact,) = facts("openmemory", {"items": [OPENMEMORY]})

    assert fact == {
        "id": ID,
        "text": "Mira sails to Zanzibar",
        "namespace": "mira",
        "category": "episodic",
        "tags": ["travel far", "sea"],
        "metadata": {"chat": 7},
        "created_at": 1_735_689_600,
        "last_seen_at": 1_738_368_000.5,
        "strength": 1.0,
        "coactivations": 3,
        "source": "openmemory",
    }


def test_a_memory_of_mem0_keeps_what_a_fact_can_have() -> None:
    (fact,) = facts("mem0", {"results": [MEM0]})

    assert UUID(fact.pop("id"))
    assert fact == {
        "text": "Mira sails to Zanzibar",
        "namespace": "mira",
        "session": "run 7",
        "tags": ["travel"],
        "role": "user",
        "metadata": {"chat": 7, "agent_id": "skipper", "role": "user", "expiration_date": "2099-01-01"},
        "created_at": "2025-01-01T00:00:00+00:00",
        "source_date": "2025-02-01T00:00:00.500000-07:00",
        "source": "mem0",
    }


def test_a_blank_run_of_mem0_is_no_session() -> None:
    assert [one.get("session") for one in facts("mem0", [MEM0 | {"run_id": run} for run in ("r1", "", " ")])] == [
        "r1", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(("product", "record"), [("openmemory", OPENMEMORY), ("mem0", MEM0)])
def test_converted_facts_can_be_stored(product: str, record: dict[str, Any]) -> None:
    (fact,) = facts(product, [record])
    del fact["namespace"]

    assert new_fact(fact, 65_536).text == "Mira sails to Zanzibar"


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([OPENMEMORY, OPENMEMORY]).encode(),
        json.dumps({"memories": [OPENMEMORY, OPENMEMORY]}, indent=2).encode(),
        b"\n".join([json.dumps(OPENMEMORY).encode()] * 2) + b"\n\n",
        gzip.compress(b"\n".join([json.dumps(OPENMEMORY).encode()] * 2)),
        b"\xef\xbb\xbf" + json.dumps([OPENMEMORY, OPENMEMORY]).encode(),
        b"\n \n" + json.dumps([OPENMEMORY, OPENMEMORY], indent=2).encode(),
        b"\n".join([json.dumps({"items": [OPENMEMORY]}).encode()] * 2),
    ],
    ids=["list", "object", "JSONL", "gzip", "byte order mark", "list of many lines", "pages"],
)
def test_every_form_of_an_export_is_read(content: bytes) -> None:
    assert [fact["id"] for fact in facts("openmemory", content)] == [ID, ID]


def test_other_ids_become_uuids_deterministically() -> None:
    first, second = facts("mem0", [MEM0]), facts("mem0", [MEM0])
    (other,) = facts("openmemory", [OPENMEMORY | {"id": "m-1"}])

    assert first == second
    assert other["id"] != first[0]["id"]


def test_invalid_memories_keep_their_place_and_are_reported_by_the_import() -> None:
    good = json.dumps(MEM0)

    assert facts("mem0", f'{good}\n{{"half\n7\n'.encode())[1:] == ['{"half', 7]
    assert facts("mem0", [{"id": "1"}])[0]["text"] is None


def test_memories_expired_in_the_other_product_are_not_imported() -> None:
    (fact,) = facts("mem0", [MEM0 | {"expiration_date": "2026-11-20"}])

    assert fact["forgotten_at"] == "2026-11-20"


def test_what_mem0s_own_migration_writes_is_read() -> None:
    artifact = {
        "kind": "mem0_oss_qdrant_export",
        "source": {"sdk": "python", "filters": {"user_id": "mira"}},
        "record_count": 1,
        "records": [MEM0],
    }

    assert facts("mem0", json.dumps(artifact, indent=2).encode()) == facts("mem0", [MEM0])


@pytest.mark.parametrize("odd", [["c-1"], {"id": "c-1"}, 5])
def test_a_backup_of_mem0s_openmemory_with_ids_of_other_types_is_read(odd: Any) -> None:
    memory = {"id": ID, "content": "Mira sails", "app_id": odd, "category_ids": odd}
    tables = {"apps": [{"id": odd, "name": "cursor"}], "categories": odd}

    (fact,) = facts("mem0", json.dumps({"user": {"user_id": "mira"}, **tables, "memories": [memory]}).encode())
    assert fact["text"] == "Mira sails"


def test_a_backup_of_mem0s_openmemory_names_user_app_and_categories_and_revives_nothing() -> None:
    memory = {
        "id": ID, "user_id": "0193a7c0-0000-4000-8000-00000000000a", "app_id": "app-1", "content": "Mira sails",
        "metadata": {"chat": 7}, "state": "active", "created_at": "2025-01-01T00:00:00+00:00",
        "updated_at": "2025-01-01T00:00:00+00:00", "archived_at": None, "deleted_at": None, "category_ids": ["c-1"],
    }  # fmt: skip
    gone = {"id": ID[:-1] + "2", "state": "deleted", "deleted_at": "2025-03-01T00:00:00+00:00"}
    paused = {"id": ID[:-1] + "3", "state": "paused"}
    whole = {
        "user": {"id": memory["user_id"], "user_id": "Mira Lee", "name": None},
        "apps": [{"id": "app-1", "name": "cursor"}],
        "categories": [{"id": "c-1", "name": "Travel"}],
        "memories": [memory, memory | gone, memory | paused],
        "status_history": [],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("memories.json", json.dumps(whole, indent=2))
        file.writestr("memories.jsonl.gz", b"")

    first, second, third = facts("mem0", packed.getvalue())
    assert facts("openmemory", packed.getvalue()) == [first, second, third]
    assert (first["namespace"], first["tags"]) == ("u::Mira+20Lee", ["travel"])
    assert (first["metadata"], "forgotten_at" in first) == ({"chat": 7, "app_id": "cursor"}, False)
    assert second["forgotten_at"] == "2025-03-01T00:00:00+00:00"
    assert ("forgotten_at" in third, third["metadata"]["state"]) == (False, "paused")
    (line,) = facts("mem0", gzip.compress(json.dumps(memory | {"state": "deleted"}).encode()))
    assert line["forgotten_at"] == "2025-01-01T00:00:00+00:00"


def test_of_a_zip_of_several_exports_each_is_read() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for owner in ("mira", "noor"):
            file.writestr(f"{owner}/memories.json", json.dumps([{"id": owner, "memory": f"{owner} likes figs"}]))
        file.writestr("__MACOSX/mira/._memories.json", b"\0\5")
    assert [one["text"] for one in facts("mem0", packed.getvalue())] == ["mira likes figs", "noor likes figs"]


def test_a_zip_with_something_else_is_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("notes.txt", "x")
    with pytest.raises(InvalidInputError, match=r"without memories\.json"):
        facts("mem0", packed.getvalue())


def damaged_zip(place: int, *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP with the sample whose byte at a place, counted from its end if negative, is another one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file:
        file.writestr("memories.json", json.dumps(OPENMEMORY))
    content = bytearray(packed.getvalue())
    content[place] ^= 0xFF
    return bytes(content)


FLAGS = damaged_zip(0).index(b"PK\x01\x02") + 8 - len(damaged_zip(0))
"""The first byte of the flags of the only file, in the directory at the end."""


@pytest.mark.parametrize(
    "content",
    [
        damaged_zip(FLAGS), damaged_zip(-3), damaged_zip(50, method=zipfile.ZIP_BZIP2),
        damaged_zip(60, method=zipfile.ZIP_LZMA),
    ],
    ids=["encrypted", "another place", "bzip2", "LZMA"],
)  # fmt: skip
def test_a_damaged_or_encrypted_zip_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="The export is"):
        facts("mem0", content)


def test_an_id_with_half_a_character_is_a_memory_of_its_own() -> None:
    first, second = facts("mem0", b'[{"id": "\\ud83d", "memory": "a"}, {"id": "\\ud83e", "memory": "b"}]')
    assert first["id"] != second["id"]


def test_a_zip_from_a_pipe_is_refused_with_a_message() -> None:
    out, into = os.pipe()
    with os.fdopen(into, "wb") as file:
        file.write(b"PK\x03\x04")
    with os.fdopen(out, "rb") as pipe, pytest.raises(InvalidInputError, match="cannot be read from a pipe"):
        list(records(pipe))


@pytest.mark.parametrize("indent", [None, 1])
def test_an_export_is_read_in_bounded_memory(indent: int | None) -> None:
    memories = [{"id": str(number), "memory": f"Note {number} " + "é" * 2_000} for number in range(4_000)]
    content = json.dumps({"count": 4_000, "results": memories}, indent=indent, ensure_ascii=False).encode()
    del memories
    source, count = io.BytesIO(content), 0
    tracemalloc.start()
    try:
        for count, record in enumerate(records(source), start=1):
            assert record["memory"].startswith(f"Note {count - 1} ")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (count, len(content) > 16_000_000) == (4_000, True)
    assert most < (40_000_000 if indent is None else 8_000_000)


def test_a_truncated_document_is_refused_as_a_whole() -> None:
    content = json.dumps([MEM0, MEM0], indent=1).encode()
    with pytest.raises(InvalidInputError, match=r"no JSON behind its memory 1: .* cut off"):
        facts("mem0", content[:-20])


VALUES = st.recursive(
    st.integers() | st.text() | st.none() | st.floats(allow_nan=False),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=8,
)


@given(VALUES, st.sampled_from([0, 3]), st.integers(1, 40))
@example(0.5, 0, 1)
@example(-1e300, 0, 1)
def test_a_document_is_parsed_the_same_for_any_read_size(value: Any, indent: int, piece: int) -> None:
    whole = {"about": value, "items": [{"one": value}, {"two": value}, 3]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("api.contrib.records.PIECE", piece)
        found = list(records(io.BytesIO(json.dumps(whole, indent=indent).encode())))
    assert found == whole["items"]


def test_a_memory_that_is_too_long_is_reported_with_its_place() -> None:
    content = json.dumps([OPENMEMORY, OPENMEMORY | {"content": "a" * 2 * LONGEST}, OPENMEMORY], indent=1).encode()
    with pytest.raises(InvalidInputError, match=r"behind its memory 1: the next has more than 8,388,608 characters"):
        list(records(io.BytesIO(content)))


@pytest.mark.parametrize("document", [[OPENMEMORY | {"content": "a" * 2 * LONGEST}], {"agents": ["a" * 2 * LONGEST]}])
def test_a_document_of_many_lines_whose_first_value_is_too_long_says_so(document: Any) -> None:
    content = json.dumps(document, indent=1).encode()
    with pytest.raises(InvalidInputError, match=r"before its first memory: the next has more than 8,388,608"):
        list(records(io.BytesIO(content)))


@pytest.mark.parametrize("piece", [b" " * 1_048_576, b'"name": "%b",\n' % (b"a" * 1_048_576)], ids=["blanks", "values"])
def test_what_is_before_the_first_memory_is_bounded(piece: bytes) -> None:
    source = io.BytesIO(gzip.compress(b"{\n" + piece * 64, 1))
    with pytest.raises(InvalidInputError, match=r"before its first memory: what is there has more than 33,554,432"):
        list(records(source))


def test_a_zip_that_was_cut_off_says_so() -> None:
    with pytest.raises(InvalidInputError, match=r"is a ZIP that cannot be read: .* was it cut off"):
        facts("mem0", b"P" + damaged_zip(0)[1:-30])


@pytest.mark.parametrize("content", [b"7", b"\xff\xfe", b"\x1f\x8bnot gzip"])
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="The export is"):
        facts("mem0", content)
