"""The identity of statements: text, entity, key and value, and case where it matters."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.reports import ListContradictions
from memory import LOCK_WAITS, Memory, day, wait_for

from workers.core.text import digest
from workers.errors import InvalidInputError
from workers.memory.add import Stored
from workers.memory.edit import edit_within
from workers.memory.supersede import contradicting
from workers.storage import namespaces, statements
from workers.storage.connection import connect, transaction

DOOR: dict[str, Any] = {"text": "The code of the door", "entity": "Door", "key": "code"}
LIVE = "select count(*) from facts where forgotten_at is null and superseded_at is null"

# The previous version compared texts only: its hash is the digest of the text, also in deletion requests.
EARLIER = "update facts set hash = substring(hash for 32)"
EARLIER_WISHES = """
    with own as (
        select facts.namespace, sha256(uuid_send(salt) || substring(hash for 32)), facts.id, forgotten_at,
            forgotten_reason
        from facts join namespaces on namespaces.id = facts.namespace
        where forgotten_reason = 'asked'
    )
    insert into forgotten_hashes select * from own
"""


def actions(memory: Memory, *given: str | dict[str, Any], **how: Any) -> list[str]:
    return ["refused" if isinstance(one, InvalidInputError) else one.action for one in memory.store(*given, **how)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DOOR | {"value": "1111"}, DOOR | {"value": "2222"}),
        (DOOR | {"key": "code"}, DOOR | {"key": "colour"}),
        (DOOR | {"entity": "Door"}, DOOR | {"entity": "Gate"}),
        ("The password is Hunter2", "The password is hunter2"),
        ("Call it with -v", "Call it with -V"),
        ("It is kept in apiKey", "It is kept in apikey"),
        (DOOR | {"value": "Hunter2"}, DOOR | {"value": "hunter2"}),
    ],
)
def test_two_statements_are_two_facts(memory: Memory, one: Any, other: Any) -> None:
    assert actions(memory, one, other) == ["added", "added"]
    assert actions(memory, one, other, at=1) == ["duplicate", "duplicate"]
    assert memory.value(LIVE) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The code of the door", "THE code  of the Door"),
        (DOOR | {"value": "1111"}, DOOR | {"entity": "door", "key": "Code", "value": " 1111 "}),
        (DOOR | {"value": "1111"}, DOOR),
        (DOOR | {"value": "1111"}, "The code of the door"),
        ("The code of the door", DOOR | {"value": "1111"}),
        ("Mira's E-Mail is down.", "mira's e-mail is DOWN."),
    ],
)
def test_one_statement_is_one_fact(memory: Memory, one: Any, other: Any) -> None:
    assert actions(memory, one) == ["added"]
    (again,) = memory.store(other, at=1)
    assert isinstance(again, Stored)
    assert again.action in ("duplicate", "updated")
    assert memory.value(LIVE) == 1


def test_a_newer_value_contradicts_the_older_one(memory: Memory) -> None:
    old, new = memory.add(**DOOR, value="1111"), memory.add(**DOOR, value="2222", at=1)
    (pair,) = contradicting(memory.context, ListContradictions(), day(1)).contradictions
    assert {(one.id, one.value) for one in pair.facts} == {(old, "1111"), (new, "2222")}


def test_what_leaves_the_value_open_is_the_newest_that_fits(memory: Memory) -> None:
    memory.add(**DOOR, value="1111")
    new = memory.add(**DOOR, value="2222", at=1)
    (again,) = memory.store("The code of the door", at=2)
    assert isinstance(again, Stored)
    assert (again.id, again.action) == (new, "duplicate")


def test_a_repeat_under_the_same_id_is_unchanged_and_another_text_is_refused(memory: Memory) -> None:
    fact = DOOR | {"id": str(uuid4()), "value": "Hunter2"}
    assert actions(memory, fact, fact) == ["added", "unchanged"]
    assert actions(memory, fact, fact | {"text": "Another"}) == ["unchanged", "refused"]


def test_a_statement_is_known_however_many_have_its_text(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "MOST_OF_ONE_TEXT", 2)
    given = [DOOR | {"value": str(number)} for number in range(8)]
    assert actions(memory, *given) == ["added"] * 8
    assert actions(memory, *given, at=1) == ["duplicate"] * 8
    id_, other = memory.rows("select id, value from facts order by hash desc limit 1")[0]
    memory.forget(id_, at=2)
    assert actions(memory, DOOR | {"value": other, "again": True}, at=3) == ["added"]
    (refusal,) = memory.restore(id_, at=4)
    assert "says the same" in str(refusal)


def test_a_statement_that_ended_is_new_however_many_have_its_text(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "MOST_OF_ONE_TEXT", 2)
    given = [DOOR | {"value": str(number), "decay_class": "session"} for number in range(8)]
    assert actions(memory, *given) == ["added"] * 8
    assert actions(memory, *given, at=2) == ["added"] * 8


def test_what_the_version_before_stored_is_known_again(memory: Memory) -> None:
    given: list[Any] = [DOOR | {"value": "1111"}, "The password is Hunter2", "Tea at four.", DOOR | {"key": "colour"}]
    ids = [memory.add(**(one if isinstance(one, dict) else {"text": one})) for one in given if one is not given[3]]
    memory.rows(EARLIER)
    again = [one for one in memory.store(*given[:3], at=1) if isinstance(one, Stored)]
    assert [(one.id, one.action) for one in again] == [(id_, "duplicate") for id_ in ids]
    assert actions(memory, DOOR | {"value": "2222"}, "The password is hunter2", "tea at FOUR.", at=2) == [
        "added", "added", "duplicate"
    ]  # fmt: skip
    assert memory.value(LIVE) == 5


def test_statements_that_the_version_before_took_for_one_do_not_get_in_each_others_way(memory: Memory) -> None:
    memory.add("It is kept in apiKey")
    memory.rows(EARLIER)
    assert actions(memory, "It is kept in apikey") == ["added"]
    assert actions(memory, "It is kept in apiKey", "It is kept in apikey", at=1) == ["duplicate", "duplicate"]


def test_a_repeat_across_the_upgrade_is_unchanged(memory: Memory) -> None:
    fact = DOOR | {"id": str(uuid4()), "value": "Hunter2", "text": "The password is Hunter2"}
    memory.store(fact)
    memory.rows(EARLIER)
    assert actions(memory, fact) == ["unchanged"]
    memory.forget(UUID(fact["id"]), at=1)
    memory.rows(EARLIER)
    assert actions(memory, fact, at=2) == ["forgotten"]


@pytest.mark.parametrize("purge", [True, False])
@pytest.mark.parametrize("fact", [DOOR | {"value": "1111"}, {"text": "The password is Hunter2"}, {"text": "Tea!"}])
def test_what_was_forgotten_on_request_before_the_upgrade_stays_forgotten(
    memory: Memory, fact: dict[str, Any], purge: bool
) -> None:
    id_ = memory.add(**fact)
    memory.forget(id_, at=1)
    memory.rows("delete from forgotten_hashes")
    memory.rows(EARLIER_WISHES)
    memory.rows(EARLIER)
    if purge:
        memory.forget(id_, at=1.5, purge=True)
    assert actions(memory, fact, {"text": fact["text"]}, fact | {"entity": "Mira"}, at=2) == ["forgotten"] * 3
    assert actions(memory, fact | {"again": True}, fact, at=3) == ["added", "duplicate"]


def test_what_was_forgotten_on_request_stays_forgotten_and_what_is_another_statement_does_not(memory: Memory) -> None:
    one, password = memory.add(**DOOR, value="1111"), memory.add("The password is Hunter2")
    memory.forget(one, password, at=1, purge=True)
    again: list[Any] = [DOOR | {"value": "1111"}, "the CODE of the door", "The password is Hunter2"]
    assert actions(memory, *again, at=2) == ["forgotten"] * 3
    assert actions(memory, DOOR | {"value": "2222"}, "The password is hunter2", at=3) == ["added", "added"]


def test_a_statement_that_leaves_all_open_keeps_out_those_that_say_more(memory: Memory) -> None:
    memory.forget(memory.add("The code of the door"), at=1)
    assert actions(memory, DOOR | {"value": "1111"}, at=2) == ["forgotten"]


def test_what_was_forgotten_on_request_replaces_no_fact_that_says_more(memory: Memory) -> None:
    (forgotten,) = memory.store(DOOR | {"entity": None, "key": None})
    memory.forget(forgotten.id, at=1)  # type: ignore[union-attr]
    known = memory.add(**DOOR, again=True, at=2)
    replacing = {"text": DOOR["text"], "supersedes": str(known)}
    memory.forget(memory.add(DOOR["text"], key="other", again=True, at=3), at=4)
    assert actions(memory, replacing, at=5) == ["forgotten"]
    assert memory.value(LIVE) == 1
    assert actions(memory, replacing | {"again": True}, at=6) == ["updated"]


def test_an_edit_of_a_fact_of_an_earlier_version_while_it_is_identified_stays(memory: Memory) -> None:
    id_ = memory.add(**DOOR, value="1111")
    memory.rows(EARLIER)
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        edit_within(memory.context, db, namespaces.id_of(db, "default"), {id_: {"value": "2222"}}, day(1))
        storing = pool.submit(actions, memory, DOOR | {"value": "1111"}, at=1)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.commit()
        assert storing.result() == ["added"]
    assert actions(memory, DOOR | {"value": "1111"}, DOOR | {"value": "2222"}, at=2) == ["duplicate", "duplicate"]


def test_a_fact_of_an_earlier_version_can_be_restored_besides_another_statement(memory: Memory) -> None:
    old = memory.add(**DOOR, value="1111")
    memory.rows(EARLIER)
    memory.forget(old, at=1)
    memory.add(**DOOR, value="2222", at=2)
    (fate,) = memory.restore(old, at=3)
    assert not isinstance(fate, InvalidInputError)
    assert memory.value(LIVE) == 2


def test_the_normalised_hash_of_an_export_is_that_of_the_text(memory: Memory) -> None:
    memory.add(**DOOR, value="1111")
    (line,) = memory.archive()
    assert line["normalized_hash"] == digest(DOOR["text"]).hex()


def test_an_archive_of_statements_with_one_text_comes_back_whole(memory: Memory, twin: Memory) -> None:
    memory.store(*[DOOR | {"value": str(i)} for i in range(3)])
    memory.store({"text": "The code of the door", "entity": "Gate"})
    lines = memory.archive()
    assert twin.import_records(lines)[:4] == ["added"] * 4
    assert twin.archive() == lines
    assert twin.import_records(lines)[:4] == ["unchanged"] * 4


def test_known_facts_are_found_by_the_statements_that_they_make(memory: Memory) -> None:
    id_ = memory.add(**DOOR, value="1111")
    with transaction(memory.context.database_url) as db:
        assert statements.known_by_hash(db, 1, [digest(DOOR["text"])]) == {digest(DOOR["text"]): id_}
        assert statements.known_exactly(db, 1, [digest(DOOR["text"])]) == {}
