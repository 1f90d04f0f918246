"""All pages of a listing have each row once and in order, for any page size."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest
from ebb.contract.documents import ItemQuery, NewItem
from ebb.contract.facts import Edit
from ebb.contract.graph import ListRelations
from ebb.contract.recall import Lookup
from ebb.contract.reports import ListContradictions, ListFacts
from ebb.contract.retention import ShowHistory
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers import graph
from workers.core import cost
from workers.documents import items
from workers.errors import InvalidInputError
from workers.memory import edit, history, recall, supersede
from workers.memory import facts as show
from workers.storage import candidates, documents, exports, visible
from workers.storage import facts as stored
from workers.storage import relations as edges
from workers.storage import supersession as pairs
from workers.storage.visible import Place
from workers.validation import cursors

few = examples(6)
limits = st.integers(1, 9)

Page = tuple[list[Any], Any]


def turned(page: Callable[[Any], Page], kind: type[Any]) -> Iterator[Any]:
    """Yield the rows of all pages, by the cursors of the answers."""
    place = None
    while True:
        rows, rest = page(place)
        yield from rows
        if rest is None:
            return
        assert rows
        place = cursors.place(cursors.following(rest), kind)
        assert place == rest


@few
@given(st.lists(st.tuples(st.sampled_from("äbC"), st.sampled_from("dé"), st.sampled_from([1, 0.5, 0.05])), max_size=20),
       limits)  # fmt: skip
def test_relations_are_each_listed_once_though_many_weigh_the_same(
    memory: Memory, given: list[tuple[str, str, float]], limit: int
) -> None:
    name = f"tenant-{uuid4()}"
    for place, (source, target, weight) in enumerate(given):
        memory.relate(source, f"{target}{place % 4}", "knows", namespace=name, weight=weight)
    for decayed in (False, True):
        whole = graph.relations(memory.context, ListRelations(namespace=name, decayed=decayed, limit=10_000), day(1))
        assert whole.next is None

        def page(behind: Any, decayed: bool = decayed) -> Page:
            asked = ListRelations(namespace=name, decayed=decayed, limit=limit, cursor=cursors.following(behind))
            found = graph.relations(memory.context, asked, day(1 if behind is None else 200))
            return found.edges, cursors.place(found.next, edges.Cursor)

        assert list(turned(page, edges.Cursor)) == whole.edges


@few
@given(st.lists(st.sampled_from(range(3)), max_size=6), limits)
def test_contradictions_are_each_listed_once(memory: Memory, days: list[int], limit: int) -> None:
    name = f"tenant-{uuid4()}"
    for place, at in enumerate(days):
        value = {"entity": "Ana", "key": "city", "value": f"Town {place}"}
        memory.add(f"Ana lives in town {place}.", at=at, namespace=name, **value)

    def page(behind: Any, most: int = limit) -> Page:
        asked = ListContradictions(namespace=name, limit=most, cursor=cursors.following(behind))
        found = supersede.contradicting(memory.context, asked, day(5))
        assert found.total == len(days) * (len(days) - 1) // 2
        return found.contradictions, cursors.place(found.next, pairs.ContradictionCursor)

    assert list(turned(page, pairs.ContradictionCursor)) == page(None, 1000)[0]


@few
@given(st.lists(st.tuples(st.sampled_from([0.5, 0.9]), st.sampled_from(range(3))), max_size=9), limits)
def test_all_about_an_entity_is_listed_once_though_it_is_used_on_the_way(
    memory: Memory, facts: list[tuple[float, int]], limit: int
) -> None:
    name = f"tenant-{uuid4()}"
    for place, (confidence, at) in enumerate(facts):
        fact = {"entity": "Ana", "decay_class": "session", "confidence": confidence}
        memory.add(f"Fact {place}.", at=0.8 + at / 100, namespace=name, **fact)
    asked = Lookup(entity="ana", namespace=name)
    whole, _ = recall.lookup(memory.context, asked, day(1.5))
    found: list[Any] = []
    cursor = None
    while True:
        one_page = asked.model_copy(update={"limit": limit, "cursor": cursor})
        page, cursor = recall.lookup(memory.context, one_page, day(1.6 if cursor else 1.5))
        memory.touch(*(one.id for one in page), at=1.55, namespace=name)
        found += page
        if cursor is None:
            break
    assert [one.id for one in found] == [one.id for one in whole]


@pytest.mark.parametrize(
    ("door", "most"), [("facts", 40), ("ids", 40), ("lookup", 10), ("newest items", 10), ("found items", 200)]
)
def test_a_page_that_is_too_large_is_refused_before_it_is_read(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, door: str, most: int
) -> None:
    """It could take many times its size of memory in a worker."""
    name = f"tenant-{uuid4()}"
    given = [NewItem(path=["a"], key=str(place), document='{"a": 1}', text=f"Fact {place}.") for place in range(3)]
    items.put(memory.context, name, given, [uuid4() for _ in given], day(0))
    ids = [memory.add(f"Ana {place}.", entity="Ana", namespace=name, metadata={"a": 1}) for place in range(3)]

    def read(limit: int) -> Any:
        if door == "lookup":
            return recall.lookup(memory.context, Lookup(entity="ana", namespace=name, limit=limit), day(1))[0]
        if "items" in door:
            query = "fact" if "found" in door else None
            return items.find(memory.context, name, ItemQuery(query=query, limit=limit), day(1))[0].items
        selected = {"ids": ids[:limit]} if door == "ids" else {"kind": "semantic"}
        return show.page(memory.context, ListFacts(namespace=name, limit=limit, **selected), day(1))[0]

    monkeypatch.setattr(stored, "FEW", 0)
    monkeypatch.setattr(cost, "MOST_BYTES", most)
    assert len(read(1)) == 1
    monkeypatch.setattr(exports, "shown", None)
    monkeypatch.setattr(candidates, "describe", None)
    monkeypatch.setattr(documents, "items_among", None)
    with pytest.raises(InvalidInputError, match="ask for fewer at once"):
        read(1_000)


def test_items_that_are_skipped_do_not_make_a_page_too_large(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"tenant-{uuid4()}"
    given = [NewItem(path=["a"], key=str(place), document='{"a": 1}') for place in range(3)]
    items.put(memory.context, name, given, [uuid4() for _ in given], day(0))
    monkeypatch.setattr(cost, "MOST_BYTES", len('{"a": 1}'))
    pages = [items.find(memory.context, name, ItemQuery(limit=1, offset=at), day(1))[0] for at in range(4)]

    assert sorted(one.key for page in pages for one in page.items) == ["0", "1", "2"]


def listing(namespace: str, limit: int, place: Any) -> ListFacts:
    return ListFacts(namespace=namespace, limit=limit, cursor=cursors.following(place))


@few
@given(st.integers(0, 12), limits)
def test_facts_are_each_listed_once(memory: Memory, count: int, limit: int) -> None:
    name = f"tenant-{uuid4()}"
    added = [memory.add(f"Fact {place}.", at=place, namespace=name) for place in range(count)]
    pages = turned(lambda place: show.page(memory.context, listing(name, limit, place), day(20)), Place)
    assert [one["id"] for one in pages] == added[::-1]


@few
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=14), limits, st.sampled_from([1, 3, 5_000]),
    st.sampled_from([{"tags": ["boat"]}, {"category": "Boats & sails"}, {"category": "the"}]),
)  # fmt: skip
def test_facts_with_a_tag_or_category_are_each_listed_once_wherever_they_are_looked_up(
    memory: Memory, given: list[tuple[bool, int]], limit: int, newest: int, wanted: dict[str, Any]
) -> None:
    name, other = f"tenant-{uuid4()}", f"tenant-{uuid4()}"
    for place, (has_it, at) in enumerate(given):
        more = wanted if has_it else {"tags": [], "category": "boats"}
        memory.store({"text": f"Fact {place}.", "session": "a", "turn": place} | more, at=at, namespace=name)
        memory.store({"text": f"Fact {place}."} | wanted, at=at, namespace=other)
    every, _ = show.page(memory.context, ListFacts(namespace=name, limit=100), day(20))
    asked = ListFacts(namespace=name, tag="boat" if "tags" in wanted else None, category=wanted.get("category"))
    asked = asked.model_copy(update={"limit": limit})
    with patch.object(visible, "AMONG_NEWEST", newest):
        found = turned(
            lambda place: show.page(
                memory.context, asked.model_copy(update={"cursor": cursors.following(place)}), day(20)
            ),
            Place,
        )
        assert [one["id"] for one in found] == [one["id"] for one in every if wanted.items() <= one.items()]


@pytest.mark.parametrize(
    "category",
    [
        "likes <b", "<b", "naïve Straße", "東京都の天気", "ภาษาไทย", "C++/Rust", "it's 'so' \\ & (!)",
        "e-mail", "1.5", "!", "Île-de-France", "für", "²½ﬁ", "a\u0301b", "x" * 200,
    ],
)  # fmt: skip
@pytest.mark.parametrize("after", ["c>", "\u0301é 京 > x"])
def test_facts_of_any_category_are_listed_by_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, category: str, after: str
) -> None:
    monkeypatch.setattr(visible, "AMONG_NEWEST", 0)
    added = memory.add("A fact.", category=category, entity=after, key=after, value=after)
    memory.add("Another fact.", category=f"{category} {after}")
    assert [one["id"] for one in memory.listed(category=category)] == [added]


def test_the_newest_facts_come_first_whatever_their_ids(memory: Memory) -> None:
    last = {"text": "I moved to Leipzig.", "session": "a", "turn": 2, "id": str(UUID(int=1))}
    first = {"text": "Where do you live now?", "session": "a", "turn": 1, "id": str(UUID(int=2))}
    memory.store(first, last, at=1)
    memory.store({"text": "The flat is near the canal.", "id": str(UUID(int=0))}, at=2)
    listed, _ = show.page(memory.context, ListFacts(namespace="default"), day(3))
    assert [UUID(str(one["id"])).int for one in listed] == [0, 1, 2]
    after, _ = show.page(memory.context, ListFacts(namespace="default", before=UUID(int=0)), day(3))
    assert after == listed[1:]


def test_before_holds_on_every_page(memory: Memory) -> None:
    oldest, older, edge, newer, newest = [memory.add(f"Fact number {at}.", at=at) for at in range(5)]
    asked = partial(ListFacts, namespace="default", limit=1)

    def listed(page: ListFacts) -> tuple[list[str], str | None]:
        found, rest = show.page(memory.context, page, day(6))
        return [str(one["id"]) for one in found], cursors.following(rest)

    first, of_all = listed(asked())
    second, of_older = listed(asked(before=edge))
    assert (first, second) == ([str(newest)], [str(older)])
    assert listed(asked(before=edge, cursor=of_older))[0] == [str(oldest)]
    assert listed(asked(before=edge, cursor=of_all))[0] == [str(older)]
    assert listed(asked(before=newer, cursor=of_older))[0] == [str(oldest)]


def test_a_page_before_a_fact_that_does_not_exist_is_refused(memory: Memory) -> None:
    memory.add("Tea at four.")
    with pytest.raises(InvalidInputError, match="is in this namespace; leave it out"):
        show.page(memory.context, ListFacts(namespace="default", before=UUID(int=7)), day(3))


@few
@given(st.integers(1, 12), st.integers(1, 4), st.data())
def test_facts_that_stay_are_each_listed_once_while_others_come_and_go(
    memory: Memory, count: int, limit: int, data: st.DataObject
) -> None:
    name = f"tenant-{uuid4()}"
    stays = [memory.add(f"Fact {place}.", namespace=name) for place in range(count)]
    goes = [memory.add(f"Fact {place}, for now.", namespace=name) for place in range(count)]

    def page(place: Any) -> Page:
        found = show.page(memory.context, listing(name, limit, place), day(20))
        memory.store({"text": f"New {uuid4()}", "id": str(uuid4())}, f"New {uuid4()}", namespace=name)
        gone = data.draw(st.sampled_from(goes))
        memory.forget(gone, at=1, namespace=name, purge=True)
        memory.touch(*data.draw(st.lists(st.sampled_from(stays))), at=2, namespace=name)
        return found

    listed = [one["id"] for one in turned(page, Place)]
    assert len(listed) == len(set(listed))
    assert set(stays) <= set(listed)


@few
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["pin", "edit", "link", "say"])), max_size=12), limits)
def test_events_are_each_listed_once_though_many_have_the_same_instant(
    memory: Memory, done: list[tuple[int, str]], limit: int
) -> None:
    name = f"tenant-{uuid4()}"
    id_ = memory.add("Tea at four.", namespace=name, session="first", source="diary", salience=0.5)
    ways: dict[str, Callable[[int, int], Any]] = {
        "pin": lambda place, at: memory.pin(id_, at=at, until=10 + place, namespace=name),
        "edit": lambda place, at: edit.edit(memory.context, Edit(id=id_, namespace=name, source=f"{place}"), day(at)),
        "link": lambda place, at: memory.link(id_, memory.add(f"Cake {place}.", namespace=name), at=at, namespace=name),
        "say": lambda place, at: memory.store({"text": "Tea at four.", "session": f"{place}"}, at=at, namespace=name),
    }
    for place, (at, what) in enumerate(sorted(done)):
        ways[what](place, at)

    def page(place: Any, most: int | None = limit) -> Page:
        asked = ShowHistory(id=id_, namespace=name, limit=most, cursor=cursors.following(place))
        found = history.history(memory.context, asked, day(5))
        return found.events, cursors.place(found.next, history.Cursor)

    whole, _ = page(None, None)
    assert len(whole) >= len(done) + 1
    assert whole[0].details == {"source": "diary", "content_salience": 0.5}
    assert list(turned(page, history.Cursor)) == whole


@pytest.mark.parametrize(
    "wrong",
    [7, ["a"], {"a": 1}, "", "x", "[]", "é", "eyJ9", "bnVsbA", "W10", "A" * 20_000,
     cursors.following(edges.Cursor(day(0), 1.0, "a", "b", "c")), cursors.following(history.Cursor(day(0), 3))],
)  # fmt: skip
def test_what_is_no_cursor_of_a_listing_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"cursor: .* is none of this listing; give the `next`"):
        cursors.place(wrong, pairs.ContradictionCursor)


def test_a_cursor_with_what_no_listing_wrote_is_refused() -> None:
    for source, at in (("a\0", day(0)), ("a", day(0).replace(tzinfo=None))):
        forged = cursors.following(edges.Cursor(at, 1.0, source, "b", "c"))
        with pytest.raises(InvalidInputError):
            cursors.place(forged, edges.Cursor)


@pytest.mark.parametrize("asked", [{"limit": 2}, {"limit": 1, "entity": "Mira"}, {"limit": 1, "tag": "tea"}])
def test_what_is_forgotten_or_superseded_takes_no_place_in_a_page(memory: Memory, asked: dict[str, Any]) -> None:
    drinks = [f"Mira takes {what}." for what in ("tea", "milk", "sugar")]
    kept, old, gone = (memory.add(text, entity="Mira", tags=["tea"], at=number) for number, text in enumerate(drinks))
    memory.store({"text": "It rains.", "supersedes": str(old)}, at=3)
    memory.forget(gone, at=3)
    assert [one["id"] for one in memory.listed(at=4, **asked)][-1:] == [kept]
