"""Several shards: each namespace is on one, all work on it goes there, and others see nothing of it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from secrets import token_hex
from uuid import uuid4

import pytest
from databases import schemas
from ebb.contract.decay import ListRuns
from ebb.contract.documents import Index, ItemQuery, ListDocuments, ListItemPaths, NewItem
from ebb.contract.graph import ListRelations
from ebb.contract.reports import ListFacts
from memory import ON_CITUS, SHARDS, Memory, day
from psycopg.conninfo import make_conninfo

from workers import graph
from workers.admin import branches, keys, search_indexes, shard_moves, stats
from workers.admin.export import export
from workers.admin.shard_moves import listed, move
from workers.context import Context
from workers.coordination import signals
from workers.decay import janitor, passes
from workers.documents import files, items
from workers.errors import InvalidInputError, SchemaError, SettingsError
from workers.memory import facts
from workers.memory.embed import check_embedder
from workers.storage import namespaces, routing, schema, shards
from workers.storage.connection import Connection, close_pools, connect, transaction

pytestmark = pytest.mark.long

NAMES = ("ann", "bob", "eve", "kim", "max", "zoe")


def at(place: str | int) -> AbstractContextManager[None]:
    return routing.at(place, SHARDS)


def directory(memory: Memory) -> dict[str, int]:
    return dict(memory.rows("select name, shard from directory order by 1"))  # type: ignore[arg-type]


def home(memory: Memory) -> str:
    """Return the schema of the first shard."""
    return str(memory.value("select current_schema()"))


def fill(memory: Memory) -> None:
    for name in NAMES:
        with at(name):
            memory.store(f"{name} has a red bicycle.", f"{name} lives in Oslo.", namespace=name)
            memory.store({"text": f"{name} lives in Oslo.", "session": "chat"}, namespace=name)


def test_new_namespaces_are_spread_by_a_hash_of_their_names(sharded: Memory) -> None:
    fill(sharded)
    with at(0):
        assert directory(sharded) == {name: routing.shard_of_new(name) for name in NAMES}
    assert set(directory(sharded).values()) == {0, 1, 2}
    for shard in range(SHARDS):
        with at(shard), transaction(sharded.context.database_url) as db:
            names = {name for (name,) in db.execute("select name from namespaces")}
        assert names == {name for name, number in directory(sharded).items() if number == shard}


def test_a_namespace_sees_its_own_facts_only(sharded: Memory) -> None:
    fill(sharded)
    for name in NAMES:
        with at(name):
            texts = [one.text for one in sharded.ask("Who has a bicycle?", namespace=name).results]
        assert texts
        assert all(text.startswith(name) for text in texts)


def test_two_processes_that_begin_a_namespace_choose_one_shard(sharded: Memory) -> None:
    def store(number: int) -> None:
        with at("bob"):
            sharded.store(f"Line {number} is read.", namespace="bob")

    _ = sharded.context.rules
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(store, range(8)))
    assert list(directory(sharded)) == ["bob"]
    with at("bob"):
        assert sharded.stats(0, namespace="bob").facts == 8


def test_a_namespace_from_before_stays_on_the_first_shard(sharded: Memory) -> None:
    sharded.store("Kim likes tea.", namespace="kim")
    with at("kim"):
        assert routing.shard_of_new("kim") > 0
        sharded.store("Kim likes cake.", namespace="kim")
        assert sharded.stats(0, namespace="kim").facts == 2
    assert directory(sharded) == {}


def test_a_process_with_one_shard_begins_no_second_namespace_of_a_name(sharded: Memory) -> None:
    fill(sharded)
    elsewhere = next(name for name, shard in directory(sharded).items() if shard)
    with pytest.raises(SettingsError, match=r"^namespace \w+ is on another shard: restart this process .*`ebb doctor`"):
        sharded.store("This is refused.", namespace=elsewhere)


def test_fewer_shards_than_hold_namespaces_are_refused(sharded: Memory) -> None:
    fill(sharded)
    schema.verify_at(sharded.context.database_url, SHARDS)
    with pytest.raises(SettingsError, match=r"EBB_SHARDS=1 is not allowed: .* on shard 2\. Set EBB_SHARDS=3 or more"):
        schema.verify_at(sharded.context.database_url)


def test_a_schema_whose_name_leaves_no_room_for_the_number_of_a_shard_is_refused(sharded: Memory) -> None:
    for length in (58, 59):
        url = make_conninfo(sharded.context.database_url, options=f"-csearch_path={'a' * length},public")
        with pytest.raises(SettingsError, match="58 bytes") if length > 58 else nullcontext():
            schema.apply(url, count=2)
    made = sharded.rows("select nspname from pg_namespace where nspname ~ '^aaa' order by length(nspname)")
    assert [name for (name,) in made] == ["a" * 58, "a" * 59, "a" * 58 + "_0001"]


def test_a_shard_that_lacks_its_schema_or_has_another_version_is_refused(sharded: Memory) -> None:
    url, own = sharded.context.database_url, home(sharded)
    with pytest.raises(SchemaError, match=rf"Shard 3: The database has no schema {own}_0003, .*: run `ebb migrate`"):
        schema.verify_at(url, 4)
    with connect(url, autocommit=True) as db:
        db.execute(f"update {own}_0002.schema_migrations set number = 12".encode())
    with pytest.raises(SchemaError, match="Shard 2: The database has schema 12, this version of Ebb needs schema"):
        schema.verify_at(url, SHARDS)


def test_a_recall_in_several_namespaces_reaches_their_shards(sharded: Memory) -> None:
    fill(sharded)
    with at("ann"):
        found = sharded.ask("Who has a bicycle?", namespace="ann", namespaces=NAMES, limit=20, explain=True)
    assert {one.namespace for one in found.results} == {*NAMES}
    with at("zoe"):
        (zoes, *_) = sharded.ask("Who has a bicycle?", namespace="zoe").results
        why = sharded.ask("Who has a bicycle?", namespace="zoe", namespaces=NAMES, why=zoes.id).why
    assert why is not None
    assert why["recalled"]


def test_a_recall_in_several_namespaces_says_that_words_alone_decided_in_one(sharded: Memory) -> None:
    fill(sharded)
    first, last = (next(name for name, shard in directory(sharded).items() if shard == own) for own in (0, 2))

    def by_meaning(*names: str) -> bool:
        with at(first):
            return sharded.ask("Who has a bicycle?", namespace=first, namespaces=names).by_meaning

    assert by_meaning(first, last)
    with at(last), transaction(sharded.context.database_url) as db:
        db.execute("update embedders set name = 'another'")  # this shard is embedded again later than the first
    assert [by_meaning(first, last), by_meaning(last, first), by_meaning(first)] == [False, False, True]


def test_an_export_of_everything_has_all_shards(sharded: Memory) -> None:
    fill(sharded)
    texts = {one["text"] for one in export(sharded.context, None, day(0)) if "text" in one}
    assert texts == {f"{name} {rest}" for name in NAMES for rest in ("has a red bicycle.", "lives in Oslo.")}
    assert {one["text"] for one in export(sharded.context, "kim", day(0)) if "text" in one} == {
        "kim has a red bicycle.", "kim lives in Oslo.",
    }  # fmt: skip
    again = [one["namespace"] for one in export(sharded.context, None, day(0)) if "occurrence" in one]
    assert sorted(again) == sorted(NAMES)


def test_an_export_of_everything_has_a_namespace_that_is_moved_meanwhile(sharded: Memory) -> None:
    fill(sharded)
    moved = next(name for name, number in directory(sharded).items() if number)
    lines = export(sharded.context, None, day(0))
    found = [next(lines)]
    move(sharded.context, moved, 0)
    found += lines
    assert sorted(one["text"] for one in found if one["namespace"] == moved and "text" in one) == [
        f"{moved} has a red bicycle.", f"{moved} lives in Oslo.",
    ]  # fmt: skip


def test_a_pass_over_everything_has_one_report(sharded: Memory) -> None:
    fill(sharded)
    run, context = uuid4(), sharded.context
    planned = [(shard, passes.plan(context, run, day(400))) for shard in context.each_shard()]
    processed = []
    for shard, parts in planned:
        for part in parts:
            with at(shard):
                assert not passes.finish(context, run).finished
                passes.apply(context, part, lambda: None)
                processed.append(passes.finish(context, run))
    assert processed[-1].finished
    assert processed[-1].counters.processed == 2 * len(NAMES)
    for name in NAMES:
        with at(name):
            assert sharded.stats(400, namespace=name).tiers["cold"] == 2


def test_a_pass_over_the_shards_of_one_group_is_finished_if_nothing_is_due(sharded: Memory) -> None:
    run, context = uuid4(), sharded.context
    with at(2):
        assert not passes.plan(context, run, day(0))
    with at(0):
        assert passes.finish(context, run).finished
    (one,) = passes.latest_runs(context, ListRuns(everything=True)).runs
    assert one.finished_at is not None


def test_words_of_a_namespace_that_was_moved_to_another_group_are_counted_when_redis_lost_its_data(
    sharded: Memory,
) -> None:
    fill(sharded)
    own, shards_of = sharded.context.settings.redis_url, directory(sharded)
    group = sharded.having(brokers=f"{own} redis://127.0.0.1:1/0 redis://127.0.0.1:2/0").context
    of_group = sorted(name for name, shard in shards_of.items() if shard == 0)
    move(sharded.context, of_group[0], 1)
    group.redis.flushdb()
    search_indexes.find_grown(group)
    assert sorted(signals.take_grown(group.redis)) == of_group


def test_facts_are_sound_on_every_shard(sharded: Memory) -> None:
    fill(sharded)
    assert [sharded.examine() for _ in sharded.context.each_shard()] == [{}] * SHARDS


def test_lists_of_the_whole_system_have_all_shards(sharded: Memory) -> None:
    fill(sharded)
    context = sharded.context
    assert facts.namespaces(context, "", 100) == sorted(NAMES)
    assert janitor.due(context, day(400)) == sorted(NAMES)
    assert sum(stats.measure(context, day(0))["tiers"].values()) == 2 * len(NAMES)
    for name in NAMES:
        keys.create(context, name, ["read"], None, day(0))
        assert len(keys.of_namespace(context, name)) == 1
    assert keys.publish(context) == len(NAMES)


def test_a_namespace_that_is_moved_meanwhile_is_listed_once(sharded: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(sharded)
    context = sharded.context
    move(context, "ann", 0)
    each_shard = context.each_shard

    def moving() -> Iterator[int]:
        for number in each_shard():
            yield number
            if number == 0:
                monkeypatch.undo()
                move(context, "ann", 2)

    monkeypatch.setattr(context, "each_shard", moving)
    assert facts.namespaces(context, "", 100) == sorted(NAMES)


READS: dict[str, Callable[[Context], object]] = {
    "facts": lambda context: facts.page(context, ListFacts(namespace="ann"), day(0)),
    "items": lambda context: items.find(context, "ann", ItemQuery(), day(0)),
    "paths": lambda context: items.paths(context, ListItemPaths(namespace="ann"), day(0)),
    "relations": lambda context: graph.relations(context, ListRelations(namespace="ann"), day(0)),
    "documents": lambda context: files.known(context, ListDocuments(namespace="ann", name="notes")),
}


@pytest.mark.skipif(ON_CITUS, reason="there each server has a snapshot of its own")
@pytest.mark.parametrize("name", READS)
def test_a_move_between_two_statements_of_a_reader_hides_nothing_from_it(
    sharded: Memory, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Replicas replay moves, whose locks they do not know."""
    fill(sharded)
    context, id_of, read = sharded.context, namespaces.id_of, READS[name]
    with at("ann"):
        items.put(context, "ann", [NewItem(path=["trips"], key="Oslo", document="{}")], [uuid4()], day(0))
        sharded.relate("Ann", "Bob", namespace="ann")
        chunks = [{"text": "Tea at four."}]
        files.index(context, Index(namespace="ann", path="notes/tea.md", digest="0" * 64, chunks=chunks), day(0))
        before = read(context)

        def moved_before(db: Connection, namespace: str) -> int:
            monkeypatch.setattr(namespaces, "id_of", id_of)
            move(context, namespace, (routing.shard_of_new("ann") + 1) % SHARDS)
            return id_of(db, namespace)

        monkeypatch.setattr(shard_moves, "TRIES", 1)
        monkeypatch.setattr(namespaces, "id_of", moved_before)
        assert read(context) == before


def test_a_shard_is_listed_with_its_schema_and_the_size_of_its_rows(sharded: Memory) -> None:
    fill(sharded)
    before = listed(sharded.context)
    with connect(sharded.context.database_url) as db:
        assert [one.schema_name for one in before] == schemas(db)
    with at("ann"):
        place = routing.shard_of_new("ann")
        sharded.store(*(f"{number} {token_hex(5000)}" for number in range(20)), namespace="ann")
    grown = [one.bytes - had.bytes for one, had in zip(listed(sharded.context), before, strict=True)]
    assert [size > 100_000 for size in grown] == [number == place for number in range(SHARDS)]


@pytest.mark.parametrize("first", [True, False])
def test_a_branch_is_on_the_shard_of_its_namespace(sharded: Memory, first: bool) -> None:
    fill(sharded)
    context = sharded.context
    name = next(name for name, shard in directory(sharded).items() if (shard == 0) == first)
    with at(name):
        made = branches.begin(context, name, 30)
        branches.copy(context, made, branches.START)
        branches.conclude(context, made, day(0))
    with at(made.name):
        assert branches.live_and_forgotten(context, made) == (2, 0)
        assert sharded.ask("Who has a bicycle?", namespace=made.name).results
        assert [one["occurrence"]["session"] for one in export(context, made.name, day(0)) if "occurrence" in one] == [
            "chat"
        ]
    assert [one.name for one in branches.listed(context, None)] == [f"{name}-older-30d"]
    for shard in range(SHARDS):
        with at(shard):
            assert branches.live_and_forgotten(context, made) == (2, 0)
    with at(name):
        branches.drop_facts(context, made)
        branches.drop(context, made)
    assert branches.listed(context, None) == []
    with at(0):
        assert made.name not in directory(sharded)


def test_a_branch_leaves_a_namespace_of_its_name_on_another_shard_alone(sharded: Memory) -> None:
    fill(sharded)
    name = branches.name_of("ann", 3)
    there = next(shard for shard in range(SHARDS) if shard != directory(sharded)["ann"])
    with at(0):
        sharded.rows("insert into directory (name, shard) values (%s, %s) returning name", name, there)
    with at(name):
        sharded.store("This is not a branch.", namespace=name)
    with at("ann"), pytest.raises(InvalidInputError, match="is a namespace of its own and no branch"):
        branches.begin(sharded.context, "ann", 3)
    with at("ann"), transaction(sharded.context.database_url) as db:
        shards.forget(db, name)
    assert directory(sharded)[name] == there
    with at(name):
        assert sharded.ask("branch?", namespace=name, min_relevance=0).results


def test_two_systems_in_one_database_have_shards_of_their_own(sharded: Memory) -> None:
    own = f"{home(sharded)}_other"
    url = make_conninfo(sharded.context.database_url, options=f"-csearch_path={own},public")
    other = sharded.having(database_url=url)
    schema.apply(url, count=SHARDS)
    for _ in other.context.each_shard():
        check_embedder(other.context)
    fill(sharded)
    for name in NAMES:
        with at(name):
            other.store(f"{name} has a boat.", namespace=name)
    for memory, what in ((sharded, "bicycle"), (other, "boat")):
        for name in NAMES:
            with at(name):
                texts = [one.text for one in memory.ask("Who has a bicycle or a boat?", namespace=name).results]
            assert texts
            assert not any(word in text for text in texts for word in {"bicycle", "boat"} - {what})
        assert sum(one.namespaces for one in listed(memory.context)) == len(NAMES)
    assert [one.schema_name for one in listed(other.context)] == [own, f"{own}_0001", f"{own}_0002"]


AS_BEFORE = """
    select format('alter schema %I rename to %I', 'public' || shard, 'ebb' || shard)
    from unnest(array['_0001', '_0002']) as shards (shard)
    union all
    select format('alter function %s set search_path to %I, public',
        replace(pg_proc.oid::regprocedure::text, 'public_', 'ebb_'), replace(nspname, 'public_', 'ebb_'))
    from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
    where nspname in ('public_0001', 'public_0002') and proconfig::text like '%search_path=%'
    union all
    select 'update ' || path || '.schema_migrations set number = 32'
    from unnest(array['public', 'ebb_0001', 'ebb_0002']) as paths (path)
"""


IN_PUBLIC = pytest.mark.skipif(ON_CITUS, reason="Citus does not place the schema `public`")


def as_before(memory: Memory) -> None:
    """Bring the shards of a system in `public` back to the names that they had."""
    with connect(memory.context.database_url, autocommit=True) as db:
        for (statement,) in db.execute(AS_BEFORE).fetchall():
            db.execute(statement)


@IN_PUBLIC
def test_a_migration_renames_shards_to_those_of_their_home(sharded: Memory) -> None:
    fill(sharded)
    as_before(sharded)
    close_pools()
    assert schema.apply(sharded.context.database_url, count=SHARDS) == [*range(33, 49)]
    schema.verify_at(sharded.context.database_url, SHARDS)
    assert [one.schema_name for one in listed(sharded.context)] == ["public", "public_0001", "public_0002"]
    for name in NAMES:
        with at(name):
            assert [one.text for one in sharded.ask("red bicycle", namespace=name, limit=1).results] == [
                f"{name} has a red bicycle."
            ]
            sharded.store(f"{name} has a boat.", namespace=name)
    assert all(sharded.examine() == {} for _ in sharded.context.each_shard())


@IN_PUBLIC
@pytest.mark.parametrize("both", [True, False])
def test_a_migration_leaves_shards_that_may_be_those_of_another_system(sharded: Memory, both: bool) -> None:
    if both:
        fill(sharded)
    other = make_conninfo(sharded.context.database_url, options="-csearch_path=ebb,public")
    schema.apply(other)
    with connect(other, autocommit=True) as db:
        db.execute("insert into directory values ('ann', 1)")
    as_before(sharded)
    if both:
        with pytest.raises(SchemaError, match="public and ebb share their shards: move all namespaces of one"):
            schema.apply(sharded.context.database_url, count=SHARDS)
    else:
        schema.apply(sharded.context.database_url, count=SHARDS)
        schema.apply(other, count=SHARDS)
        schema.verify_at(other, SHARDS)


def test_a_session_without_transactions_stays_on_the_shard_of_a_namespace(sharded: Memory) -> None:
    fill(sharded)
    own = home(sharded)
    for name, shard in directory(sharded).items():
        with at(name), connect(sharded.context.database_url, autocommit=True) as db:
            assert db.execute("select current_schema()").fetchone() == (shards.schema_of(own, shard),)


def test_with_one_shard_no_statement_is_added(memory: Memory) -> None:
    with routing.at("ann", 1):
        assert routing.current() is None
        with transaction(memory.context.database_url) as db:
            assert routing.begin(db, share=True) is None
