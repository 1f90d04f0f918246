"""Edits: given fields of a known fact are changed by storing it again or by an edit; the history has old values."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.facts import Edit, Edited
from ebb.contract.reports import ListContradictions
from ebb.contract.retention import ShowHistory
from memory import LOCK_WAITS, Memory, day, wait_for
from pydantic import ValidationError

from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.memory import edit, history
from workers.memory.add import Stored
from workers.memory.supersede import contradicting
from workers.storage import activity, edits, facts
from workers.storage.connection import transaction
from workers.validation.facts import digest, new_fact

TEXT = "The spare key hangs behind the clock."


def stored(memory: Memory, *given: str | dict[str, Any], **how: Any) -> list[Stored]:
    return [one for one in memory.store(*given, **how) if isinstance(one, Stored)]


def edited(memory: Memory, id_: UUID, at: float = 0, **changes: Any) -> Edited:
    return edit.edit(memory.context, Edit(id=id_, **changes), day(at))


def fact(memory: Memory, id_: UUID) -> edits.Editable:
    with transaction(memory.context.database_url) as db:
        return edits.read(db, 1, [id_])[id_]


def noted(memory: Memory, id_: UUID) -> list[dict[str, Any]]:
    events = history.history(memory.context, ShowHistory(id=id_), day(9)).events
    return [one.details for one in events if one.what == "edited"]


def contradictions(memory: Memory) -> tuple[int, int, list[str], list[str]]:
    """Return how many contradictions the list and the stats have, and what the newest fact updates by both reads."""
    found = memory.ask("What is the code of the door?", at=4, explain=True, min_relevance=0.0).results
    by_recall = [str(id_) for one in found if one.explain is not None for id_ in one.explain["updates"]]
    newest = max(found, key=lambda one: one.created_at).id
    events = history.history(memory.context, ShowHistory(id=newest), day(4)).events
    by_history = [one.details["id"] for one in events if one.what == "updates"]
    listed = contradicting(memory.context, ListContradictions(), day(4))
    assert len(listed.contradictions) == listed.total
    return listed.total, memory.stats(at=4).contradictions, by_recall, by_history


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decay_class", "permanent"), ("decay_class", "session"), ("confidence", 0.4), ("importance", 0.9),
        ("entity", "Mira"), ("key", "spare key"), ("value", "clock"), ("category", "home"), ("summary", "A key."),
        ("source", "diary"), ("metadata", {"z": 1, "a": [2]}), ("tags", ["home", "keys"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("by_storing", [True, False])
def test_what_is_given_of_a_known_fact_applies(memory: Memory, name: str, value: Any, by_storing: bool) -> None:
    first = memory.add(TEXT)
    before = getattr(fact(memory, first), name)
    if by_storing:
        (again,) = stored(memory, {"text": TEXT, name: value}, at=0.5)
        assert (again.id, again.action, again.changed) == (first, "updated", [name])
    else:
        assert edited(memory, first, 0.5, **{name: value}).changed == [name]
    assert getattr(fact(memory, first), name) == value
    assert noted(memory, first) == [{"was": {name: before}, "is": {name: value}}]
    (same,) = stored(memory, {"text": TEXT, name: value}, at=0.6)
    assert (same.id, same.action, same.changed) == (first, "duplicate", [])
    assert edited(memory, first, 0.6, **{name: value}).changed == []


def test_the_history_shows_source_and_role_as_they_were_stored(memory: Memory) -> None:
    (first,) = stored(memory, {"text": TEXT, "source": "chat"})
    edited(memory, first.id, 0.5, source="diary", role="user")
    edited(memory, first.id, 0.6, source="letter")
    events = history.history(memory.context, ShowHistory(id=first.id), day(9)).events
    assert {name: events[0].details.get(name) for name in ("source", "role")} == {"source": "chat", "role": None}


def test_a_lifetime_given_for_a_known_text_is_the_one_it_lives(memory: Memory) -> None:
    (first,) = stored(memory, TEXT, classify=True)
    (again,) = stored(memory, {"text": TEXT, "decay_class": "permanent"}, at=50)
    assert (again.life.decay_class, again.life.reason, again.life.ending.at) == ("permanent", "given", None)
    memory.decay(3_000, force=True)
    assert memory.row(first.id)["forgotten_at"] is None


@pytest.mark.parametrize(("name", "days"), [("session", 0.75 + 3 / 24), ("short", 1.5 + 3 / 24)])
def test_another_class_starts_its_lifetime_at_the_edit(memory: Memory, name: str, days: float) -> None:
    id_ = memory.add(TEXT, decay_class="permanent")
    done = edited(memory, id_, 5, decay_class=name)
    assert done.ends_at is not None
    assert (done.ends_at - day(5)).total_seconds() / 86_400 == pytest.approx(days)
    assert memory.row(id_)["ends"] == pytest.approx(5 + days)
    assert memory.stats(5).decay_classes[name] == 1


def test_a_class_of_a_pinned_fact_begins_when_its_pin_ends(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="permanent")
    memory.pin(id_, at=1)
    assert edited(memory, id_, 2, decay_class="session").ends_at is None
    memory.unpin(id_, at=10)
    assert memory.row(id_)["expires"] == pytest.approx(11)


def test_an_episode_for_ever_is_permanent_and_any_other_is_not(memory: Memory) -> None:
    id_ = memory.add(TEXT, kind="episodic")
    edited(memory, id_, 1, decay_class="permanent")
    assert memory.stats(1).episodes["permanent"] == 1
    edited(memory, id_, 2, decay_class="stable")
    assert memory.stats(2).episodes == {"persistent": 1, "permanent": 0, "stale": 0}


def test_tags_of_a_statement_are_added_and_those_of_an_edit_replace(memory: Memory) -> None:
    (first,) = stored(memory, {"text": TEXT, "tags": ["home"]})
    stored(memory, {"text": TEXT, "tags": ["keys", "home"]})
    assert fact(memory, first.id).tags == ["home", "keys"]
    edited(memory, first.id, tags=["clock"])
    assert fact(memory, first.id).tags == ["clock"]
    assert memory.ids("spare", tag="clock") == [first.id]


def test_null_removes_and_gives_the_class_back_to_the_words(memory: Memory) -> None:
    id_ = memory.add(TEXT, category="home", entity="Key", key="phone", decay_class="session")
    done = edited(memory, id_, category=None, decay_class=None)
    assert (done.changed, done.decay_class, done.class_reason) == (
        ["category", "decay_class"], "permanent", "key: phone"
    )  # fmt: skip
    done = edited(memory, id_, key=None)
    assert (done.changed, done.decay_class) == (["key", "decay_class"], "stable")
    assert fact(memory, id_).category is None


def test_what_it_is_about_can_be_given_later_and_then_contradicts(memory: Memory) -> None:
    door = {"text": "The code of the door", "entity": "Door", "key": "code"}
    one, other = memory.add(**door, value="1111"), memory.add("The code is another one.")
    edited(memory, other, entity="Door", key="code", value="2222")
    assert contradicting(memory.context, ListContradictions(), day(0)).total == 1
    (bare,) = stored(memory, "A code.")
    stored(memory, {"text": "A code.", "entity": "Door", "key": "code", "value": "3333"})
    assert contradicting(memory.context, ListContradictions(), day(0)).total == 3
    assert stored(memory, {"text": "A code.", "value": "4444"})[0].action == "added"
    assert {one, other, bare.id} < set(memory.ids("code", limit=10))


@pytest.mark.parametrize("change", [{"value": "1111"}, {"key": "colour"}, {"entity": "Gate"}, {"value": None}])
def test_facts_that_agree_after_an_edit_contradict_each_other_no_more(memory: Memory, change: dict[str, Any]) -> None:
    door = {"entity": "Door", "key": "code"}
    one = memory.add("The code of the door", **door, value="1111")
    other = memory.add("The door opens with a code", **door, value="2222", at=1)
    assert contradictions(memory) == (1, 1, [str(one)], [str(one)])
    edited(memory, other, 2, **change)
    assert contradictions(memory) == (0, 0, [], [])
    edited(memory, other, 3, **door, value="3333")
    assert contradictions(memory) == (1, 1, [str(one)], [str(one)])


def test_an_edit_by_which_two_facts_say_the_same_is_refused(memory: Memory) -> None:
    door = {"text": "The code of the door", "entity": "Door", "key": "code"}
    one, other = memory.add(**door, value="1111"), memory.add(**door, value="2222")
    with pytest.raises(InvalidInputError, match=f"say the same as fact {one}"):
        edited(memory, other, value="1111")
    assert fact(memory, other).value == "2222"


def test_a_late_repeat_of_a_store_does_not_undo_a_later_edit(memory: Memory) -> None:
    given = {"id": str(uuid4()), "text": TEXT, "importance": 0.3, "category": "home"}
    (first,) = stored(memory, given)
    edited(memory, first.id, 1, importance=0.9)
    (again,) = stored(memory, given, at=0.5)
    assert (again.action, again.changed, fact(memory, first.id).importance) == ("unchanged", [], 0.9)
    with pytest.raises(InvalidInputError, match="was edited at"):
        edited(memory, first.id, 0.5, importance=0.1)


def test_edits_of_different_fields_apply_in_any_order(memory: Memory) -> None:
    id_ = memory.add(TEXT)
    edited(memory, id_, 2, category="home", importance=0.9)
    late = edited(memory, id_, 1, tags=["keys"], source="diary", importance=0.1)
    (again,) = stored(memory, {"text": TEXT, "category": "work", "entity": "Mira"}, at=1)
    now = fact(memory, id_)
    assert (late.changed, again.changed) == (["source", "tags"], ["entity"])
    assert (now.category, now.importance, now.tags, now.source) == ("home", 0.9, ["keys"], "diary")


def test_tags_of_statements_are_added_in_any_order_unless_a_later_edit_removed_them(memory: Memory) -> None:
    (first,) = stored(memory, {"text": TEXT, "tags": ["old"]})
    edited(memory, first.id, 2, tags=["kept"])
    stored(memory, {"text": TEXT, "tags": ["late"]}, at=3)
    (again,) = stored(memory, {"text": TEXT, "tags": ["old", "new"]}, at=1)
    assert (again.changed, fact(memory, first.id).tags) == (["tags"], ["kept", "late", "new"])


@pytest.mark.parametrize("details", [{}, {"is": 1}, {"is": None}, {"is": {"tags": []}, "was": {"tags": None}}])
def test_an_edit_applies_whatever_a_later_imported_entry_says(
    memory: Memory, twin: Memory, details: dict[str, Any]
) -> None:
    id_ = memory.add(TEXT)
    (line,) = [one for one in memory.archive(1) if "text" in one]
    event = {"at": day(5).isoformat(), "what": "edited", "details": details}
    twin.import_records([line | {"events": [*line["events"], event]}], at=2)
    assert edited(twin, id_, 3, category="home").changed == ["category"]
    assert fact(twin, id_).category == "home"


@pytest.mark.parametrize("purge", [True, False])
def test_what_an_edited_fact_stated_first_stays_forgotten_with_it(memory: Memory, purge: bool) -> None:
    given: dict[str, Any] = {"text": TEXT, "entity": "Mira", "key": "key"}
    (first,) = stored(memory, given)
    edited(memory, first.id, 1, entity="Tom")
    edited(memory, first.id, 2, entity="Ana", key="spare key")
    memory.forget(first.id, at=3, purge=purge)
    feeds: list[dict[str, Any]] = [given, given | {"entity": "Tom"}, {"text": TEXT}]
    assert [one.action for one in stored(memory, *feeds, at=4)] == ["forgotten"] * 3
    (other,) = stored(memory, given | {"entity": "Zoe"}, at=4)
    assert other.action == "added"
    if not purge:
        memory.restore(first.id, at=5)
        assert [one.action for one in stored(memory, given, at=6)] == ["added"]


def test_what_another_fact_states_is_not_forgotten_with_an_edited_one(memory: Memory) -> None:
    given: dict[str, Any] = {"text": TEXT, "entity": "Mira"}
    (first,) = stored(memory, given)
    edited(memory, first.id, 1, entity="Tom")
    (second,) = stored(memory, given, at=2)
    memory.forget(first.id, at=3)
    memory.rows("update facts set forgotten_at = now(), forgotten_reason = 'faded' where id = %s", second.id)
    assert [one.action for one in stored(memory, given, at=4)] == ["added"]


@pytest.mark.parametrize("together", [True, False])
def test_what_was_forgotten_stays_so_when_a_fact_that_stated_it_before_an_edit_returns(
    memory: Memory, together: bool
) -> None:
    given: dict[str, Any] = {"text": TEXT, "entity": "Mira"}
    (first,) = stored(memory, given)
    edited(memory, first.id, 1, entity="Tom")
    (second,) = stored(memory, given, at=2)
    if together:
        memory.forget(first.id, second.id, at=3)
    else:
        memory.forget(second.id, at=3)
        memory.forget(first.id, at=4)
    memory.restore(first.id, at=5)
    assert [one.action for one in stored(memory, given, at=6)] == ["forgotten"]
    memory.restore(second.id, at=7)
    memory.forget(first.id, at=8)
    assert [one.id for one in stored(memory, given, at=9)] == [second.id]


def test_the_answer_names_what_it_ignored(memory: Memory) -> None:
    stored(memory, {"text": TEXT, "session": "a", "turn": 1})
    given = {"session": "b", "turn": 1, "role": "user", "salience": 0.9, "source_date": "2025-01-01", "tags": ["home"]}
    (again,) = stored(memory, {"text": TEXT.upper(), **given}, at=1)
    assert (again.action, again.changed) == ("updated", ["tags", "role"])
    assert again.ignored == ["case", "salience"]
    (again,) = stored(memory, TEXT.replace(" ", "  "), at=2)
    assert (again.action, again.ignored) == ("duplicate", ["spacing"])


def test_what_is_no_live_fact_cannot_be_edited(memory: Memory) -> None:
    over, gone = memory.add(TEXT, decay_class="session"), memory.add("Tea at four.")
    memory.forget(gone, at=1)
    for id_ in (over, gone, uuid4()):
        with pytest.raises(NotFoundError):
            edited(memory, id_, 2, importance=0.9)
    chunk = memory.add("# Notes", kind="chunk")
    with pytest.raises(InvalidInputError, match="is of kind chunk"):
        edited(memory, chunk, importance=0.9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "nothing is to be changed"),
        ({"text": "Another."}, "(?s)text.*not permitted"),
        ({"importance": None}, "importance: cannot be removed"),
        ({"confidence": 2}, "confidence"),
        ({"decay_class": "forever"}, "decay_class"),
        ({"tags": ["a,b"]}, "tags"),
    ],
)
def test_an_edit_that_cannot_be_is_refused(memory: Memory, changes: dict[str, Any], said: str) -> None:
    with pytest.raises((InvalidInputError, ValidationError), match=said):
        edit.edit(memory.context, Edit(id=uuid4(), **changes), day(0))


def test_a_store_that_waits_for_an_edit_of_the_fact_that_said_the_same_does_not_undo_it(memory: Memory) -> None:
    hall, cellar = ({"text": TEXT, "entity": "key", "key": "place", "value": value} for value in ("hall", "cellar"))
    (known,) = stored(memory, hall)
    with ThreadPoolExecutor(1) as pool, transaction(memory.context.database_url) as db:
        activity.lock(db, 1, [known.id])
        storing = pool.submit(memory.store, hall, at=1)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        edit.edit_within(memory.context, db, 1, {known.id: {"value": "cellar"}}, day(1), strict=True)
        db.commit()
        with pytest.raises(UnavailableError, match="was edited at this very moment"):
            storing.result()
    assert [one.action for one in stored(memory, hall, cellar, at=2)] == ["added", "duplicate"]
    assert fact(memory, known.id).value == "cellar"


def test_a_store_meets_an_edit_that_gives_detail_to_the_fact_that_says_the_same(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (known,) = stored(memory, TEXT)
    add = facts.ask_add

    def once_edited(*given: Any) -> Any:
        monkeypatch.undo()
        edited(memory, known.id, at=1, entity="key")
        return add(*given)

    monkeypatch.setattr(facts, "ask_add", once_edited)
    assert [one.id for one in stored(memory, TEXT, at=2)] == [known.id]
    assert memory.value("select count(*) from facts") == 1


def test_an_edit_that_meets_a_store_of_the_same_is_to_be_tried_again(memory: Memory) -> None:
    hall, cellar = ({"text": TEXT, "entity": "key", "key": "place", "value": value} for value in ("hall", "cellar"))
    (one,), (other,) = stored(memory, hall), stored(memory, "The oven is slow.")
    with ThreadPoolExecutor(1) as pool, transaction(memory.context.database_url) as db:
        db.execute("update facts set hash = %s where id = %s", [digest(new_fact(cellar, 1000)), other.id])
        editing = pool.submit(edited, memory, one.id, 1, value="cellar")
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.commit()
        with pytest.raises(UnavailableError, match="says the same was stored at this very moment"):
            editing.result()
