"""Exports of other products become the lines of facts that an import takes."""

import gzip
import io
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from api import foreign
from workers.errors import InvalidInputError
from workers.intake import new_fact

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
    "metadata": {"chat": 7},
    "created_at": "2025-01-01T00:00:00",
    "updated_at": "2025-02-01T00:00:00.5-07:00",
    "expiration_date": "2099-01-01",
    "score": 0.4,
}


def facts(product: str, content: bytes | Any) -> list[Any]:
    given = content if isinstance(content, bytes) else json.dumps(content).encode()
    return [json.loads(line) for line in foreign.lines(io.BytesIO(given), product, NOW)]


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
        "salience": 1.0,
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
        "metadata": {"chat": 7, "agent_id": "skipper", "expiration_date": "2099-01-01"},
        "created_at": "2025-01-01T00:00:00+00:00",
        "last_seen_at": "2025-02-01T00:00:00.500000-07:00",
        "source": "mem0",
    }


@pytest.mark.parametrize(("product", "record"), [("openmemory", OPENMEMORY), ("mem0", MEM0)])
def test_what_comes_out_can_be_stored(product: str, record: dict[str, Any]) -> None:
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
    ],
    ids=["list", "object", "JSONL", "gzip", "byte order mark"],
)
def test_every_form_of_an_export_is_read(content: bytes) -> None:
    assert [fact["id"] for fact in facts("openmemory", content)] == [ID, ID]


def test_an_id_that_is_no_uuid_becomes_the_same_one_each_time() -> None:
    first, second = facts("mem0", [MEM0]), facts("mem0", [MEM0])
    (other,) = facts("openmemory", [OPENMEMORY | {"id": "m-1"}])

    assert first == second
    assert other["id"] != first[0]["id"]


def test_what_is_no_memory_stands_in_its_place_for_the_import_to_tell() -> None:
    good = json.dumps(MEM0)

    assert facts("mem0", f'{good}\n{{"half\n7\n'.encode())[1:] == ['{"half', 7]
    assert facts("mem0", [{"id": "1"}])[0]["text"] is None


def test_what_has_expired_there_is_no_memory_any_more() -> None:
    (fact,) = facts("mem0", [MEM0 | {"expiration_date": "2026-11-20"}])

    assert fact["forgotten_at"] == "2026-11-20"


@pytest.mark.parametrize("content", [b"7", b"\xff\xfe", b"\x1f\x8bnot gzip"])
def test_what_is_no_export_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidInputError, match="The export is"):
        facts("mem0", content)
