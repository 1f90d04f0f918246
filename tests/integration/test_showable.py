"""Stored facts can be listed, shown, exported and imported, including values that earlier versions accepted."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from ebb.contract.reports import ListFacts
from ebb.contract.values import FIRST_INSTANT, LAST_INSTANT
from hypothesis import given
from hypothesis import strategies as st
from made_up import JSON, TEXTS, examples
from memory import Memory, day

from workers.admin import export
from workers.errors import InvalidInputError
from workers.memory import facts
from workers.memory.add import Stored
from workers.storage.lenient import FIRST, LAST
from workers.tasks import answers

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.one_of(
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    st.builds(
        lambda zone, at: f"{at}{datetime(2000, 1, 1, tzinfo=zone).isoformat()[19:]}",
        ZONES,
        st.sampled_from(["0001-01-01T00:00:00", "0001-01-02T12:00:00", "9999-12-29T12:00:00", "9999-12-31T23:59:59"]),
    ),
)
FACTS = st.fixed_dictionaries(
    {"text": TEXTS},
    optional={
        "metadata": st.dictionaries(TEXTS, JSON, max_size=3),
        "source_date": INSTANTS,
        "created_at": INSTANTS,
        "last_seen_at": INSTANTS,
        "category": TEXTS,
        "entity": TEXTS,
        "value": TEXTS,
        "session": st.one_of(TEXTS, st.integers()),
        "tags": st.lists(TEXTS, max_size=2),
        "coactivations": st.sampled_from([0, 1, 10**6, 2**31 - 1]),
        "decay_class": st.sampled_from([None, "permanent", "checkpoint"]),
        "kind": st.sampled_from(["semantic", "episodic"]),
    },
)


def _stored(memory: Memory, fact: dict[str, Any]) -> Stored | None:
    try:
        (stored,) = memory.store(fact)
    except InvalidInputError:
        return None
    assert isinstance(stored, Stored)
    return stored


def _sendable(value: Any) -> Any:
    """Return a value after encoding as JSON in UTF-8."""
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())


@examples(60)
@given(FACTS)
def test_whatever_is_stored_can_be_listed_shown_exported_and_imported(
    memory: Memory, twin: Memory, fact: dict[str, Any]
) -> None:
    stored = _stored(memory, fact)
    listed, _ = facts.page(memory.context, ListFacts(limit=1_000), day(0))
    _sendable(answers.facts(listed))
    if stored is not None:
        exported = [answers.fact(one) for one in export.export(memory.context, "default", day(0))]
        lines = [_sendable(json.loads(json.dumps(one, default=str))) for one in exported]
        (line,) = [one for one in lines if one.get("id") == str(stored.id)]
        memory.history(stored.id)
        memory.ask("x")
        (action,) = twin.import_records([line])
        assert action in ("added", "kept", "unchanged", "forgotten", "duplicate")
        assert action == "duplicate" or str(stored.id) in {one.get("id") for one in twin.archive()}


@pytest.mark.parametrize("wrong", ["\0", "a\0", "\ud800", "x\udfff"])
@pytest.mark.parametrize("at", ["value", "name", "list", "deep"])
def test_halves_of_characters_and_nul_are_refused_at_every_depth(memory: Memory, wrong: str, at: str) -> None:
    metadata: dict[str, Any] = {
        "value": {"a": wrong},
        "name": {wrong: 1},
        "list": {"a": [1, [wrong]]},
        "deep": {"a": {"b": [{"c": {wrong: {}}}]}},
    }[at]
    for given_as in (metadata, json.dumps(metadata)):
        with pytest.raises(InvalidInputError, match=r"^metadata: must not contain (NUL|lone)"):
            memory.store({"text": "Tea at four.", "metadata": given_as})


def test_rows_that_an_earlier_version_let_in_are_shown_and_brought_back(memory: Memory, twin: Memory) -> None:
    half, late, early = (memory.add(text, metadata={"a": 1}) for text in ("Tea.", "Cake.", "Bread."))
    memory.rows("""update facts set metadata = '{"\\ud800": ["a\\udfff", "\\ud83d\\ude00"]}' where id = %s""", half)
    memory.rows("update facts set source_date = '20000-01-01Z', created_at = '20000-01-01Z' where id = %s", late)
    memory.rows("update activity set last_seen_at = '20000-01-01Z', expires_at = '21000-01-01Z' where fact = %s", late)
    memory.rows("update facts set source_date = '0100-01-01Z BC', created_at = '0100-01-01Z BC' where id = %s", early)
    listed, _ = facts.page(memory.context, ListFacts(limit=10), day(0))
    _sendable(answers.facts(listed))
    shown = {one["id"]: one for one in memory.archive() if "text" in one}
    assert shown[str(half)]["metadata"] == {"\ufffd": ["a\ufffd", "\U0001f600"]}
    assert shown[str(late)]["source_date"] == shown[str(late)]["expires_at"] == LAST.isoformat()
    assert shown[str(early)]["source_date"] == FIRST.isoformat()
    assert (FIRST, LAST) == (FIRST_INSTANT, LAST_INSTANT)
    for id_ in (half, late, early):
        assert memory.history(id_)
    assert twin.import_records(list(shown.values()))[:3] == ["added"] * 3
    assert len(facts.page(twin.context, ListFacts(limit=10), day(0))[0]) == len(listed)


@pytest.mark.parametrize("times", [10**6 + 1, 2**31 - 1])
def test_the_number_of_uses_is_capped_where_more_make_no_difference(memory: Memory, times: int) -> None:
    with pytest.raises(InvalidInputError, match=r"coactivations: .* less than or equal to 1000000"):
        memory.store({"text": "Tea at four.", "coactivations": times})


def test_a_counter_of_an_older_archive_is_bounded_and_not_refused(memory: Memory, twin: Memory) -> None:
    tea = memory.add("Tea at four.")
    memory.rows("update activity set coactivations = 2147483647, recall_count = 2147483647 where fact = %s", tea)
    (line, *_) = memory.archive()
    assert twin.import_records([line]) == ["added"]
    assert twin.row(tea)["coactivations"] == 10**6
