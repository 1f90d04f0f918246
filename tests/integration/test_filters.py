"""Filters: lists and recalls return the facts that pass all of them; explanations name the failed one."""

import random
from typing import Any

import pytest
from ebb.contract.reports import ListFacts
from memory import Memory, day

from workers.admin import search_indexes
from workers.errors import InvalidInputError
from workers.memory import facts as listing
from workers.validation import cursors

TEXT = "The boat lies in the north harbour"
SELF = {
    "tags": ["sea"], "category": "boats", "kind": "episodic", "role": "user", "entity": "Mira", "key": "boat",
    "session": 7, "source": "chat", "coactivations": 9,
}  # fmt: skip
MATCHING: list[tuple[str, Any]] = [
    ("tag", "sea"), ("category", "boats"), ("kind", "episodic"), ("role", "user"), ("entity", "mIRA"), ("key", "Boat"),
    ("session", "7"), ("session", 7), ("source", "chat"), ("tier", "hot"), ("pinned", True),
]  # fmt: skip
OTHERS: list[tuple[str, Any, str]] = [
    ("entity", "Anselm", "other entity"), ("key", "house", "other key"), ("session", "x", "other session"),
    ("source", "mail", "other source"), ("tier", "cold", "other tier"),
]  # fmt: skip

FIELDS: dict[str, list[Any]] = {
    "tags": [[], ["sea"], ["sea", "land"]], "category": [None, "boats", "home"], "kind": ["semantic", "chunk"],
    "role": [None, "user", "assistant"], "entity": [None, "Mira", "MIRA", "Straße"], "key": [None, "home", "Home"],
    "session": [None, 7, "7", "x"], "source": [None, "chat", "notes/a.md"],
}  # fmt: skip
"""What random facts have."""

ASKED: dict[str, list[Any]] = {
    "tag": ["sea", "air"], "category": ["boats", "x"], "kind": ["semantic", "chunk"], "role": ["user", "tool"],
    "entity": ["mira", "STRASSE"], "key": ["HOME"], "session": [7, "x", 8], "source": ["chat", "notes/a.md"],
    "pinned": [True, False], "tier": ["hot", "warm"], "documents": [False],
}  # fmt: skip

SESSIONS = (7, "007", "--7", "\u0667", "-0", 0, "7.0")


@pytest.fixture
def facts(memory: Memory) -> tuple[Any, Any]:
    """Return the ids of two facts that differ in all filtered fields."""
    one = memory.add(TEXT, **SELF)
    other = memory.add(f"{TEXT}, says Anselm", tags=["talk"], session="8")
    memory.pin(one, at=0)
    memory.rows("update activity set tier = 1 where fact = %s", other)
    return one, other


@pytest.mark.parametrize(("name", "value"), MATCHING)
def test_a_filter_holds_in_lists_and_in_recalls(memory: Memory, facts: tuple[Any, Any], name: str, value: Any) -> None:
    assert [one["id"] for one in memory.listed(**{name: value})] == [facts[0]]
    assert memory.ids("north harbour", **{name: value}) == [facts[0]]


@pytest.mark.parametrize(("name", "value", "rule"), OTHERS)
def test_an_explanation_names_the_filter_that_left_a_fact_out(
    memory: Memory, facts: tuple[Any, Any], name: str, value: Any, rule: str
) -> None:
    found = memory.ask("north harbour", explain=True, **{name: value})
    assert facts[0] not in {one.id for one in found.results}
    assert rule in {one["rule"] for one in found.left_out or () if one["id"] == str(facts[0])}


def passes(fact: dict[str, Any], name: str, wanted: Any, asked: dict[str, Any]) -> bool:
    """Return whether a fact passes a filter, compared field by field."""
    if name == "tag":
        return wanted in fact["tags"]
    if name == "documents":
        return fact["kind"] != "chunk" or asked.get("kind") == "chunk"
    if name in ("entity", "key"):
        return (fact[name] or "").casefold() == wanted.casefold()
    return str(fact[name]) == str(wanted)


def test_random_filters_leave_the_facts_that_a_comparison_of_each_fact_leaves(memory: Memory) -> None:
    chance, facts = random.Random(1), {}
    for number in range(90):
        fact = {name: chance.choice(values) for name, values in FIELDS.items()}
        given = {name: value for name, value in fact.items() if value is not None}
        id_ = memory.add(f"{TEXT}, berth {number}", **given, **({"turn": number} if "session" in given else {}))
        facts[id_] = fact | {"pinned": chance.random() < 0.3, "tier": chance.choice(["hot", "warm"])}
        if facts[id_]["pinned"]:
            memory.pin(id_, at=0)
        memory.rows("update activity set tier = %s where fact = %s", int(facts[id_]["tier"] == "warm"), id_)
    for _ in range(60):
        asked = {name: chance.choice(ASKED[name]) for name in chance.sample(list(ASKED), chance.randint(0, 4))}
        left = {id_ for id_, one in facts.items() if all(passes(one, *each, asked) for each in asked.items())}
        recalled = memory.ids("north harbour", limit=100, min_relevance=0, **asked)
        listed = [one["id"] for one in memory.listed(**asked)]
        assert (sorted(recalled), sorted(listed)) == (sorted(left), sorted(left)), asked


def test_filters_hold_together_and_pages_go_on_within_them(memory: Memory) -> None:
    wanted = [memory.add(f"Boat {place}", tags=["sea"], session=1) for place in range(5)]
    for place in range(5):
        memory.add(f"House {place}", tags=["land"], session=1)
        memory.add(f"Ship {place}", tags=["sea"], session=2)
    found, rest = listing.page(memory.context, ListFacts(tag="sea", session=1, limit=2), day(0))
    while rest:
        asked = ListFacts(tag="sea", session=1, limit=2, cursor=cursors.following(rest))
        page, rest = listing.page(memory.context, asked, day(0))
        found += page
    assert [one["id"] for one in found] == wanted[::-1]


def test_a_session_is_also_a_number_only_if_it_is_written_as_one(memory: Memory) -> None:
    ids = {session: memory.add(f"{TEXT} {place}", session=session) for place, session in enumerate(SESSIONS)}
    assert {session: [one["id"] for one in memory.listed(session=session)] for session in SESSIONS} == {
        session: [id_] for session, id_ in ids.items()
    }
    assert {session: memory.ids("north harbour", session=session) for session in SESSIONS} == {
        session: [id_] for session, id_ in ids.items()
    }


def test_parts_of_files_are_left_out_of_lists_and_recalls_where_that_is_wanted(memory: Memory) -> None:
    own = memory.add(TEXT)
    memory.add(f"{TEXT}. See the map.", kind="chunk", source="notes/boat.md")
    assert len(memory.listed()) == 2
    assert [one["id"] for one in memory.listed(documents=False)] == [own]
    assert memory.ids("north harbour", documents=False) == [own]


def test_filters_with_ids_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="leave out the filters"):
        memory.listed(ids=[memory.add(TEXT)], tag="sea")


def test_a_tier_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(ValueError, match="'hot', 'warm' or 'cold'"):
        ListFacts(tier="tepid")  # type: ignore[arg-type]  # what a caller may send


def test_a_recall_returns_as_many_facts_as_were_asked_for(memory: Memory) -> None:
    memory.store(*(f"Boat {place} lies in the harbour" for place in range(150)))
    assert len(memory.ids("Which boat lies in the harbour?", limit=140)) == 140


def test_a_filter_makes_no_fact_that_passes_it_less_relevant(memory: Memory) -> None:
    for place in range(60):
        memory.add(f"The winter tea of house {place} has music in it", session=place)
    wanted = memory.add("Market of the dentist Pupabumudeq", session="here", source="chat")
    search_indexes.count_lexemes(memory.context, "default", day(0))

    def relevance(**filters: Any) -> float | None:
        found = memory.ask("pupabumudeq winter tea music", min_relevance=0, limit=400, **filters).results
        return next(one.relevance for one in found if one.id == wanted)

    assert relevance(session="here", source="chat") == relevance(source="chat") == relevance()
