"""Chunks of Markdown files are stored as long as the files have them, each once, and embedded once."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.documents import (
    Document,
    DropItem,
    Index,
    Indexed,
    ItemQuery,
    ListDocuments,
    ListItemPaths,
    NewItem,
    Unindex,
    Upload,
)
from ebb.contract.recall import Lookup
from ebb.contract.reports import ShowCurve
from ebb.contract.retention import ShowHistory, Use
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import DAY_0, LOCK_WAITS, ON_CITUS, Memory, day, wait_for
from relay import relayed

from workers.coordination import signals
from workers.core import tokens
from workers.core.chunks import chunks
from workers.decay import endings, forecast
from workers.documents import files, items
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.memory import curve, history, recall, touch
from workers.memory.recall import deep
from workers.memory.store import store_many
from workers.storage import activity, namespaces, packing
from workers.storage.connection import close_pools, connect, transaction
from workers.validation.facts import new_fact

BOAT = "# Boat\n\nThe keel is oak.\n\n## Engine\n\nThe engine is a Bukh, 20 horsepower.\n\n## Sails\n\nThree of them.\n"


def index(memory: Memory, path: str, text: str, at: float = 0, namespace: str = "default") -> Indexed:
    parts = [{"section": one.section, "text": one.text} for one in chunks(text, tokens.estimate)]
    digest = hashlib.sha256(text.encode()).hexdigest()
    asked = Index(path=path, folder="/there", digest=digest, chunks=parts, namespace=namespace)
    return files.index(memory.context, asked, day(at))


def remove(memory: Memory, path: str, namespace: str = "default") -> int:
    return files.remove(memory.context, Unindex(paths=[path], namespace=namespace)).removed


def known(memory: Memory, name: str, namespace: str = "default") -> list[Document]:
    return files.known(memory.context, ListDocuments(name=name, namespace=namespace)).documents


def counts(path: str = "memory/boat.md", **given: int) -> Indexed:
    return Indexed(path=path, **given)


def said(memory: Memory, namespace: str = "default") -> list[tuple[str, str, str]]:
    """Return path, section and text of every chunk, in order."""
    return memory.rows(
        """
        select source, key, text from facts join namespaces on namespaces.id = facts.namespace
        where kind = 'chunk' and name = %s order by 1, 2, 3
        """,
        namespace,
    )


def test_a_chunk_is_found_by_its_entity_however_many_blanks_that_has(memory: Memory) -> None:
    chunk = memory.add("Tea at four.", kind="chunk", source="tea.md", entity="Ada  Byron", key="Tea  time")
    for entity in ("Ada Byron", "Ada  Byron"):
        (found,), _ = recall.lookup(memory.context, Lookup(entity=entity), day(0))
        assert found.id == chunk


def test_the_section_of_a_chunk_keeps_its_blanks_which_its_identity_includes() -> None:
    fact = new_fact({"text": "Tea at four.", "kind": "chunk", "source": "tea.md", "key": " Tea  time "}, 100)
    assert fact.key == "Tea  time"


def test_a_chunk_whose_section_is_blank_has_none(memory: Memory) -> None:
    parts = [{"section": " \u3000", "text": "Tea at four."}]
    asked = Index(path="memory/tea.md", folder="/there", digest="0" * 64, chunks=parts)

    assert files.index(memory.context, asked, day(0)) == counts("memory/tea.md", added=1)
    assert said(memory) == [("memory/tea.md", None, "Tea at four.")]


def test_blanks_within_the_key_and_the_path_of_an_item_tell_it_from_others(memory: Memory) -> None:
    places = [(["users"], "tea time"), (["users"], "tea  time"), (["all  users"], "tea time")]
    given = [NewItem(path=path, key=key, document="{}") for path, key in places]
    items.put(memory.context, "default", given, [uuid4() for _ in given], day(0))
    found, _ = items.find(memory.context, "default", ItemQuery(), day(0))
    assert sorted((one.path, one.key) for one in found.items) == sorted(places)


def with_lifetime(memory: Memory, ttl: float) -> UUID:
    item, id_ = NewItem(path=["users"], key="drink", document="{}", text="likes green tea", ttl=ttl), uuid4()
    items.put(memory.context, "default", [item], [id_], day(0))
    return id_


@pytest.mark.parametrize("days", [1, 100])
def test_every_reader_shows_that_an_item_ends_by_its_own_lifetime_after_its_last_use_or_its_pin(
    memory: Memory, days: int
) -> None:
    id_ = with_lifetime(memory, days * 24 * 60)

    def ends() -> list[tuple[datetime | None, str | None]]:
        listed = memory.listed(at=0.5)[0]
        recalled = memory.ask("green tea", at=0.5).results[0]
        past = history.history(memory.context, ShowHistory(id=id_), day(0.5))
        drawn = curve.curve(memory.context, ShowCurve(id=id_), day(0.5))
        ends_at = None if drawn["ends_at"] is None else datetime.fromtimestamp(drawn["ends_at"], UTC)
        assert (ends_at, drawn["ends_for"]) == (past.ends_at, past.ends_for)
        shown = [(one.ends_at, one.ends_for) for one in (recalled, past)]
        return [*shown, (listed["ends_at"], listed["ends_for"])]

    assert ends() == [(day(days), "expired")] * 3
    memory.touch(id_, at=0.25)
    assert ends() == [(day(days + 0.25), "expired")] * 3
    memory.pin(id_, at=0.25, until=3)
    assert ends() == [(day(days + 3), "expired")] * 3
    memory.pin(id_, at=0.25)
    assert ends() == [(None, None)] * 3


@pytest.mark.parametrize("reinforces", [True, False])
@pytest.mark.parametrize("days", [1, 100])
def test_passes_forecasts_and_notices_go_by_an_items_own_lifetime_and_so_does_a_restore(
    memory: Memory, days: int, *, reinforces: bool
) -> None:
    memory = memory.having(decay_reinforce_on_query=reinforces)
    id_ = with_lifetime(memory, days * 24 * 60)
    memory.touch(id_, at=0.25)

    (soon,) = endings.ending(memory.context, "default", 1, day(days), by_value=True)
    (ahead,) = forecast.forecast(memory.context, "default", 1, day(days))
    assert (soon.id, soon.ends_at, ahead.counts["expired"]) == (id_, day(days + 0.25), 1)
    assert memory.decay(days + 0.2).counters.forgotten == 0
    assert memory.listed(at=days + 0.2)[0]["effective_confidence"] == 1
    drawn = curve.curve(memory.context, ShowCurve(id=id_), day(days + 0.2))
    assert set(drawn["confidence"]) == {None, 1}
    assert [one.id for one in items.find(memory.context, "default", ItemQuery(), day(days + 0.2))[0].items] == [id_]
    assert memory.decay(days + 0.3).counters.expired == 1
    assert memory.stats(days + 0.3).facts == 0

    (outcome,) = memory.restore(id_, at=days + 5)
    found, _ = items.find(memory.context, "default", ItemQuery(), day(2 * days + 4.9))
    assert (outcome.action, [one.id for one in found.items]) == ("restored", [id_])
    assert memory.listed(at=days + 5)[0]["ends_at"] == day(2 * days + 5)
    assert memory.examine(days + 5) == {}


def test_an_item_that_an_earlier_version_put_into_deep_memory_lives_by_its_own_lifetime_when_it_is_restored(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = with_lifetime(memory, 24 * 60)
    memory.decay(2)
    earlier = "update activity set decay_class = 'normal', expires_at = last_confirmed_at + interval '14 days'"
    with connect(memory.context.database_url) as db:
        db.execute(earlier)
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(packing, "ttl", lambda *_: None)
        assert memory.demote(at=4) == 1
    memory.restore(id_, at=5)
    assert memory.listed(at=5)[0]["ends_at"] == day(6)


def test_an_item_past_its_own_lifetime_is_put_as_a_new_one_and_there_is_nothing_to_drop(memory: Memory) -> None:
    with_lifetime(memory, 60)
    item = NewItem(path=["users"], key="drink", document="{}", ttl=60)
    items.put(memory.context, "default", [item], [uuid4()], day(1))
    (again,) = items.find(memory.context, "default", ItemQuery(), day(1))[0].items
    assert datetime.fromisoformat(again.created_at) == day(1)
    assert not items.drop(memory.context, DropItem(path=["users"], key="drink"), day(2)).dropped


def test_items_whose_own_lifetime_is_over_do_not_wait_for_the_forget_limit(memory: Memory) -> None:
    given = [NewItem(path=["users"], key=str(key), document="{}", ttl=60) for key in range(150)]
    items.put(memory.context, "default", given, [uuid4() for _ in given], day(0))

    counters = memory.decay(0.5).counters
    assert (counters.expired, counters.held) == (150, 0)


EARLIER = {"decay_class": "permanent", "expires_at": "infinity"}
"""What an earlier version wrote of an item with a long lifetime of its own."""


@pytest.mark.parametrize("pinned", [False, True])
def test_an_item_of_an_archive_of_an_earlier_version_ends_by_its_own_lifetime(memory: Memory, pinned: bool) -> None:
    id_ = with_lifetime(memory, 100 * 24 * 60)
    memory.touch(id_, at=1)
    if pinned:
        memory.pin(id_, at=1)
    (line,) = memory.archive(1)
    state = line["state"] | EARLIER | {"last_confirmed_at": day(0).isoformat(), "kept_lifetime": None}
    memory.import_records([line | {"state": state}], at=1, namespace="other")
    (again,) = memory.archive(1, "other")
    assert again["state"] == line["state"]


def test_an_item_past_its_own_lifetime_is_neither_used_nor_pinned(memory: Memory) -> None:
    id_ = with_lifetime(memory, 60)

    assert touch.used(memory.context, Use(ids=[id_]), day(1))[0].unknown == [id_]
    assert memory.reinforce(id_, at=1) is None
    with pytest.raises(NotFoundError):
        memory.pin(id_, at=1)
    assert memory.listed(at=1) == []


def trips_to_put(memory: Memory, keys: range) -> int:
    with relayed(memory.context.database_url) as (url, relay):
        given = [NewItem(path=["users"], key=str(key), document="{}") for key in keys]
        items.put(memory.having(database_url=url).context, "default", given, [uuid4() for _ in given], day(0))
        close_pools()
        return relay.trips


@pytest.mark.skipif(ON_CITUS, reason="the relay is for a server on a socket")
def test_many_items_take_few_more_trips_to_the_server_than_one(memory: Memory) -> None:
    assert trips_to_put(memory, range(1, 21)) - trips_to_put(memory, range(1)) < 20


def test_an_item_without_a_place_of_an_earlier_version_hides_no_others(memory: Memory) -> None:
    item = NewItem(path=["users"], key="drink", document="{}")
    items.put(memory.context, "default", [item], [uuid4()], day(0))
    memory.store("Tea at four.", {"text": "Tea at five.", "entity": "users/ana", "metadata": {"document": "{}"}})
    memory.rows("update facts set kind = 'item' where kind = 'semantic'")
    assert items.paths(memory.context, ListItemPaths(namespace="default"), day(0)).paths == [["users"]]


def test_an_item_without_text_is_recalled_neither_by_its_place_nor_by_meaning(memory: Memory) -> None:
    places = [["chats", "monday"], ["chats", "half \ud800"]]
    given = [NewItem(path=path, key=f"monday {place}", document="{}") for path in places for place in range(20)]
    shown = NewItem(path=["chats", "monday"], key="shown", document="{}", text="On monday she sails")
    items.put(memory.context, "default", [*given, shown], [uuid4() for _ in [*given, shown]], day(0))

    for question in ("Which chats were there on monday?", f'"chats"/"monday"/ {given[0].key}'):
        assert [one.text for one in memory.ask(question, limit=50, min_relevance=0).results] == ["On monday she sails"]


def test_an_item_without_text_is_not_recalled_where_its_place_is_longer_than_a_text_may_be(memory: Memory) -> None:
    given = NewItem(path=["chats", "monday"], key="drink", document="{}")
    items.put(memory.having(max_text=20).context, "default", [given], [uuid4()], day(0))
    assert memory.ids("chats on monday", min_relevance=0) == []


def test_an_item_without_text_is_not_found_in_deep_memory_nor_hides_what_is(memory: Memory) -> None:
    given = [NewItem(path=["monday"], key=f"monday {place}", document="{}", ttl=1) for place in range(deep.PROMOTED)]
    items.put(memory.context, "default", given, [uuid4() for _ in given], day(0))
    id_ = memory.add("On monday there were long chats about the harbour.", decay_class="checkpoint")
    memory.decay(100)
    memory.demote(at=400)
    assert memory.ask("monday", at=401).deep == 1
    assert memory.ids("monday", at=401, deep=True) == [id_]


def test_of_two_callers_that_drop_an_item_at_once_one_has_dropped_it(memory: Memory) -> None:
    items.put(memory.context, "default", [NewItem(path=["users"], key="tea", document="{}")], [uuid4()], day(0))
    asked = DropItem(path=["users"], key="tea")
    with ThreadPoolExecutor() as pool, transaction(memory.context.database_url) as db:
        db.execute("select from activity for update")
        drops = [pool.submit(items.drop, memory.context, asked, day(0)) for _ in range(2)]
        wait_for(lambda: memory.value(LOCK_WAITS) == 2)
    assert sorted(one.result().dropped for one in drops) == [False, True]


def test_an_item_that_is_put_after_a_request_to_drop_it_stays(memory: Memory) -> None:
    """Such as by a redelivery of the request, or if that waited for a worker."""
    items.put(memory.context, "default", [NewItem(path=["users"], key="tea", document="{}")], [uuid4()], day(1))
    asked = DropItem(path=["users"], key="tea")
    assert not items.drop(memory.context, asked, day(0.99)).dropped
    assert items.drop(memory.context, asked, day(1)).dropped


def test_an_item_past_its_lifetime_is_neither_recalled_nor_listed_nor_shown(memory: Memory) -> None:
    given = [NewItem(path=["users"], key=key, document="{}", text=f"Her {key} tea", ttl=60) for key in ("old", "dear")]
    items.put(memory.context, "default", given, [uuid4() for _ in given], day(0))
    old, dear = (memory.value("select id from facts where key = %s", key) for key in ("old", "dear"))
    memory.store({"text": "Her oldest tea", "kind": "semantic"})
    memory.pin(dear, at=0.01)

    def listed(at: float) -> list[UUID]:
        return items.find(memory.context, "default", ItemQuery(path=["users"], refresh=False), day(at))[1]

    def recalled(at: float) -> set[UUID]:
        return {one.id for one in memory.ask("Her tea", at=at).results if one.kind == "item"}

    def among_facts(at: float) -> set[UUID]:
        return {one["id"] for one in memory.listed(at=at, kind="item")}

    assert set(listed(0.04)) == recalled(0.04) == {old, dear}
    assert set(listed(1)) == recalled(1) == {dear}

    def by_id(at: float) -> set[UUID]:
        return {one["id"] for one in memory.listed(at=at, ids=[old, dear])}

    def state(at: float) -> str:
        return history.history(memory.context, ShowHistory(id=old), day(at)).state

    assert among_facts(0.04) == by_id(0.04) == {old, dear}
    assert among_facts(1) == by_id(1) == {dear}
    assert [state(0.04), state(1)] == ["live", "over"]
    assert old in memory.ids("Her tea", at=1, deep=True)


def test_instants_of_an_item_are_written_alike(memory: Memory) -> None:
    items.put(memory.context, "default", [NewItem(path=["users"], key="drink", document="{}")], [uuid4()], day(0))
    (item,) = items.find(memory.context, "default", ItemQuery(path=["users"]), day(1))[0].items
    said = item.model_dump(mode="json")
    assert said["created_at"] == said["updated_at"]


def embeddings(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which every embedded text is added from now on."""
    embedder, embedded = memory.context.embedder, []
    embed = embedder.embed

    def noting(texts: Sequence[str], **options: Any) -> Any:
        embedded.extend(texts)
        return embed(texts, **options)

    monkeypatch.setattr(embedder, "embed", noting)
    return embedded


def test_a_file_is_found_by_path_section_and_text(memory: Memory) -> None:
    index(memory, "memory/boat.md", BOAT)
    best = memory.ask("How strong is the engine?").results[0]
    assert (best.kind, best.source, best.key) == ("chunk", "memory/boat.md", "Boat > Engine")
    assert best.text == "## Engine\n\nThe engine is a Bukh, 20 horsepower."
    assert memory.ids("Sails", kind="chunk")[0] == memory.value("select id from facts where key = 'Boat > Sails'")


def test_indexing_again_changes_nothing(memory: Memory) -> None:
    assert index(memory, "memory/boat.md", BOAT) == counts(added=3)
    before = memory.rows("select facts::text, activity::text from facts join activity on fact = id order by id")
    assert index(memory, "memory/boat.md", BOAT, at=1) == counts(unchanged=3)
    assert memory.rows("select facts::text, activity::text from facts join activity on fact = id order by id") == before


def test_only_changed_chunks_are_embedded_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    index(memory, "memory/boat.md", BOAT)
    embedded = embeddings(memory, monkeypatch)
    changed = index(memory, "memory/boat.md", "Preface.\n\n" + BOAT.replace("Three", "Four"), at=1)
    assert changed == counts(added=2, unchanged=2, removed=1)
    assert sorted(embedded) == ["## Sails\n\nFour of them.", "Preface."]


def test_what_is_no_longer_in_a_file_leaves_no_trace(memory: Memory) -> None:
    index(memory, "memory/boat.md", BOAT)
    kept = memory.add("Tea at four.")
    assert index(memory, "memory/boat.md", "Nothing.", at=1).removed == 3
    assert remove(memory, "memory/boat.md") == 1
    for table in ("activity", "vectors", "signatures"):
        assert memory.rows(f"select fact from {table}") == [(kept,)]
    assert memory.value("select count(*) from documents") == 0
    assert memory.rows("select id from facts") == [(kept,)]


def test_a_changed_letter_is_another_chunk(memory: Memory) -> None:
    index(memory, "a/b.md", "the Keel is OAK")
    index(memory, "a/b.md", "The keel is oak", at=1)
    assert said(memory) == [("a/b.md", None, "The keel is oak")]


def test_the_same_words_in_two_files_and_in_a_fact_are_three(memory: Memory) -> None:
    memory.add("The keel is oak.")
    index(memory, "a/one.md", "The keel is oak.")
    index(memory, "a/two.md", "The keel is oak.")
    assert remove(memory, "a/one.md") == 1
    assert said(memory) == [("a/two.md", None, "The keel is oak.")]
    assert len(memory.ids("keel")) == 2


def test_the_later_reading_of_a_file_wins(memory: Memory) -> None:
    index(memory, "a/b.md", "New.", at=2)
    outdated = index(memory, "a/b.md", "Old.", at=1)
    assert outdated == counts("a/b.md", outdated=True)
    assert outdated.model_fields_set == Indexed.model_fields.keys()
    assert said(memory) == [("a/b.md", None, "New.")]


def test_a_document_that_was_read_before_the_clock_was_set_back_is_indexed_again(memory: Memory) -> None:
    real = memory.having(time_travel=False)
    ahead = (real.context.now() - DAY_0) / timedelta(days=1) + 30
    index(real, "a/b.md", "By a clock that was wrong.", at=ahead)
    done = index(real, "a/b.md", "By the right one.", at=ahead - 30)
    assert done == counts("a/b.md", added=1, removed=1)
    assert [text for *_, text in said(real)] == ["By the right one."]


def test_two_at_once_do_not_meet(memory: Memory) -> None:
    with (
        signals.try_lock(memory.context.redis, "document:default a/b.md", 10),
        pytest.raises(UnavailableError, match=r"a/b.md is being indexed by another task"),
    ):
        index(memory, "a/b.md", "New.")
    index(memory, "a/b.md", "New.")


def test_a_file_does_not_wait_for_one_of_another_namespace(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of namespaces and paths may have a colon, so with one between them two places had one lock."""
    others: list[Indexed] = []

    def meanwhile(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        others.append(index(memory, "a:b/c.md", "Theirs.", namespace="tenant"))
        return store_many(*given, **options)

    monkeypatch.setattr(files, "store_many", meanwhile)
    assert index(memory, "b/c.md", "Ours.", namespace="tenant:a").added == 1
    assert [one.added for one in others] == [1]


def test_a_file_that_is_removed_while_it_is_indexed_is_indexed_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then_removed(*given: Any, **options: Any) -> Any:
        done = store_many(*given, **options)
        monkeypatch.undo()
        assert remove(memory, "memory/boat.md") == 3
        return done

    monkeypatch.setattr(files, "store_many", then_removed)
    with pytest.raises(UnavailableError, match=r"memory/boat.md was removed at this very moment"):
        index(memory, "memory/boat.md", BOAT)
    assert known(memory, "memory") == []
    assert index(memory, "memory/boat.md", BOAT) == counts(added=3)


def test_a_file_that_is_indexed_while_it_is_removed_is_removed_with_all_its_chunks(memory: Memory) -> None:
    index(memory, "memory/boat.md", BOAT)
    sails = memory.value("select id from facts where text like '%%Three of them.%%'")
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, namespaces.id_of(db, "default"), [sails])
        removing = pool.submit(remove, memory, "memory/boat.md")
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        memory.store({"text": "## Oars\n\nTwo.", "kind": "chunk", "source": "memory/boat.md", "key": "Boat > Oars"})
        db.commit()
        assert removing.result() == 4
    assert said(memory) == []


def test_what_of_a_file_is_erased_stays_so_if_the_rest_waits(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ERASED_AT_ONCE", 1)
    index(memory, "memory/boat.md", BOAT)
    ((last,),) = memory.rows("select id from facts order by id desc limit 1")
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, namespaces.id_of(db, "default"), [last])
        removing = pool.submit(remove, memory, "memory/boat.md")
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        assert memory.rows("select id from facts") == [(last,)]
        assert known(memory, "memory")[0].digest is None
        db.commit()
        assert removing.result() == 3
    assert known(memory, "memory") == []


def test_namespaces_have_files_of_their_own(memory: Memory) -> None:
    index(memory, "a/b.md", "Ours.")
    index(memory, "a/b.md", "Theirs.", namespace="other")
    assert remove(memory, "a/b.md", "other") == 1
    assert said(memory) == [("a/b.md", None, "Ours.")]
    assert known(memory, "a", "other") == []
    assert [one.path for one in known(memory, "a")] == ["a/b.md"]
    assert remove(memory, "a/b.md", "unknown") == 0


def test_a_folder_knows_its_own_files_and_those_whose_chunks_were_imported(memory: Memory) -> None:
    index(memory, "notes/a.md", "One.")
    index(memory, "notes and more/a.md", "Two.")
    memory.store({"text": "Three.", "kind": "chunk", "source": "notes/b.md"})
    assert [(one.path, one.folder) for one in known(memory, "notes")] == [
        ("notes/a.md", "/there"),
        ("notes/b.md", None),
    ]


def test_chunks_have_no_lifetime_and_no_class_by_their_words(memory: Memory) -> None:
    index(memory, "a/b.md", "Currently debugging this session, right now.")
    memory.backfill(0)
    (id_,) = memory.rows("select id from facts")[0]
    row = memory.row(id_)
    assert (row["decay_class"], row["expires"]) == (None, float("inf"))


def test_an_unread_chunk_fades_but_is_never_culled(memory: Memory) -> None:
    index(memory, "a/b.md", BOAT)
    assert memory.decay(2_000).counters.fingerprinted == 3
    found = memory.ask("Bukh engine", at=2_000).results[0]
    assert (found.key, found.fidelity) == ("Boat > Engine", "fingerprint")
    assert index(memory, "a/b.md", BOAT, at=2_001) == counts("a/b.md", unchanged=3)


def test_a_chunk_that_was_forgotten_stays_forgotten(memory: Memory) -> None:
    index(memory, "a/b.md", BOAT)
    engine = memory.value("select id from facts where key = 'Boat > Engine'")
    memory.forget(engine, at=1)
    assert index(memory, "a/b.md", BOAT, at=2) == counts("a/b.md", unchanged=2, forgotten=1)
    assert engine not in memory.ids("engine", at=3)


def test_documents_stay_out_of_a_context_unless_wanted(memory: Memory) -> None:
    index(memory, "a/b.md", BOAT)
    assert memory.ask("engine", documents=False).results == []
    assert memory.ask("engine", documents=True).results


@examples(12)
@given(versions=st.lists(st.lists(st.sampled_from("abcd"), max_size=4), min_size=1, max_size=5))
def test_an_indexed_file_reaches_its_current_state_from_any_other(memory: Memory, versions: list[list[str]]) -> None:
    name = f"space-{memory.value('select count(*) from namespaces')}"
    for number, version in enumerate(versions):
        text = "\n\n".join(f"# {head}\n\nText of {head}." for head in version)
        index(memory, "a/b.md", text, at=number, namespace=name)
    expected = chunks(text, tokens.estimate)
    assert [(section, text) for _, section, text in said(memory, name)] == sorted(
        (one.section, one.text) for one in expected
    )


def test_the_lines_of_imported_chunks_follow_the_file(memory: Memory) -> None:
    def upload(text: str, at: float, namespace: str) -> None:
        files.upload(memory.context, Upload(path="memory/boat.md", text=text, namespace=namespace), day(at))

    upload(BOAT, 0, "default")
    memory.import_records(memory.archive(1), 1, "other")
    upload(f"# New\n\nIt is painted.\n\n{BOAT}", 2, "other")
    lines = "select turn from facts where namespace = %s and text like '%%oak%%'"
    assert [memory.value(lines, tenant) for tenant in (1, 2)] == [1, 5]


def test_a_text_of_too_many_parts_is_refused(memory: Memory) -> None:
    text = "\n\n".join(f"# Head {number}\n\nText {number}." for number in range(10_001))
    with pytest.raises(InvalidInputError, match=r"text: has 10,001 parts, more than 10,000; split it into several"):
        files.upload(memory.context, Upload(path="memory/boat.md", text=text), day(0))


def test_an_archive_does_not_bring_back_what_a_file_does_not_contain_any_more(memory: Memory) -> None:
    index(memory, "memory/boat.md", BOAT)
    index(memory, "memory/tea.md", "Tea.")
    memory.forget(memory.value("select id from facts where key like '%%Sails'"), at=0.5)
    archive = memory.archive(1)
    index(memory, "memory/boat.md", "# Boat\n\nIt is sold.", at=2)
    remove(memory, "memory/tea.md")
    assert set(memory.import_records([line for line in archive if "text" in line], 3)) == {"added", "forgotten"}
    assert [path for path, *_ in said(memory)] == ["memory/boat.md", "memory/tea.md"]
