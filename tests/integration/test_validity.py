"""The period of validity of a fact can be given, is shown, and decides which questions find it."""

from typing import Any

import pytest
from ebb.contract.facts import Edit
from ebb.contract.reports import ListContradictions
from memory import Memory, day

from workers.errors import InvalidInputError
from workers.memory import edit as editing
from workers.memory.add import Stored
from workers.memory.supersede import contradicting

TEXT = "Mira works at the north harbour"


def test_a_fact_is_found_as_long_as_it_is_true(memory: Memory) -> None:
    id_ = memory.add(TEXT, at=5, valid_from=day(2).isoformat(), valid_until=day(10).isoformat())
    (shown,) = memory.ask("north harbour", at=6).results
    assert (shown.valid_from, shown.valid_until) == (day(2), day(10))
    assert memory.ids("north harbour", at=11) == []
    assert memory.ids("north harbour", at=11, as_of=day(9)) == [id_]
    assert memory.ids("north harbour", at=11, as_of=day(1)) == []
    (out,) = memory.ask("north harbour", at=11, explain=True).left_out or ()
    assert out["rule"] == "no longer valid"


def test_a_fact_without_validity_is_true_since_it_was_stated(memory: Memory) -> None:
    memory.add(TEXT, at=5, source_date=day(3).isoformat())
    (shown,) = memory.ask("north harbour", at=6).results
    assert (shown.valid_from, shown.valid_until) == (None, None)
    assert memory.value("select valid_from from facts") == day(3)


@pytest.mark.parametrize("until", [1, 2])
def test_a_validity_that_ends_before_it_begins_is_refused(memory: Memory, until: float) -> None:
    (refused,) = [memory.store({"text": TEXT})]
    id_ = refused[0].id  # type: ignore[union-attr]
    wrong = {"valid_from": day(2), "valid_until": day(until)}
    with pytest.raises(InvalidInputError, match="does not lie after valid_from"):
        memory.store({"text": "Other", **wrong})
    with pytest.raises(InvalidInputError, match="does not lie after valid_from"):
        editing.edit(memory.context, Edit(id=id_, **wrong), day(1))


@pytest.mark.parametrize(
    ("name", "number"), [("valid_until", 2), ("valid_until", 1), ("valid_from", 4), ("valid_from", 5)]
)
def test_a_validity_that_would_end_before_it_begins_is_ignored_of_a_known_fact(
    memory: Memory, twin: Memory, name: str, number: float
) -> None:
    id_ = memory.add(TEXT, valid_from=day(2).isoformat(), valid_until=day(4).isoformat())
    (again,) = memory.store({"id": str(id_), "text": TEXT, name: day(number), "role": "tool"}, at=5)
    assert isinstance(again, Stored)
    assert (again.changed, again.ignored) == (["role"], [name])
    assert twin.import_records(memory.archive(6), 6) == ["added"]


def test_validity_and_role_can_be_edited_and_stated_again(memory: Memory) -> None:
    id_ = memory.add(TEXT, role="assistant")
    memory.rows("update facts set content_salience = 0.3")
    asked = Edit(id=id_, role="user", valid_until=day(3))
    assert editing.edit(memory.context, asked, day(1)).changed == ["role", "valid_until"]
    assert memory.rows("select role, valid_until, content_salience from facts") == [("user", day(3), None)]
    (again,) = memory.store({"text": TEXT, "role": "tool", "valid_until": day(4)}, at=2)
    assert isinstance(again, Stored)
    assert (again.action, again.changed) == ("updated", ["role", "valid_until"])
    first = memory.value("select details from events where what = 'edited' order by id limit 1")
    assert first["is"]["valid_until"] == day(3).isoformat()


def test_a_statement_that_is_made_again_after_its_end_is_true_again(memory: Memory) -> None:
    def store(at: float, **given: Any) -> tuple[str, list[str]]:
        (again,) = memory.store({"text": TEXT, **given}, at=at)
        assert isinstance(again, Stored)
        return again.action, again.changed

    id_ = memory.add(TEXT, valid_until=day(3).isoformat(), tags=["work"])
    assert store(2) == ("duplicate", [])
    assert store(5, source_date=day(2).isoformat()) == ("duplicate", [])
    assert store(5, id=str(id_)) == ("unchanged", [])
    assert memory.ids("north harbour", at=5) == []
    assert store(5) == ("updated", ["valid_until"])
    assert memory.ids("north harbour", at=5, tag="work") == [id_]
    editing.edit(memory.context, Edit(id=id_, valid_until=day(4)), day(6))
    assert store(5) == ("duplicate", [])  # which arrives late
    assert memory.ids("north harbour", at=7) == []
    assert store(7, valid_from=day(7).isoformat()) == ("updated", ["valid_from", "valid_until"])
    assert memory.ids("north harbour", at=8) == [id_]


def test_a_fact_contradicts_another_as_long_as_it_is_true(memory: Memory) -> None:
    about = {"entity": "Mira", "key": "work"}
    memory.add(TEXT, **about, value="north", valid_until=day(5).isoformat())
    memory.add("Mira works in the village", **about, value="village", at=1)
    for at, total in ((2, 1), (5, 0), (6, 0)):
        found = contradicting(memory.context, ListContradictions(), day(at))
        assert (len(found.contradictions), found.total, memory.stats(at=at).contradictions) == (total, total, total)


def test_a_given_salience_stays_when_the_role_changes(memory: Memory) -> None:
    id_ = memory.add(TEXT, salience=0.9)
    editing.edit(memory.context, Edit(id=id_, role="user"), day(1))
    assert memory.value("select content_salience from facts") == pytest.approx(0.9)


@pytest.mark.parametrize(("given", "closed"), [(3, 3), (30, 5), (None, 5)])
def test_a_superseded_fact_keeps_an_earlier_end_and_has_the_one_given_again_when_it_is_restored(
    memory: Memory, given: float | None, closed: float
) -> None:
    until = {} if given is None else {"valid_until": day(given).isoformat()}
    old = memory.add(TEXT, **until)
    memory.store({"text": "Mira works at the south harbour", "supersedes": str(old)}, at=5)
    ends = "select valid_until from facts where id = %s"
    assert memory.value(ends, old) == day(closed)
    memory.restore(old, at=6)
    assert memory.value(ends, old) == (None if given is None else day(given))
    memory.store({"text": "Mira works at the west harbour", "supersedes": str(old)}, at=7)
    assert memory.value(ends, old) == day(3 if given == 3 else 7)
    memory.restore(old, at=8)
    assert memory.value(ends, old) == (None if given is None else day(given))


def test_what_is_no_longer_true_takes_no_place_of_what_is(memory: Memory) -> None:
    memory.store(
        *({"text": f"The lunch menu has dish {number}.", "valid_until": day(number + 1)} for number in range(300))
    )
    assert [one.text for one in memory.ask("lunch menu", at=299.5).results] == ["The lunch menu has dish 299."]


@pytest.mark.parametrize("asked", [{}, {"deep": True}, {"kind": "semantic"}, {"kind": "semantic", "deep": True}])
@pytest.mark.parametrize("what", ["valid_until", "superseded_at", "forgotten_reason = 'asked', forgotten_at"])
def test_what_is_over_takes_no_place_of_what_is_found_by_meaning(
    memory: Memory, asked: dict[str, Any], what: str
) -> None:
    memory.store(*(f"Grandmas cellos {number}." for number in range(210)))
    memory.rows(f"update facts set {what} = %s", day(1))
    memory.rows("update signatures set live = false where %s", what != "valid_until")
    id_ = memory.add("Grandmother keeps the violoncello upstairs.")

    assert memory.ids("grandmas cellos", at=2, min_relevance=0, **asked) == [id_]


@pytest.mark.parametrize("name", ["as_of", "known_as_of"])
def test_what_was_stated_later_takes_no_place_of_what_was_true_then(memory: Memory, name: str) -> None:
    memory.store(*({"text": f"My weight is {number} g.", "created_at": day(number)} for number in range(300)), at=300)
    found = memory.ask("What is my weight?", at=301, **{name: day(1.5)}).results
    assert [one.text for one in found] == ["My weight is 1 g.", "My weight is 0 g."]
