"""The LangGraph store, tested for the guarantees of LangGraph's own stores, on real workers."""

import asyncio
import importlib
import math
import subprocess
import sys
from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ebb import AsyncMemory, Memory
from ebb.langgraph import EbbStore
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from live_system import LiveSystem, eventually
from made_up import examples

pytestmark = pytest.mark.acceptance

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def store(memory: Memory) -> EbbStore:
    return EbbStore(memory)


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def test_a_document_is_returned_with_its_place_and_times(store: EbbStore) -> None:
    value = {"title": "Otters", "tags": ["a", "b"], "nested": {"deep": [1, 2.5, None, True]}}
    store.put(("docs", "user 1"), "one", value)
    item = store.get(("docs", "user 1"), "one")

    assert item is not None
    assert (item.namespace, item.key, item.value) == (("docs", "user 1"), "one", value)
    assert item.created_at == item.updated_at
    assert timedelta() < datetime.now(UTC) - item.created_at < timedelta(minutes=1)
    assert store.get(("docs", "user 1"), "two") is None
    assert store.get(("docs",), "one") is None


@examples(20)
@given(value=st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_any_document_comes_back_exactly(store: EbbStore, value: dict[str, Any]) -> None:
    store.put(("any",), "one", value)
    item = store.get(("any",), "one")

    assert item is not None
    assert item.value == value


def test_a_document_with_half_a_character_is_stored_and_found(store: EbbStore) -> None:
    value = {"text": "an otter \ud83d", "parts": ["\udc00"]}
    store.put(("docs",), "one", value)
    (item,) = store.search(("docs",), query="otter")

    assert item.value == value


def test_any_mapping_is_a_document(store: EbbStore) -> None:
    store.put(("docs",), "one", UserDict(text="an otter"))
    (item,) = store.search(("docs",), query="otter")

    assert item.value == {"text": "an otter"}


def test_objects_that_look_like_encoded_types_are_returned_unchanged(store: EbbStore) -> None:
    value = {"when": {"__type__": "datetime", "__value__": "never"}}
    store.put(("any",), "one", value)
    item = store.get(("any",), "one")

    assert item is not None
    assert item.value == value


def test_a_second_put_replaces_and_keeps_when_it_was_first_put(store: EbbStore, memory: Memory) -> None:
    store.put(("docs",), "one", {"text": "Mira lives in Leipzig"})
    first = store.get(("docs",), "one")
    store.put(("docs",), "one", {"text": "Mira lives in Halle"})
    store.put(("docs",), "one", {"text": "Mira lives in Halle", "since": 2026})
    second = store.get(("docs",), "one")

    assert first is not None
    assert second is not None
    assert second.value == {"text": "Mira lives in Halle", "since": 2026}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert len(store.search(("docs",))) == 1
    assert len(memory.facts().facts) == 1


def test_puts_at_once_leave_one(store: EbbStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: store.put(("docs",), "one", {"number": number}), range(8)))

    (item,) = store.search(("docs",))
    assert item.value["number"] in range(8)


def test_a_deleted_document_is_gone_and_may_be_put_again(store: EbbStore) -> None:
    store.put(("docs",), "one", {"text": "An otter"})
    store.delete(("docs",), "one")
    gone = store.get(("docs",), "one"), store.search(("docs",)), store.list_namespaces()
    store.delete(("docs",), "one")
    store.put(("docs",), "one", {"text": "An otter"})
    back = store.get(("docs",), "one")

    assert gone == (None, [], [])
    assert back is not None
    assert back.value == {"text": "An otter"}


def test_the_same_words_at_other_places_are_other_items(store: EbbStore) -> None:
    for place in (("a",), ("A",), ("a", "b")):
        for key in ("x", "X"):
            store.put(place, key, {"text": "the same"})

    assert len(store.search(())) == 6
    assert keys(store.search(("a", "b"))) == ["X", "x"]


def test_search_covers_items_below_a_path_only(store: EbbStore) -> None:
    for path in (("users",), ("users", "1"), ("users", "12"), ("users", "1", "deep"), ('us"ers', "1")):
        store.put(path, "/".join(path), {"text": "an otter"})

    assert keys(store.search(("users", "1"))) == ["users/1/deep", "users/1"]
    assert len(store.search(("users",))) == 4
    assert len(store.search(())) == 5
    assert store.search(("unknown",)) == []
    assert keys(store.search(('us"ers',))) == ['us"ers/1']


def test_pages_follow_each_other(store: EbbStore) -> None:
    for number in range(5):
        store.put(("docs",), f"{number}", {"number": number})

    assert keys(store.search(("docs",), limit=2)) == ["4", "3"]
    assert keys(store.search(("docs",), limit=2, offset=2)) == ["2", "1"]
    assert keys(store.search(("docs",), limit=2, offset=4)) == ["0"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"kind": "a"}, {"1", "2"}),
        ({"kind": "a", "size": 2}, {"2"}),
        ({"size": {"$gt": 1}}, {"2", "3"}),
        ({"size": {"$gte": 2, "$lt": 3}}, {"2"}),
        ({"size": {"$lte": 1}}, {"1"}),
        ({"kind": {"$ne": "a"}}, {"3", "4"}),
        ({"kind": {"$eq": "b"}}, {"3"}),
        ({"nested": {"deep": 1}}, {"4"}),
        ({"nested.deep": 1}, {"4"}),
        ({"nested.deep.er": 1}, set()),
        ({"size.large": None, "nested.more": {"$gte": 2}}, {"4"}),
        ({"absent": None}, {"1", "2", "3", "4"}),
        ({"absent": "x"}, set()),
        ({"size": {"$lt": math.inf}}, {"1", "2", "3"}),
        ({"size": {"$gte": -math.inf, "$lt": 3}}, {"1", "2"}),
        ({"size": math.inf}, set()),
        ({"size": {"$eq": math.nan}}, set()),
        ({"size": {"$ne": math.nan}}, {"1", "2", "3", "4"}),
        ({"size": [math.nan, (math.inf,)]}, set()),
    ],
)
def test_filters_choose_by_value_and_operator(store: EbbStore, wanted: dict[str, Any], found: set[str]) -> None:
    store.put(("docs",), "1", {"kind": "a", "size": 1})
    store.put(("docs",), "2", {"kind": "a", "size": 2})
    store.put(("docs",), "3", {"kind": "b", "size": 3.5})
    store.put(("docs",), "4", {"nested": {"deep": 1, "more": 2}, "size": "large"})

    assert set(keys(store.search(("docs",), filter=wanted))) == found
    assert set(keys(store.search(("docs",), query="kind", filter=wanted))) == found


def test_an_unknown_operator_is_named(store: EbbStore) -> None:
    with pytest.raises(Exception, match=r"'\$like' is no operator"):
        store.search(("docs",), filter={"kind": {"$like": "a"}})


def test_a_query_returns_the_best_items_first_with_scores(store: EbbStore) -> None:
    store.put(("users", "1"), "drink", {"text": "likes green tea in the morning"})
    store.put(("users", "1"), "ship", {"text": "sails to Zanzibar every spring"})
    store.put(("users", "2"), "drink", {"text": "likes green tea more than anybody"})

    best, *others = store.search(("users", "1"), query="Which tea does she like?")
    assert best.key == "drink"
    assert best.score is not None
    assert all(other.score is not None and other.score < best.score for other in others)
    assert {item.namespace for item in (best, *others)} == {("users", "1")}
    assert keys(store.search(("users", "1"), query="When does she sail to Zanzibar?", limit=1)) == ["ship"]
    assert [item.score for item in store.search(("users", "1"))] == [None, None]


def test_only_indexed_fields_are_searched(memory: Memory) -> None:
    store = EbbStore(memory, index={"fields": ["text", "parts[*].said"]})  # type: ignore[typeddict-item]
    store.put(("docs",), "field", {"text": "an otter", "other": "zanzibar"})
    store.put(("docs",), "part", {"parts": [{"said": "a walrus"}, {"said": "zanzibar"}]})
    store.put(("docs",), "hidden", {"text": "zanzibar"}, index=False)
    store.put(("docs",), "own", {"text": "an otter", "title": "zanzibar"}, index=["title"])
    store.put(("docs",), "nothing", {"other": "zanzibar"})

    found = store.search(("docs",), query="zanzibar")
    assert set(keys(found)) == {"field", "part", "own"}
    assert set(keys(found)[:2]) == {"part", "own"}
    assert len(store.search(("docs",))) == 5


def test_no_fields_are_no_text_and_the_whole_document_may_be_one_of_them(memory: Memory) -> None:
    store = EbbStore(memory, index={"fields": ["title", "$"]})  # type: ignore[typeddict-item]
    store.put(("docs",), "none", {"text": "zanzibar"}, index=[])
    store.put(("docs",), "whole", {"text": "zanzibar"})

    assert keys(store.search(("docs",), query="zanzibar")) == ["whole"]
    assert len(store.search(("docs",))) == 2


def test_the_store_cannot_choose_the_embedder(memory: Memory) -> None:
    with pytest.raises(ValueError, match="EBB_EMBEDDER"):
        EbbStore(memory, index={"dims": 3, "embed": lambda texts: [[0.0] * 3 for _ in texts]})


def test_a_memory_for_asyncio_is_refused() -> None:
    with pytest.raises(TypeError, match="is an AsyncMemory; give a Memory"):
        EbbStore(AsyncMemory())  # type: ignore[arg-type]


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: EbbStore) -> None:
    for path in (("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z", "b", "c")):
        store.put(path, "one", {"text": "an otter"})

    assert store.list_namespaces() == [("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z", "b", "c")]
    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c"), ("z", "b", "c")]
    assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(prefix=("a",), suffix=("d",)) == [("a", "b", "d")]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("z", "b")]
    assert store.list_namespaces(limit=2, offset=1) == [("a", "b", "d"), ("a", "x", "c")]
    assert store.list_namespaces(prefix=("a", "b", "c", "d")) == []


def test_a_batch_reads_the_state_before_it(store: EbbStore) -> None:
    store.put(("docs",), "one", {"number": 1})
    operations = [
        PutOp(("docs",), "one", {"number": 2}),
        GetOp(("docs",), "one"),
        SearchOp(("docs",), limit=5),
        PutOp(("docs",), "two", {"number": 3}),
        ListNamespacesOp((MatchCondition("prefix", ("docs",)),)),
        PutOp(("docs",), "two", {"number": 4}),
        PutOp(("docs",), "three", None),
    ]
    results = store.batch(operations)
    after = asyncio.run(store.abatch([GetOp(("docs",), "one"), GetOp(("docs",), "two")]))

    assert [results[place] for place in (0, 3, 5, 6)] == [None] * 4
    assert results[1].value == {"number": 1}  # type: ignore[union-attr]
    assert [item.value for item in results[2]] == [{"number": 1}]  # type: ignore[union-attr]
    assert results[4] == [("docs",)]
    assert [item.value for item in after] == [{"number": 2}, {"number": 4}]  # type: ignore[union-attr]


def test_the_asynchronous_methods_do_the_same(store: EbbStore) -> None:
    async def use() -> None:
        await store.aput(("docs",), "one", {"text": "an otter"})
        item = await store.aget(("docs",), "one")
        assert item is not None
        assert item.value == {"text": "an otter"}
        assert keys(await store.asearch(("docs",), query="otter")) == ["one"]
        assert await store.alist_namespaces() == [("docs",)]
        await store.adelete(("docs",), "one")
        assert await store.aget(("docs",), "one") is None

    asyncio.run(use())


@pytest.mark.parametrize("path", [(), ("",), ("a.b",), ("langgraph", "x")])
def test_namespaces_that_langgraph_forbids_are_refused(store: EbbStore, path: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(path, "one", {"text": "an otter"})


@pytest.mark.parametrize("path", [("a.b",), ("docs", ""), ("docs", 1)])
def test_a_batch_with_a_forbidden_namespace_does_nothing(store: EbbStore, path: tuple[Any, ...]) -> None:
    conditions = (MatchCondition("prefix", path),)
    ops = (
        PutOp(path, "one", {"text": "x"}),
        PutOp(path, "one", None),
        GetOp(path, "one"),
        SearchOp(path),
        ListNamespacesOp(conditions),
    )
    for op in ops:
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("docs",), "two", {"text": "y"}), op])
    assert store.search(()) == []


def test_a_lifetime_counts_from_the_last_use(store: EbbStore, memory: Memory, live: LiveSystem, namespace: str) -> None:
    store.put(("docs",), "short", {"text": "an otter"}, ttl=10)
    store.put(("docs",), "long", {"text": "a walrus"})
    later = datetime.now(UTC) + timedelta(minutes=9)
    over = (datetime.now(UTC) + timedelta(minutes=11)).isoformat()
    ask = {"path": ["docs"], "namespace": namespace, "refresh": False}

    def at(now: str, **more: Any) -> set[str]:
        with live.client(namespace) as client:
            return {one["key"] for one in client.call("memory.items", ask | {"now": now} | more, 15)["items"]}

    assert at(over) == {"long"}
    assert at(over, query="otter") == {"long"}
    assert at(later.isoformat(), refresh=True) == {"short", "long"}
    live.settle()
    assert at(over) == {"short", "long"}, "it was used two minutes before"
    classes = {fact.key: fact.decay_class for fact in memory.facts().facts}
    assert classes == {"short": "durable", "long": "permanent"}


def test_a_read_may_ask_for_the_use_that_is_not_counted_by_default(memory: Memory, live: LiveSystem) -> None:
    store = EbbStore(memory, ttl={"refresh_on_read": False})
    store.put(("docs",), "one", {"text": "an otter"}, ttl=10)

    def uses() -> int:
        live.settle()
        return memory.facts().facts[0].coactivations

    before = uses()
    store.get(("docs",), "one")
    store.search(("docs",))
    unused = uses()
    store.get(("docs",), "one", refresh_ttl=True)

    assert unused == before
    assert uses() == before + 1


def test_nothing_is_seen_from_another_namespace_of_ebb(store: EbbStore, memory: Memory, namespace: str) -> None:
    store.put(("docs",), "one", {"text": "an otter"})
    other = EbbStore(memory.namespace(f"{namespace}-other"))
    assert other.get(("docs",), "one") is None
    assert other.search((), query="otter") == []
    assert other.list_namespaces() == []
    other.delete(("docs",), "one")
    other.put(("docs",), "one", {"text": "a walrus"})

    item = store.get(("docs",), "one")
    assert item is not None
    assert item.value == {"text": "an otter"}


def test_a_put_that_is_delivered_twice_is_one(live: LiveSystem, store: EbbStore, namespace: str) -> None:
    arguments = {"path": ["docs"], "key": "one", "document": '{"number": 1}', "namespace": namespace}
    first, second = live.delivered("memory.put_item", arguments, 2)

    assert first == second
    assert [item.value for item in store.search(("docs",))] == [{"number": 1}]


def test_items_come_back_from_an_export(live: LiveSystem, store: EbbStore, memory: Memory, namespace: str) -> None:
    store.put(("docs", "1"), "one", {"text": "an otter", "n": [1]})
    exported = live.ebb("export", "--namespace", namespace).stdout
    imported = live.ebb("import", "-", "--namespace", f"{namespace}-copy", stdin=exported)

    assert imported.returncode == 0, imported.stderr
    (item,) = EbbStore(memory.namespace(f"{namespace}-copy")).search(("docs",))
    assert (item.namespace, item.key, item.value) == (("docs", "1"), "one", {"text": "an otter", "n": [1]})


def test_checkpoints_and_items_are_of_libraries_that_fit_together() -> None:
    """Agents use both; a pin that does not fit only shows when this is imported."""
    assert importlib.import_module("langgraph.checkpoint.base").BaseCheckpointSaver


def test_words_of_a_deleted_item_are_no_longer_counted(live: LiveSystem, namespace: str, store: EbbStore) -> None:
    counted = """
        select count(*) from lexemes join namespaces on namespaces.id = lexemes.namespace
        where name = %s and lexeme = 'wombat'
    """
    store.put(("animals",), "one", {"text": "A wombat."}, index=["text"])
    live.send("memory.lexemes", {})
    eventually(lambda: live.rows(counted, [namespace]) == [(1,)], "the word is counted")
    store.delete(("animals",), "one")
    live.send("memory.lexemes", {})
    eventually(lambda: live.rows(counted, [namespace]) == [(0,)], "the word is gone")


def test_many_puts_are_one_task(live: LiveSystem, store: EbbStore) -> None:
    before = live.begun_when_idle()
    store.batch([PutOp(("docs",), f"{number}", {"number": number}) for number in range(200)])
    after = live.begun_when_idle()

    assert after["memory.put_items"] - before.get("memory.put_items", 0) == 1
    assert {item.value["number"] for item in store.search(("docs",), limit=300)} == set(range(200))


def test_many_reads_are_one_task(live: LiveSystem, store: EbbStore) -> None:
    store.batch([PutOp(("docs", f"{number % 2}"), f"{number}", {"number": number}) for number in range(20)])
    reads = [GetOp(("docs", f"{number % 2}"), f"{number}") for number in range(25)]
    searches = [SearchOp(("docs", "1"), query="number: 7", limit=1), SearchOp(("docs",), limit=0), SearchOp(("no",))]
    before = live.begun_when_idle()
    *items, best, none, nothing = store.batch([*reads, *searches])
    after = live.begun_when_idle()

    assert [item and item.value["number"] for item in items] == [*range(20), *[None] * 5]  # type: ignore[union-attr]
    assert [item.key for item in best] == ["7"]  # type: ignore[union-attr]
    assert (none, nothing) == ([], [])
    assert after["memory.many_items"] - before.get("memory.many_items", 0) == 1
    assert after.get("memory.items", 0) == before.get("memory.items", 0)


def test_the_score_does_not_depend_on_what_else_is_there(store: EbbStore) -> None:
    store.put(("docs",), "one", {"text": "an otter swims"})
    (alone,) = store.search(("docs",), query="otter")
    store.put(("docs",), "two", {"text": "likes green tea"})
    best, other = store.search(("docs",), query="otter")

    assert best.key == alone.key
    assert best.score > other.score  # type: ignore[operator]
    assert alone.score is not None
    assert 0.5 < alone.score <= 1


@pytest.mark.parametrize("text", ["这是中文", "これは日本語です", "이건 한국어야", "Это русский", "यह हिंदी है"])
def test_an_item_is_found_in_any_script(store: EbbStore, text: str) -> None:
    store.put(("docs",), "other", {"text": "an otter swims"})
    store.put(("docs",), "own", {"text": text})
    assert keys(store.search(("docs",), query=text))[0] == "own"


def test_similar_labels_are_different_namespaces(store: EbbStore) -> None:
    for label in ("alice", "alice\n", "alice2", "ALICE", "ali%", "ali_e", "ali*"):
        store.put(("users", label), "k", {"label": label})

    for label in ("alice", "ali%", "ali_e", "ali*"):
        assert [item.value["label"] for item in store.search(("users", label))] == [label]
    assert store.list_namespaces(suffix=("alice",)) == [("users", "alice")]
    assert len(store.search(())) == 7


def test_a_batch_that_is_too_long_for_one_request_is_stored(store: EbbStore) -> None:
    longest = "x" * 400_000
    store.batch([PutOp(("docs",), f"{number}", {"text": longest}, index=False) for number in range(45)])

    assert len(store.search(("docs",), limit=50)) == 45


def test_the_store_works_in_a_program_with_packages_api_and_workers(url: str, namespace: str, tmp_path: Path) -> None:
    for name in ("api", "workers"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise AssertionError('not of Ebb')")
    program = f"""
from ebb import Memory
from ebb.langgraph import EbbStore
store = EbbStore(Memory("{url}", namespace="{namespace}"))
store.put(("docs",), "one", {{"text": "an otter"}})
print(store.get(("docs",), "one").value)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "{'text': 'an otter'}\n", done.stderr
