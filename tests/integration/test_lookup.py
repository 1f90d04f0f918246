"""Lookup: all visible facts about an entity, in the documented order."""

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from ebb.contract.recall import Lookup
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.core.names import folded
from workers.memory import recall, supersede

many = examples(15)


def found(memory: Memory, entity: str, key: str | None = None, *, at: float = 0, **name: object) -> list[str]:
    """Return the texts of a lookup, in order."""
    namespace = str(name.pop("namespace", "default"))
    results, _ = recall.lookup(memory.context, Lookup(entity=entity, key=key, namespace=namespace, **name), day(at))  # type: ignore[arg-type]
    return [one.text for one in results]


def test_the_older_values_of_a_key_name_the_newer_ones(memory: Memory) -> None:
    cities = ("Porto", "Lisbon", "Faro")
    facts = [{"text": f"Ana lives in {city}.", "entity": "Ana", "key": "city", "value": city} for city in cities]
    ids = [memory.add(**fact, at=at) for at, fact in enumerate(facts)]
    memory.add("Ana likes tea.", entity="Ana", key="drink", value="tea", at=3)

    def shown(at: float, **settings: Any) -> dict[UUID, set[str]]:
        context = memory.having(**settings).context
        results, _ = recall.lookup(context, Lookup(entity="Ana"), day(at))
        return {one.id: set(one.outdated_by) for one in results if one.outdated_by}

    porto, lisbon, faro = ids
    assert shown(4) == {porto: {str(lisbon), str(faro)}, lisbon: {str(faro)}}
    assert shown(4, notice_updates=False) == {}
    for allergy in ("penicillin", "peanuts"):
        memory.add(f"Ana must not have {allergy}.", entity="Ana", key="allergy", value=allergy, at=2)
    assert shown(4).keys() == {porto, lisbon}
    memory.store(facts[0], at=5)  # said again
    assert shown(6) == {lisbon: {str(porto), str(faro)}, faro: {str(porto)}}
    supersede.accept(memory.context, "default", porto, faro, day(7))
    assert shown(8) == {lisbon: {str(porto), str(faro)}}


def test_all_facts_of_a_name_are_returned_whatever_their_case(memory: Memory) -> None:
    memory.store(
        {"text": "Dark mode", "entity": "User", "key": "Preference"},
        {"text": "Leipzig", "entity": "user", "key": "city"},
        {"text": "The user likes tea"},
        {"text": "Another", "entity": "users", "key": "preference"},
    )
    assert found(memory, "USER", "preference") == ["Dark mode"]
    assert sorted(found(memory, "user")) == ["Dark mode", "Leipzig"]
    assert found(memory, "user", "language") == found(memory, "unknown") == []
    assert found(memory, "user", namespace="unknown") == []


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Zoë", "zoe"), ("Straße", "STRASSE"), ("Łukasz Ørsted", "lukasz orsted"), ("Soren", "Søren"),
        ("İzmir", "izmir"), ("André", "andre"), ("Renee", "Renée"), ("The Who", "THE WHO"),
    ],
)  # fmt: skip
def test_a_name_is_found_without_accents_and_other_special_letters(memory: Memory, stored: str, asked: str) -> None:
    memory.store({"text": "Leipzig", "entity": stored, "key": stored})
    assert found(memory, asked) == found(memory, asked, stored) == ["Leipzig"]
    assert found(memory, asked, stored, at=9, as_of=day(5)) == ["Leipzig"]
    assert [one.text for one in memory.ask("x", entity=asked, min_relevance=0).results] == ["Leipzig"]


@given(st.text(st.characters(codec="utf-8", max_codepoint=0x6FF, exclude_characters="\0"), max_size=30))
@examples(60)
def test_names_are_folded_equally_in_the_database_and_in_python(memory: Memory, name: str) -> None:
    assert memory.value("select folded(%s::text)", name) == folded(name)


def test_the_most_confident_comes_first_and_then_the_newest_by_its_source_date(memory: Memory) -> None:
    about = {"entity": "user", "key": "city"}
    memory.store({"text": "old", **about, "source_date": day(-9).isoformat()}, at=3)
    memory.store({"text": "doubtful", **about, "confidence": 0.9}, at=5)
    memory.store({"text": "new", **about}, at=2)
    memory.store({"text": "newest", **about, "source_date": day(4).isoformat()}, at=1)
    assert found(memory, "user", "city", at=6) == ["newest", "new", "old", "doubtful"]


def test_soft_decay_counts_for_the_order(memory: Memory) -> None:
    about = {"entity": "user", "key": "city"}
    memory.store({"text": "ending", **about, "decay_class": "session"}, {"text": "sure", **about, "confidence": 0.8})
    assert found(memory, "user", "city", at=0.5) == ["ending", "sure"]
    assert found(memory, "user", "city", at=0.8) == ["sure", "ending"]


def test_what_is_expired_superseded_forgotten_or_elsewhere_is_hidden(memory: Memory) -> None:
    about = {"entity": "user", "key": "city"}
    memory.store({"text": "expired", **about, "decay_class": "checkpoint"})
    superseded, forgotten = memory.add("superseded", **about), memory.add("forgotten", **about)
    memory.store({"text": "lives", **about, "supersedes": str(superseded)}, at=1)
    memory.store({"text": "theirs", **about}, namespace="theirs")
    memory.forget(forgotten, at=1)
    assert found(memory, "user", "city", at=2) == ["lives"]
    assert found(memory, "user", "city", at=2, namespace="theirs") == ["theirs"]


def test_as_of_an_instant_the_past_is_looked_up_without_touching(memory: Memory) -> None:
    about = {"entity": "The Who", "key": "city"}
    old = memory.add("Berlin", **about)
    memory.store({"text": "Leipzig", **about, "supersedes": str(old)}, at=2)
    assert found(memory, "the who", "city", at=3) == ["Leipzig"]
    assert found(memory, "the who", "city", at=3, as_of=day(1)) == ["Berlin"]
    assert found(memory, "the who", "city", at=3, known_as_of=day(1)) == ["Berlin"]
    assert found(memory, "the who", "city", at=3, as_of=day(-1)) == []


def test_a_tag_is_matched_as_a_whole(memory: Memory) -> None:
    memory.store(
        {"text": "tagged", "entity": "user", "tags": "UI, preference"},
        {"text": "like it", "entity": "user", "tags": ["uix", "u_", "ui two"]},
    )
    assert found(memory, "user", tag="ui") == ["tagged"]
    assert found(memory, "user", tag="u_") == ["like it"]
    assert found(memory, "user", tag="u%") == []


def test_composed_and_decomposed_tags_are_the_same(memory: Memory) -> None:
    memory.store({"text": "tagged", "entity": "user", "tags": ["cafe\u0301"]})
    assert found(memory, "user", tag="caf\u00e9") == found(memory, "user", tag="Cafe\u0301") == ["tagged"]


@given(st.lists(st.tuples(st.floats(0.2, 1), st.integers(0, 400)), min_size=1, max_size=8))
@many
def test_the_order_is_by_confidence_and_then_by_date(memory: Memory, facts: list[tuple[float, int]]) -> None:
    name = f"user {memory.value('select count(*) from facts')}"
    memory.store(*[
        {"text": f"{name} {i}", "entity": name, "confidence": sure, "source_date": day(-when).isoformat()}
        for i, (sure, when) in enumerate(facts)
    ])  # fmt: skip
    order = [facts[int(text.rsplit(" ", 1)[1])] for text in found(memory, name)]
    assert sorted(order) == sorted(facts)
    assert all((-a[0], a[1]) <= (-b[0], b[1]) for a, b in pairwise(order))


def test_blanks_and_line_breaks_within_a_name_are_like_one_blank(memory: Memory) -> None:
    id_ = memory.add("Mira is here.", entity="Mira\n Kern", key="home  town", value="Riga")
    assert memory.value("select array[entity, key] from facts") == ["Mira Kern", "home town"]
    for entity, key in (("mira kern", "home town"), ("Mira\tKern", "home \n town")):
        found, _ = recall.lookup(memory.context, Lookup(entity=entity, key=key), day(0))
        assert [one.id for one in found] == [id_]
        filtered = memory.ask("here", entity=entity, key=key, min_relevance=0)
        assert [one.id for one in filtered.results] == [id_]


def test_a_name_cannot_reach_beyond_itself(memory: Memory) -> None:
    memory.store({"text": "theirs", "entity": "secret"}, namespace="theirs")
    memory.store({"text": "ours", "entity": "o'hara & sons:*"}, namespace="ours")
    assert found(memory, "o'hara & sons:*", namespace="ours", as_of=day(1)) == ["ours"]
    for name in ("secret", "' | 'namespace 1", "%", "se_ret"):
        assert found(memory, name, namespace="ours", as_of=day(1)) == found(memory, name, namespace="ours") == []


def test_neither_a_lookup_nor_a_recall_with_a_tag_embeds_anything(memory: Memory) -> None:
    memory.store({"text": "Dark mode", "entity": "user", "tags": ["ui"]})
    # no server listens there, so embedding would fail
    blind = memory.having(embedder="openai", embedding_url="http://127.0.0.1:9/v1", embedding_key="none")
    assert found(blind, "user") == ["Dark mode"]
    assert [one.text for one in blind.ask("dark mode", tag="ui").results] == ["Dark mode"]
    assert "embedder" not in vars(blind.context)


def test_blanks_around_a_name_are_no_part_of_it(memory: Memory) -> None:
    id_ = memory.add("Mira is here.", entity=" Mira ", key=" place", value="Riga")
    for entity in ("mira", " Mira "):
        found, _ = recall.lookup(memory.context, Lookup(entity=entity, key="place "), day(0))
        assert [one.id for one in found] == [id_]
