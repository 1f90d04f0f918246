"""The history of a fact has all its events, oldest first, and its state."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Edit
from ebb.contract.retention import ShowHistory
from memory import Memory, day
from psycopg.types.json import Jsonb

from workers.errors import InvalidInputError
from workers.memory import edit, history, supersede
from workers.memory.history import History


def history_of(memory: Memory, id_: UUID, at: float) -> History:
    return history.history(memory.context, ShowHistory(id=id_), day(at))


def test_all_that_was_done_to_a_fact_is_listed_in_order(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", source="diary", role="user", salience=0.75)
    memory.pin(id_, at=1, until=20)
    memory.forget(id_, at=2)
    memory.restore(id_, at=3)
    memory.touch(id_, at=4)
    memory.touch(id_, at=5)
    memory.unpin(id_, at=6)
    assert [(one.what, one.details) for one in history_of(memory, id_, 7).events] == [
        ("stored", {"source": "diary", "role": "user", "content_salience": 0.75}),
        ("pinned", {"until": "2025-01-21T00:00:00Z"}),
        ("forgotten", {"reason": "asked"}),
        ("restored", {"reason": "asked"}),
        ("recalled", {"times": 2}),
        ("unpinned", {}),
    ]
    assert [at for _, at in memory.history(id_)] == [0, 1, 2, 3, 5, 6]


def test_repeated_stores_are_told_from_recalls(memory: Memory) -> None:
    id_, use = memory.add("Tea at four."), uuid4()
    memory.touch(id_, at=1)
    for at in (2, 3):
        memory.store("Tea at four.", at=at)
    memory.store("Tea at four.", at=4, touch=False)
    for _ in range(2):
        memory.store("Tea at four.", at=5, use=use)
    stored, recalled, again = history_of(memory, id_, 6).events
    assert (stored.what, recalled.what, recalled.details) == ("stored", "recalled", {"times": 4})
    assert (again.what, again.at, again.details["times"]) == ("stored again", day(5), 3)
    assert again.details["since"] == "2025-01-03T00:00:00Z"


def test_an_edit_shows_instants_as_all_others_and_texts_as_they_are(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", value=day(1).isoformat())
    edit.edit(memory.context, Edit(id=id_, value="five", valid_from=day(2), valid_until=day(9)), day(3))
    changed = history_of(memory, id_, 4).events[-1].details
    assert changed["was"]["value"] == "2025-01-02T00:00:00+00:00"
    assert changed["is"] == {
        "value": "five",
        "valid_from": "2025-01-03T00:00:00Z",
        "valid_until": "2025-01-10T00:00:00Z",
    }


def test_links_are_omitted_on_request(memory: Memory) -> None:
    one, other = memory.add("Tea at four."), memory.add("Cake at five.")
    memory.link(one, other, at=1)
    bare = history.history(memory.context, ShowHistory(id=one, links=False), day(2))
    assert [happening.what for happening in history_of(memory, one, 2).events] == ["stored", "linked"]
    assert [happening.what for happening in bare.events] == ["stored"]


def test_what_took_anothers_place_and_was_replaced_says_so(memory: Memory) -> None:
    older, newer = uuid4(), uuid4()
    id_ = memory.add("Tea at four.", salience=0.5)
    change = "update facts set supersedes_id = %s, superseded_at = %s, superseded_by = %s"
    memory.rows(change, older, day(3), newer)
    one = history_of(memory, id_, 4)
    assert one.state == "superseded"
    assert [(each.what, each.details) for each in one.events] == [
        ("stored", {"content_salience": 0.5}),
        ("superseded another", {"id": str(older)}),
        ("superseded", {"by": str(newer)}),
    ]


def test_a_fact_that_is_kept_later_says_when_it_superseded_the_other(memory: Memory) -> None:
    older, newer = memory.add("Tea at four."), memory.add("Tea at five.", at=1)
    memory.touch(newer, at=2)
    supersede.keep(memory.context, "default", newer, [older], day(3))
    assert [(one.what, one.at) for one in history_of(memory, newer, 4).events] == [
        ("stored", day(1)), ("recalled", day(2)), ("superseded another", day(3)),
    ]  # fmt: skip


def test_a_supersession_that_was_undone_keeps_its_instant_beside_the_next_one(memory: Memory) -> None:
    older, newer = memory.add("Tea at four."), memory.add("Tea at five.", at=1)
    for began in (3, 5):
        supersede.keep(memory.context, "default", newer, [older], day(began))
        memory.restore(older, at=began + 1)
    undone = [("superseded another", 3), ("supersession undone", 4), ("superseded another", 5)]
    assert memory.history(newer, at=7) == [("stored", 1), *undone, ("supersession undone", 6)]


def test_a_supersession_that_is_undone_while_the_newer_fact_is_in_deep_memory_is_in_its_history(memory: Memory) -> None:
    older, newer = memory.add("Tea at four."), memory.add("Tea at five.", decay_class="session")
    supersede.keep(memory.context, "default", newer, [older], day(0))
    memory.decay(2)
    assert memory.demote(at=4) == 1
    memory.restore(older, at=5)
    assert ("supersession undone", 5) in memory.history(newer, at=6)


@pytest.mark.parametrize("by_storing", [False, True])
def test_a_fact_says_of_each_fact_that_it_superseded_it(memory: Memory, *, by_storing: bool) -> None:
    first, second, newer = (memory.add(f"Tea at {hour}.") for hour in ("four", "five", "six"))
    again = [{"id": str(uuid4()), "text": "Tea at six.", "supersedes": str(one)} for one in (first, second)]
    for _ in range(2):
        if by_storing:
            memory.store(*again, at=3)
        else:
            supersede.keep(memory.context, "default", newer, [first, second], day(3))
    said = [one for one in history_of(memory, newer, 4).events if one.what == "superseded another"]
    assert [one.at for one in said] == [day(3), day(3)]
    assert {one.details["id"] for one in said} == {str(first), str(second)}


@pytest.mark.parametrize(
    ("at", "state", "pinned"),
    [(0.5, "live", False), (1.5, "live", True), (10.5, "live", False), (11.5, "over", False)],
)
def test_the_state_of_a_fact_is_as_of_the_instant(memory: Memory, at: float, state: str, *, pinned: bool) -> None:
    id_ = memory.add("Tea at four.", decay_class="session")
    assert history_of(memory, id_, 0.5).state == "live"
    if at >= 1:
        memory.pin(id_, at=0.5, until=10)
    one = history_of(memory, id_, at)
    assert (one.state, one.pinned, one.text) == (state, pinned, "Tea at four.")


def test_a_forgotten_fact_says_why(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="checkpoint")
    memory.decay(2)
    assert history_of(memory, id_, 3).state == "forgotten: expired"


def test_a_fact_of_another_namespace_has_no_history_here(memory: Memory) -> None:
    theirs = memory.add("Tea at four.", namespace="theirs")
    for id_ in (theirs, uuid4()):
        with pytest.raises(InvalidInputError, match="no fact"):
            history_of(memory, id_, 1)


@pytest.mark.parametrize("was", [None, "x", [1], 5])
def test_imported_entries_of_edits_without_former_values_do_not_break_history(memory: Memory, was: Any) -> None:
    memory.add("Tea at four.")
    (line,) = memory.archive()
    noted = [{"at": day(0).isoformat(), "what": "edited", "details": {"was": was}}]
    id_ = uuid4()

    assert memory.import_records([line | {"id": str(id_), "text": "Cake.", "events": noted}], at=1) == ["added"]
    assert [one.what for one in history_of(memory, id_, 3).events] == ["stored", "edited"]


@pytest.mark.parametrize(
    ("times", "seconds"), [("x", "x"), (2.5, 1e300), (10**30, -1), (True, [1]), (None, True), (None, None)]
)
def test_imported_entries_with_wrong_numbers_break_neither_history_nor_use(
    memory: Memory, times: Any, seconds: Any
) -> None:
    memory.add("Tea at four.")
    (line,) = memory.archive()
    wrong = {"times": times, "seconds": seconds}
    noted = [{"at": day(0).isoformat(), "what": what, "details": wrong} for what in ("moved", "reinforced")]
    id_ = uuid4()

    assert memory.import_records([line | {"id": str(id_), "text": "Cake.", "events": noted}], at=1) == ["added"]
    memory.reinforce(id_, at=2)
    assert [(one.what, one.details.get("times")) for one in history_of(memory, id_, 3).events] == [
        ("stored", None),
        ("moved", None),
        ("reinforced", 2),
    ]


def test_imported_uses_of_thousands_of_years_until_a_future_instant_break_neither_history_nor_use(
    memory: Memory,
) -> None:
    memory.add("Tea at four.")
    (line,) = memory.archive()
    noted = [{"at": "9999-12-01T00:00:00Z", "what": "reinforced", "details": {"times": 3, "seconds": 3.1e11}}]
    id_, clocked = uuid4(), memory.having(time_travel=False)

    assert clocked.import_records([line | {"id": str(id_), "text": "Cake.", "events": noted}], at=1) == ["added"]
    clocked.reinforce(id_, at=2)
    assert [one.details.get("times") for one in history_of(clocked, id_, 3).events] == [None, 4]


def test_seconds_of_other_events_are_no_time_of_uses(memory: Memory) -> None:
    id_ = memory.add("Tea at four.")
    insert = "insert into events (namespace, fact, at, what, details) select namespace, id, %s, %s, %s from facts"
    memory.rows(insert, day(1), "moved", Jsonb({"seconds": "x"}))
    memory.rows(insert, day(2), "used", Jsonb({"seconds": "x"}))

    assert [one.details for one in history_of(memory, id_, 3).events[1:]] == [{"seconds": "x"}, {}]


def test_updates_of_one_instant_keep_their_order_when_their_rows_move(memory: Memory) -> None:
    about = {"entity": "Mira", "key": "tea"}
    memory.store(*[{"text": f"Mira drinks tea {value}.", "value": str(value), **about} for value in range(5)])
    id_ = memory.add("Mira drinks no tea.", value="none", at=1, **about)
    before = history_of(memory, id_, 3).events
    assert [one.what for one in before] == ["stored", *["updates"] * 5]

    first = before[1].details["id"]
    (pair,) = memory.rows(
        "delete from contradictions where %s in (fact, other) and %s in (fact, other) returning *", first, id_
    )
    memory.rows("insert into contradictions values (%s, %s, %s, %s, %s)", *pair)
    assert history_of(memory, id_, 3).events == before
