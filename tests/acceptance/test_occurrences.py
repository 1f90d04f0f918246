"""A sentence of several conversations is one fact, which is found under each and leaves those that are forgotten."""

from collections.abc import Iterator
from typing import Any

import pytest
from ebb import Memory
from live_api import serving
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance

SAME = {"role": "user", "content": "The ferry leaves from Rostock.", "created_at": "2026-02-01T08:00:00Z"}
LATER = SAME | {"created_at": "2026-03-01T08:00:00Z"}
MONDAY = [{"role": "user", "content": "We travel on Monday."}, SAME]
FRIDAY = [LATER, {"role": "user", "content": "The tickets are booked for Friday."}]


@pytest.fixture
def memory(live: LiveSystem, namespace: str) -> Iterator[Memory]:
    with serving(live) as client, Memory(str(client.base_url), namespace=namespace) as memory:
        memory.remember(MONDAY, session="monday")
        memory.remember(FRIDAY, session="friday")
        yield memory


def listed(memory: Memory, session: str | int) -> set[str]:
    return {one.text for one in memory.facts(session=session).facts}


def ferry(memory: Memory, **filters: Any) -> Any:
    found = memory.recall("Where does the ferry leave from?", **filters).results
    return next((one for one in found if one.text == SAME["content"]), None)


def test_a_sentence_of_two_sessions_is_one_fact_found_under_each(memory: Memory) -> None:
    monday, friday = ferry(memory, session="monday"), ferry(memory, session="friday")
    assert monday is not None
    assert friday is not None
    assert monday.id == friday.id
    assert ferry(memory, session="sunday") is None
    assert listed(memory, "monday") == {one["content"] for one in MONDAY}
    assert listed(memory, "friday") == {one["content"] for one in FRIDAY}

    shown = memory.fact(monday.id).model_dump(mode="json")
    assert (shown["session"], shown["turn"]) == ("monday", 1)
    (again,) = shown["said_again"]
    assert (again["session"], again["turn"], again["role"]) == ("friday", 0, "user")
    assert again["said_at"].startswith("2026-03-01")
    noted = [one.details for one in memory.history(monday.id).events if one.what == "said again"]
    assert noted == [{"session": "friday", "turn": 0, "role": "user"}]


def test_messages_that_are_given_again_add_nothing_and_turns_have_no_gap(memory: Memory) -> None:
    more = memory.remember([*FRIDAY, {"role": "user", "content": "It is a small boat."}], session="friday")
    again = memory.remember([*FRIDAY, {"role": "user", "content": "It is a small boat."}], session="friday")

    assert [one.turn for one in more.turns] == [None, None, 2]
    assert again.added == 0
    found = ferry(memory)
    assert len(memory.fact(found.id).model_dump(mode="json")["said_again"]) == 1


def test_a_fact_stays_until_the_last_of_its_sessions_is_forgotten(memory: Memory) -> None:
    known = ferry(memory).id
    preview = memory.forget(session="monday", dry_run=True)
    assert (preview.matching, preview.kept) == (2, 1)
    assert {one.action for one in preview.results if one.id == known} == {"kept"}

    done = memory.forget(session="monday")
    assert (done.matching, done.done, done.kept) == (2, 1, 1)
    assert listed(memory, "monday") == set()
    assert listed(memory, "friday") == {one["content"] for one in FRIDAY}
    shown = memory.fact(known).model_dump(mode="json")
    assert (shown["session"], shown["turn"], shown.get("said_again")) == ("friday", 0, None)
    assert shown["source_date"].startswith("2026-03-01")

    assert memory.remember(FRIDAY, session="friday").added == 0
    last = memory.forget(session="friday", purge=True)
    assert (last.done, last.kept) == (2, 0)
    assert ferry(memory) is None


def test_a_fact_of_a_session_that_is_stored_again_without_one_stays(memory: Memory) -> None:
    known = ferry(memory)
    for _ in range(2):
        assert memory.store(SAME["content"]).action == "duplicate"
    assert [one.details for one in memory.history(known.id).events if one.what == "said again"][-1:] == [{}]
    first, second = memory.forget(session="monday"), memory.forget(session="friday")
    assert (first.kept, second.kept) == (1, 1)
    shown = memory.fact(known.id)
    assert (shown.session, shown.turn, shown.text) == (None, None, SAME["content"])
    assert listed(memory, "friday") == set()


def test_a_fact_of_no_session_leaves_only_the_session_that_is_forgotten(memory: Memory) -> None:
    plain = memory.store("The cat sleeps in the bakery.").id
    memory.remember(["The cat sleeps in the bakery."], session=7)
    assert listed(memory, "7") == {"The cat sleeps in the bakery."}

    done = memory.forget(session=7, purge=True)
    assert (done.done, done.kept) == (0, 1)
    assert listed(memory, 7) == set()
    assert memory.fact(plain).session is None
