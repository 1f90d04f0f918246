"""Recall follows links in both directions and finds entities by name, within limits and one namespace."""

import itertools
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day
from test_planner import rows_read

from workers.core.ranking import NAMED
from workers.memory.add import Stored
from workers.memory.recall import Result, graph
from workers.storage import links
from workers.storage.candidates import Scope
from workers.storage.connection import transaction
from workers.storage.links import ask_walks

bounded = examples(25)

QUESTION = "Why is the cellar flooded?"
CELLAR = "The cellar is flooded."
ASIDE = "Aunt Olga sent a postcard from Riga."
OTHERS = [f"The cabin number {number} is heated." for number in range(350)]
"""Facts so similar to the questions that the arms find no others."""


def link(
    memory: Memory, source: UUID, target: UUID, kind: str = "CAUSED_BY", strength: float = 1.0, **where: Any
) -> None:
    memory.link(source, target, kind, strength, **where)


def relate(
    memory: Memory, source: str, target: str, *, at: float = 0, namespace: str = "default", **given: Any
) -> None:
    memory.relate(source, target, at=at, namespace=namespace, **given)


def shown(memory: Memory, query: str = QUESTION, **question: Any) -> dict[UUID, Result]:
    """Return all scored facts, whatever their relevance."""
    question = {"limit": 300, "explain": True, "min_relevance": 0} | question
    return {one.id: one for one in memory.ask(query, **question).results}


def graph_part(one: Result) -> float:
    assert one.explain is not None
    return float(one.explain["graph"])


@pytest.fixture
def flooded(memory: Memory) -> tuple[UUID, UUID]:
    """Return a fact that the question finds, and one that only a link leads to."""
    memory.store(*OTHERS)
    return memory.add(CELLAR), memory.add(ASIDE)


@pytest.mark.parametrize("way", [1, -1])
def test_a_linked_fact_is_recalled_whichever_way_the_link_runs(
    memory: Memory, flooded: tuple[UUID, UUID], way: int
) -> None:
    _, aside = flooded
    assert aside not in shown(memory)
    link(memory, *flooded[::way], strength=0.8)
    found = shown(memory)
    assert list(found)[:2] == list(flooded)
    explain = found[aside].explain or {}
    assert explain["fit"] + explain["graph"] == pytest.approx(0.7 * 0.8, abs=0.01)
    assert found[aside].found_by == "link"
    assert aside not in shown(memory.having(graph_in_recall=False))


@pytest.mark.parametrize(("depth", "reached"), [(1, 1), (2, 2), (3, 3)])
def test_links_are_followed_as_deep_as_is_set_and_count_less_with_each_hop(
    memory: Memory, depth: int, reached: int
) -> None:
    memory.store(*OTHERS)
    chain = [memory.add(CELLAR), *(memory.add(f"{ASIDE[:-1]} number {i}.") for i in range(1, 5))]
    for one, two in itertools.pairwise(chain):
        link(memory, one, two)
    found = shown(memory.having(graph_depth=depth))
    assert [id_ in found for id_ in chain[1:]] == [place < reached for place in range(4)]
    parts = [graph_part(found[id_]) for id_ in chain[1 : reached + 1]]
    assert parts == sorted(parts, reverse=True)


def test_what_must_not_be_seen_is_neither_shown_nor_walked_through(memory: Memory, flooded: tuple[UUID, UUID]) -> None:
    cellar, aside = flooded
    beyond = memory.add("The piano is out of tune.")
    link(memory, cellar, aside)
    link(memory, aside, beyond)
    assert {aside, beyond} <= shown(memory).keys()
    memory.forget(aside, at=1)
    assert not {aside, beyond} & shown(memory, at=1).keys()
    memory.restore(aside, at=2)
    assert {aside, beyond} <= shown(memory, at=2).keys()
    memory.rows("update activity set ends_at = %s, expires_at = %s where fact = %s", day(3), day(3), aside)
    assert not {aside, beyond} & shown(memory, at=3).keys()


def test_the_links_of_what_was_superseded_hold_for_what_took_its_place(memory: Memory) -> None:
    memory.store(*OTHERS)
    old, aside = memory.add("The vault is wet."), memory.add(ASIDE)
    link(memory, old, aside)
    (new,) = memory.store({"text": CELLAR, "supersedes": str(old)}, at=1)
    assert isinstance(new, Stored)
    found = shown(memory, at=1)
    assert {new.id, aside} <= found.keys()
    assert old not in found
    assert shown(memory, at=2, as_of=day(0.5)).keys() >= {old, aside}


@pytest.mark.parametrize(
    ("name", "own", "other"), [("category", "home", "post"), ("kind", "semantic", "episodic"), ("role", "user", "tool")]
)
def test_a_filter_holds_along_links_and_for_entities(memory: Memory, name: str, own: str, other: str) -> None:
    chosen: dict[str, Any] = {name: own}
    cellar = memory.add(CELLAR, **chosen)
    passing = {place: memory.add(f"{ASIDE[:-1]} in {place}.", entity="Olga", **{name: place}) for place in (own, other)}
    for id_ in passing.values():
        link(memory, cellar, id_)
    assert shown(memory, "cellar of Olga", **chosen).keys() == {cellar, passing[own]}


def test_with_a_tag_links_lead_to_what_has_it(memory: Memory) -> None:
    cellar = memory.add(CELLAR, tags=["home"])
    passing = [memory.add(f"{ASIDE[:-1]} number {tag}.", tags=[tag]) for tag in ("home", "post")]
    for id_ in passing:
        link(memory, cellar, id_)
    assert shown(memory, tag="home").keys() == {cellar, passing[0]}


def test_a_fact_with_many_links_adds_the_twenty_strongest(memory: Memory) -> None:
    memory.store(*OTHERS)
    cellar = memory.add(CELLAR)
    leaves = [one.id for one in memory.store(*[f"{ASIDE[:-1]} number {i}." for i in range(30)])]  # type: ignore[union-attr]
    for place, leaf in enumerate(leaves):
        link(memory, cellar, leaf, strength=(place + 1) / 100)
    found = shown(memory)
    assert [leaf in found for leaf in leaves] == [False] * 10 + [True] * 20


def test_links_to_forgotten_facts_do_not_take_the_places_of_others(memory: Memory) -> None:
    memory.store(*OTHERS)
    cellar, aside = memory.add(CELLAR), memory.add(ASIDE)
    link(memory, cellar, aside, strength=0.5)
    leaves = [one.id for one in memory.store(*[f"{ASIDE[:-1]} number {i}." for i in range(20)])]  # type: ignore[union-attr]
    for leaf in leaves:
        link(memory, cellar, leaf)
    memory.forget(*leaves, at=1)
    assert aside in shown(memory, at=2)


def test_of_many_links_to_forgotten_facts_the_strongest_are_read(memory: Memory) -> None:
    cellar = memory.add(CELLAR)
    leaves = [one.id for one in memory.store(*[f"{ASIDE[:-1]} number {i}." for i in range(400)])]  # type: ignore[union-attr]
    for leaf in leaves:
        link(memory, cellar, leaf)
    memory.forget(*leaves, at=1)
    memory.rows("analyze")
    most = links.EXAMINED * graph.FAN
    given = {"namespace": 1, "seeds": [cellar], "scores": [1.0], "depth": 1, "breadth": 1, "fan": graph.FAN}
    given |= scope(2).parameters | {"known_as_of": links.LAST, "asked_for": []}
    assert rows_read(memory, links.WALK, given) <= 2 * most + 20


def scope(at: float = 0) -> Scope:
    return Scope(day(at))


@given(st.data())
@bounded
def test_a_walk_ends_reaches_nothing_twice_and_stays_in_bounds(memory: Memory, data: st.DataObject) -> None:
    memory.rows("truncate facts cascade")
    facts = [memory.add(f"Fact number {i}.") for i in range(8)]
    pairs = data.draw(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1])))
    edges = {pair: data.draw(st.floats(0, 1)) for pair in sorted(pairs)}
    for (one, two), strength in edges.items():
        link(memory, facts[one], facts[two], "RELATED_TO", strength)
    depth, breadth, fan = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(1, 8)))
    chosen = {facts[place] for place in data.draw(st.sets(st.integers(0, 7), min_size=1))}
    seeds = {id_.bytes: 1.0 for id_ in chosen}
    tenant = memory.value("select id from namespaces where name = 'default'")
    with transaction(memory.context.database_url) as db:
        walked = ask_walks(db, tenant, seeds, scope(), depth=depth, breadth=breadth, fan=fan)()
        everything = ask_walks(db, tenant, seeds, scope(), depth=3, breadth=10_000, fan=100)()
    assert len(walked) <= depth * min(breadth, 10_000) * 2 * fan or len(seeds) > breadth
    assert {(one.fact, one.seed, one.hops) for one in walked} <= {(one.fact, one.seed, one.hops) for one in everything}
    assert all(1 <= one.hops <= depth and one.fact != one.seed and one.seed in seeds for one in walked)
    assert {UUID(bytes=one.fact) for one in everything} == reachable(facts, edges, chosen)


def reachable(facts: list[UUID], edges: dict[tuple[int, int], float], seeds: set[UUID]) -> set[UUID]:
    """Return the facts at most three links away from a seed, by an independent search."""
    beside: dict[UUID, set[UUID]] = {id_: set() for id_ in facts}
    for one, two in edges:
        beside[facts[one]].add(facts[two])
        beside[facts[two]].add(facts[one])
    found: set[UUID] = set()
    for seed in seeds:
        near = {seed}
        for _ in range(3):
            near |= {two for one in near for two in beside[one]}
        found |= near - {seed}
    return found


def test_facts_of_an_entity_that_is_named_are_recalled_and_gain_by_it(memory: Memory) -> None:
    memory.store(*OTHERS)
    about = memory.add("A postcard came from Riga.", entity="Aunt Olga")
    other = memory.add("A postcard came from Oslo.", entity="Ol")
    memory.add("Olga Tokarczuk wrote it.", entity="Tokarczuk")
    found = shown(memory, "Why is the cabin of AUNT  OLGA heated?")
    assert graph_part(found[about]) == pytest.approx(NAMED)
    assert other not in found or graph_part(found[other]) == 0
    assert sum(graph_part(one) > 0 for one in found.values()) == 1


def test_facts_of_related_entities_are_recalled_as_long_as_the_relation_is_in_use(memory: Memory) -> None:
    memory.store(*OTHERS)
    about = memory.add("The launch slipped to May.", entity="ProjectAlpha")
    query = "Why is the cabin of Alex heated?"

    def gain(at: float) -> float:
        return graph_part(shown(memory, query, at=at, limit=400)[about])

    assert gain(0) == 0
    relate(memory, "Alex", "projectalpha")
    assert gain(90) == pytest.approx(NAMED / 2, abs=1e-4)
    assert gain(400) == 0
    relate(memory, "Alex", "ProjectAlpha", at=400)
    assert gain(400) > 0
    relate(memory, "Alex", "ProjectAlpha", at=400, weight=0.05, pinned=True)
    assert gain(400) == 0


def test_a_relation_that_was_not_recorded_yet_leads_to_no_fact(memory: Memory) -> None:
    about = memory.add("The launch slipped to May.", entity="ProjectAlpha")
    relate(memory, "Alex", "ProjectAlpha", at=2)
    for known_as_of, found in ((1, False), (2, True)):
        one = shown(memory, "Why is the cabin of Alex heated?", at=3, known_as_of=day(known_as_of))[about]
        assert (graph_part(one) > 0) == found


def test_entities_are_found_within_a_question_without_blanks(memory: Memory) -> None:
    memory.store("他喜欢喝咖啡")
    about = memory.add("喜欢喝绿茶", entity="李华")
    relate(memory, "小明", "李华")
    assert graph_part(shown(memory, "李华喜欢喝什么?")[about]) == pytest.approx(NAMED)
    assert graph_part(shown(memory, "小明的妻子喜欢喝什么?")[about]) == pytest.approx(NAMED)


@pytest.mark.parametrize("name", ["O'Brien", "O\u2019Brien", "O\u02bcBrien"])
@pytest.mark.parametrize("asked", ["O'Brien", "O\u2019Brien", "O\u02bcBrien"])
def test_entities_are_found_whatever_apostrophe_a_question_has(memory: Memory, name: str, asked: str) -> None:
    about = memory.add("Likes green tea.", entity=name)
    assert graph_part(shown(memory, f"What does {asked} drink?")[about]) == pytest.approx(NAMED)


def test_an_entity_with_many_facts_adds_its_newest(memory: Memory) -> None:
    memory.store(*OTHERS)
    ids = [memory.add(f"Postcard {i} came from Riga.", entity="Olga", at=i) for i in range(30)]
    brought = [
        id_ for id_, one in shown(memory, "Why is the cabin of Olga heated?", at=31).items() if one.found_by == "entity"
    ]
    assert set(brought) <= set(ids[10:])


def test_what_is_no_longer_true_of_an_entity_takes_no_place_of_what_is(memory: Memory) -> None:
    memory.store(*OTHERS)
    about = memory.add("The launch slipped to May.", entity="ProjectAlpha")
    for number in range(5):
        memory.add(f"Postcard {number} came from Riga.", entity="ProjectAlpha", at=1, valid_until=day(2))
    relate(memory, "Alex", "ProjectAlpha", at=2)
    why = memory.ask("Why is the cabin of Alex heated?", at=3, min_relevance=0, why=about).why
    assert why is not None
    assert why["rule"] == "below the limit"


def test_equal_entities_and_links_of_two_namespaces_never_mix(memory: Memory) -> None:
    own = {}
    for name in ("a", "b"):
        memory.store(*OTHERS[:5], namespace=name)
        own[name] = {
            memory.add(f"{CELLAR} {name}", namespace=name, entity="Olga"),
            memory.add(f"{ASIDE} {name}", namespace=name, entity="Riga"),
        }
        relate(memory, "Olga", "Riga", namespace=name, weight=0.5 if name == "a" else 1)
        link(memory, *own[name], namespace=name)
    for name in ("a", "b"):
        found = shown(memory, "the cellar of Olga", namespace=name).keys()
        assert own[name] <= found
        assert not found & own["ab".replace(name, "")]


def test_what_a_link_leads_to_may_be_unlike_the_question(memory: Memory) -> None:
    cellar, aside = memory.add(CELLAR), memory.add(ASIDE)
    assert aside not in shown(memory, min_similarity=0.9)
    link(memory, cellar, aside)
    assert list(shown(memory, min_similarity=0.9)) == [cellar, aside]


def test_what_has_ended_leads_to_no_fact_though_no_pass_has_come(memory: Memory, flooded: tuple[UUID, UUID]) -> None:
    cellar, aside = flooded
    link(memory, cellar, aside)
    memory.rows("update activity set ends_at = %s, expires_at = %s where fact = %s", day(3), day(3), cellar)
    assert aside in shown(memory, at=2)
    assert aside not in shown(memory, at=3)


def test_a_linked_fact_counts_as_a_share_in_the_documented_ranking_too(
    memory: Memory, flooded: tuple[UUID, UUID]
) -> None:
    cellar, aside = flooded
    link(memory, cellar, aside)
    found = shown(memory.having(ranking="documented"))
    assert found[aside].score == pytest.approx(0.7 * found[cellar].score, abs=1e-5)


def test_without_graphs_entities_that_are_named_are_looked_up_all_the_same(memory: Memory) -> None:
    wanted = memory.add("The password of the harbour office", entity="Mira")
    plain = memory.having(graph_in_recall=False)
    (found,) = [one for one in plain.ask("What about Mira?", explain=True).results if one.id == wanted]
    assert found.explain is not None
    assert found.explain["graph"] > 0
