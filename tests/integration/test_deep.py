"""Deep memory: facts that decay forgot are packed, and found, shown and restored until they are erased."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from ebb.contract.documents import NewItem
from ebb.contract.recall import Lookup
from ebb.contract.reports import ShowTimeline
from memory import LOCK_WAITS, ON_CITUS, Memory, day, wait_for

from api.cli.output import json_line
from workers.admin import branches, export, purge, search_indexes
from workers.admin import stats as counting
from workers.coordination import signals
from workers.documents import items
from workers.memory import embed, history, recall, restore
from workers.memory.add import Stored
from workers.memory.unpack import ask_known_by_id, known_by_id
from workers.storage import activity, deep, exports, facts, namespaces, packing, tombstones, words
from workers.storage.connection import connect, transaction

TEXT = "Mira hides the spare key behind the blue flower pot."


@pytest.fixture
def sunk(memory: Memory) -> UUID:
    """Return an expired fact in deep memory."""
    id_ = memory.add(TEXT, entity="Mira", key="key", tags=["home"], decay_class="session", session="s", turn=3)
    memory.decay(2)
    assert memory.demote(at=2.5) == 0
    assert memory.demote(at=3.5) == 1
    return id_


def test_a_demoted_fact_is_a_single_row(memory: Memory, sunk: UUID) -> None:
    for table in ("facts", "activity", "signatures", "vectors", "events"):
        assert memory.value(f"select count(*) from {table}") == 0
    assert memory.value("select id from deep") == sunk
    assert memory.purge(at=10_000) == 0


def test_every_column_is_packed_or_follows_from_others(memory: Memory) -> None:
    own = {"namespace", "id", "text", "created_at", "forgotten_at", "forgotten_reason", "forgotten_by", "tombstone_at"}
    columns = "select column_name from information_schema.columns where table_name = %s"
    facts = {name for (name,) in memory.rows(columns, "facts")}
    assert facts - set(packing.USUAL) == own | {"search", "content_salience"}
    again = {"namespace", "fact", "segment", "base", "fidelity", "ends_at", "held", "retired", "due_at", "worth"}
    state = {name for (name,) in memory.rows(columns, "activity")}
    assert state - set(packing.USUAL_STATE) == again | {"halvings", "compared", "asked"}


@pytest.mark.skipif(ON_CITUS, reason="Citus cannot rebuild the words of facts")
def test_the_words_of_deep_memory_are_stemmed_again_after_a_change_of_the_language(memory: Memory) -> None:
    # Always the same ids, as a Bloom filter takes other words for present with other ids.
    turn = memory.add("Wir haben zwei Häuser im Wald.", decay_class="session", id=str(UUID(int=1)))
    extracted = {"extracted": {"turn": str(turn)}}
    drawn = memory.add("Beide haben rote Dächer.", decay_class="session", metadata=extracted, id=str(UUID(int=2)))
    memory.link(drawn, turn, "PART_OF", at=0)
    memory.decay(2)
    assert memory.demote(at=3.5) == 2
    marked = memory.rows("select id, words::text from deep order by id")
    embed.reset(memory.context)  # so that facts in deep memory are found by their words alone
    search_indexes.reindex(memory.context, day(4))
    assert memory.rows("select id, words::text from deep order by id") == marked
    german = memory.having(language="german")
    assert german.ids("Dach", at=4, deep=True) == []
    search_indexes.reindex(german.context, day(4))
    assert german.ids("Dach", at=4, deep=True) == [drawn]


@pytest.mark.skipif(ON_CITUS, reason="Citus cannot rebuild the words of facts")
def test_a_change_of_the_language_that_deadlocks_with_a_fact_that_sinks_is_done_again(memory: Memory) -> None:
    id_ = memory.add("Beide haben rote Dächer.", decay_class="session")
    memory.decay(2)
    german = memory.having(language="german")
    with ThreadPoolExecutor(1) as pool:
        with connect(memory.context.database_url) as db:
            db.execute("set local deadlock_timeout = '1h'")  # so that the other transaction is ended
            db.execute("select from facts for update")
            rebuilt = pool.submit(search_indexes.reindex, german.context, day(4))
            wait_for(lambda: memory.value(LOCK_WAITS) > 0)
            assert deep.demote(db, [1], [id_]) == 1
        assert rebuilt.result() == 0
    embed.reset(memory.context)  # as above
    assert german.ids("Dach", at=4, deep=True) == [id_]


def test_facts_forgotten_on_request_are_never_demoted(memory: Memory, sunk: UUID) -> None:
    asked = memory.add("A secret.")
    memory.forget(asked, at=3)
    assert memory.demote(at=20) == 0
    assert memory.purge(at=40) == 1
    memory.forget(sunk, at=50)
    assert memory.value("select count(*) from deep") == 0
    assert memory.value("select forgotten_reason from facts") == "asked"


def test_demoted_facts_are_listed_and_restored_unchanged(memory: Memory, sunk: UUID) -> None:
    assert memory.forgotten() == [sunk]
    (outcome,) = memory.restore(sunk, at=20)
    assert outcome.action == "restored"  # type: ignore[union-attr]
    assert memory.ids("Where is the spare key?", at=20) == [sunk]
    assert memory.value("select array[entity, key, tags[1], session #>> '{}'] from facts") == [
        "Mira",
        "key",
        "home",
        "s",
    ]
    assert [what for what, _ in memory.history(sunk, at=20)] == ["stored", "forgotten", "restored"]


@pytest.mark.parametrize("act", ["restored", "purged"])
def test_a_fact_is_restored_or_erased_at_the_moment_it_is_demoted(memory: Memory, act: str) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    memory.decay(2)
    namespace = memory.value("select id from namespaces")
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        assert deep.demote(db, [namespace], [id_]) == 1
        if act == "restored":
            acting = pool.submit(memory.restore, id_, at=4)
        else:
            acting = pool.submit(memory.forget, id_, at=4, purge=True)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.commit()
        (outcome,) = acting.result()
    assert outcome.action == act
    assert memory.value("select count(*) from deep") == 0
    assert memory.value("select count(*) from facts") == (act == "restored")


def test_the_id_of_a_fact_is_known_while_a_purge_demotes_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    memory.decay(2)
    namespace, asked = memory.value("select id from namespaces"), facts._known_by_id

    def then_demoted(*given: Any) -> Any:
        found = asked(*given)
        monkeypatch.undo()
        with connect(memory.context.database_url) as purging:
            assert deep.demote(purging, [namespace], [id_]) == 1
        return found

    monkeypatch.setattr(facts, "_known_by_id", then_demoted)
    with connect(memory.context.database_url) as db:
        assert [*known_by_id(memory.context, db, namespace, [id_])] == [id_]


@pytest.mark.parametrize("moment", ["before", "during"])
def test_the_id_of_a_fact_is_known_while_a_recall_promotes_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, sunk: UUID, moment: str
) -> None:
    namespace, asked = memory.value("select id from namespaces"), facts._known_by_id
    with connect(memory.context.database_url) as reading, ThreadPoolExecutor(1) as pool:

        def then_promoted(*given: Any) -> Any:
            found = asked(*given)
            monkeypatch.undo()
            assert deep.promote(reading, namespace, [sunk]) == [sunk]
            if moment == "before":
                reading.commit()
            return found

        monkeypatch.setattr(facts, "_known_by_id", then_promoted)
        with connect(memory.context.database_url) as db:
            known = pool.submit(known_by_id, memory.context, db, namespace, [sunk])
            wait_for(lambda: known.done() or bool(memory.value(LOCK_WAITS)))
            reading.commit()
            assert [*known.result()] == [sunk]


@pytest.mark.parametrize("asked", [{"deep": True}, {"as_of": day(0.5)}])
def test_a_recall_finds_what_another_promotes_at_the_same_moment(
    memory: Memory, sunk: UUID, asked: dict[str, Any]
) -> None:
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        assert deep.promote(db, memory.value("select id from namespaces"), [sunk]) == [sunk]
        found = pool.submit(memory.ids, "Where does Mira hide the spare key?", at=20, **asked)
        wait_for(lambda: found.done() or bool(memory.value(LOCK_WAITS)))
        db.commit()
        assert found.result() == [sunk]


def test_a_fact_that_is_demoted_while_others_leave_deep_memory_is_known_by_its_id(memory: Memory, sunk: UUID) -> None:
    other = memory.add("The oven is slow.", at=3.6, decay_class="session")
    memory.decay(6)
    with connect(memory.context.database_url) as db:
        namespace = namespaces.id_of(db, "default")
        known = ask_known_by_id(memory.context, db, namespace, [sunk, other])
        assert memory.demote(at=8) == 1
        assert known().keys() == {sunk, other}


def test_deep_memory_is_erased_when_its_owner_says_so(memory: Memory, sunk: UUID) -> None:
    assert memory.forgotten() == [sunk]
    owner = memory.having(deep_days=30)
    assert purge.waiting(owner.context, day(31), None) == 0
    assert purge.waiting(owner.context, day(33), None) == 1
    assert owner.purge(at=33) == 1
    assert memory.value("select count(*) from deep") == 0


def test_an_export_includes_deep_facts_which_are_demoted_again_after_an_import(memory: Memory, twin: Memory) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.", tags=["pet"])
    memory.link(one, two)
    memory.decay(2)
    before = {line["id"]: line for line in memory.archive(3) if "text" in line}
    memory.demote(at=4)
    lines = memory.archive(3)
    after = {line["id"]: line for line in lines if "text" in line}
    for id_, line in before.items():
        assert _coarse(after[id_]) == _coarse(line)
    assert {"kept", "added", "linked"} <= set(twin.import_records(lines, at=5))
    assert twin.forgotten() == [one]
    assert twin.demote(at=6) == 1
    twin.restore(one, at=7)
    assert twin.value("select count(*) from links") == 1


def test_related_rows_of_a_deep_fact_are_exported_as_those_of_other_facts(memory: Memory) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.", decay_class="session")
    memory.store({"text": TEXT, "session": "chat", "turn": 1})
    memory.link(one, two)
    memory.decay(2)
    before = [json_line(line, str) for line in export.export(memory.context, "default", day(3))]
    assert memory.demote(at=4) == 2
    after = [json_line(line, str) for line in export.export(memory.context, "default", day(3))]
    assert [json.loads(one).get("events") for one in after] == [json.loads(one).get("events") for one in before]
    assert after[2:] == before[2:]


def test_deep_facts_with_one_id_in_several_namespaces_are_exported_with_their_own_past(memory: Memory) -> None:
    memory.add(TEXT, decay_class="session")
    memory.import_records(memory.archive(0), 0, "copy")
    memory.store({"text": TEXT, "session": "chat", "turn": 1})
    memory.decay(2)
    assert memory.demote(at=4) == 2
    own = [line for name in ("default", "copy") for line in memory.archive(3, name)]
    assert sorted(memory.archive(3, None), key=str) == sorted(own, key=str)


def test_the_sessions_of_a_deep_fact_come_back_with_it(memory: Memory) -> None:
    known = memory.add(TEXT, decay_class="session")
    memory.store({"text": TEXT, "session": "monday", "turn": 1}, {"text": TEXT, "session": 7})
    said = memory.rows("select fact, id, session, turn, role, said_at from occurrences order by session")
    memory.decay(10)
    assert memory.demote(at=20) == 1
    assert memory.value("select count(*) from occurrences") == 0
    memory.restore(known, at=21)
    assert [fact for fact, *_ in said] == [known, known]
    assert memory.rows("select fact, id, session, turn, role, said_at from occurrences order by session") == said


def test_demoted_facts_are_exported_byte_by_byte_as_after_an_import(memory: Memory, twin: Memory) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.", decay_class="session")
    memory.add("Mira lives in Porto.", decay_class="permanent")
    memory.link(one, two)
    memory.decay(2)
    memory.demote(at=4)
    lines = memory.archive(5)
    twin.import_records(lines, at=5)
    assert twin.demote(at=6) == 2
    assert twin.archive(5) == lines


def _coarse(line: dict[str, Any]) -> dict[str, Any]:
    """Return a record of an export without what deep memory drops or rounds."""
    state = {name: value for name, value in line["state"].items() if name not in {"base", "compared", "halvings"}}
    rough = {name: round(value, 2) for name, value in line.items() if isinstance(value, float)}
    return line | rough | {"state": state, "tombstone_at": None, "salience": 0, "strength": 0, "retention": 0}


def test_links_between_two_deep_facts_come_back_with_the_second(memory: Memory) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.", decay_class="normal")
    memory.link(one, two)
    memory.decay(2)
    memory.demote(at=4)
    memory.decay(30)
    memory.demote(at=40)
    memory.restore(one, at=41)
    assert memory.value("select count(*) from links") == 0
    memory.restore(two, at=41)
    assert memory.value("select count(*) from links") == 1


def test_all_that_a_fact_is_linked_with_is_rewritten_at_once_when_it_leaves_deep_memory(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, *others = [memory.add(f"Mira has {i} cats.", decay_class="session") for i in range(6)]
    for other in others:
        memory.link(one, other)
    memory.decay(2)
    asked, execute = list[Any](), psycopg.Connection.execute

    def noted(db: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(query)
        return execute(db, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", noted)
    with connect(memory.context.database_url) as db:
        tenant = namespaces.id_of(db, "default")
        deep.demote(db, [tenant], [one])
        deep.demote(db, [tenant] * len(others), others)
        deep.promote(db, tenant, [one])
        assert asked.count(deep.REWRITE) == 1
        deep.promote(db, tenant, others)
        assert db.execute("select count(*) from links where source = %s", [one]).fetchone() == (len(others),)


@pytest.mark.parametrize("act", ["demoted", "purged"])
def test_a_fact_is_restored_at_the_moment_at_which_a_linked_one_goes(memory: Memory, act: str) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.", decay_class="session")
    memory.link(one, two)
    memory.decay(2)
    namespace = memory.value("select id from namespaces")
    with connect(memory.context.database_url) as db:
        assert deep.demote(db, [namespace], [one]) == 1
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, namespace, [two])
        if act == "demoted":
            assert deep.demote(db, [namespace], [two]) == 1
        else:
            assert tombstones.erase(db, [namespace], [two]) == 1
        acting = pool.submit(memory.restore, one, at=4)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        db.commit()
        (outcome,) = acting.result()
    assert outcome.action == "restored"
    memory.restore(two, at=5)
    assert memory.value("select count(*) from links") == (act == "demoted")


def test_linked_facts_are_promoted_at_one_moment_without_a_deadlock(memory: Memory) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.")
    memory.link(one, two)
    memory.decay(2)
    assert memory.demote(at=4) == 1
    namespace = memory.value("select id from namespaces")

    def promote(*ids: UUID) -> list[UUID]:
        with transaction(memory.context.database_url) as db:
            return deep.promote(db, namespace, ids)

    with ThreadPoolExecutor(2) as pool, connect(memory.context.database_url) as db:
        activity.lock(db, namespace, [two])
        acting = [pool.submit(promote, one, two)]
        wait_for(lambda: memory.value(LOCK_WAITS) == 1)
        acting.append(pool.submit(promote, one))
        wait_for(lambda: memory.value(LOCK_WAITS) == 2)
        db.commit()
        assert [one.result() for one in acting] == [[one], []]
    assert memory.value("select count(*) from links") == 1


@pytest.mark.parametrize("linked", [False, True])
def test_facts_in_deep_memory_are_locked_in_the_order_of_their_ids(memory: Memory, linked: bool) -> None:
    first, second = UUID(int=2), UUID(int=3)  # whose rows and hashes are in the other order
    for id_ in (second, first):
        memory.add(f"{TEXT} {id_}", id=id_, decay_class="session")
    third = memory.add("Mira has a cat.", decay_class="session")
    for id_ in (first, second):
        memory.link(third, id_)
    memory.decay(2)
    namespace = memory.value("select id from namespaces")
    with connect(memory.context.database_url) as db:
        assert [deep.demote(db, [namespace], [id_]) for id_ in (third, second, first)] == [1, 1, 1]
    promoted = [third] if linked else [first, second]

    def promote() -> list[UUID]:
        with transaction(memory.context.database_url) as db:
            return deep.promote(db, namespace, promoted, waits=False)

    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        db.execute("select from deep where id = %s for update", [first])
        acting = pool.submit(promote)
        wait_for(lambda: acting.done() or bool(memory.value(LOCK_WAITS)))
        assert not acting.done()
        db.execute("select from deep where id = %s for update nowait", [second])
        db.commit()
        assert sorted(acting.result()) == promoted


def test_a_fact_from_deep_memory_is_worth_what_it_was_with_its_links(memory: Memory) -> None:
    one, two = memory.add(TEXT, decay_class="session"), memory.add("Mira has a cat.")
    memory.link(one, two)
    before = memory.value("select worth from activity where fact = %s", one)
    memory.decay(2)
    assert memory.demote(at=4) == 1
    memory.restore(one, at=5)
    assert memory.value("select worth from activity where fact = %s", one) == pytest.approx(before, abs=1e-3)


def test_metadata_comes_out_of_deep_memory_and_archives_as_they_were(memory: Memory, twin: Memory) -> None:
    given = {"zeta": 1e300, "a": -0.0, "much": {"z": [1.0, None], "b": 10**30}}
    id_ = memory.add(TEXT, decay_class="session", metadata=given)
    memory.decay(2)
    assert memory.demote(at=4) == 1
    twin.import_records(memory.archive(4), at=4)
    memory.restore(id_, at=5)
    for each in (memory, twin):
        assert each.value("select metadata::text from facts") == json.dumps(given)


def test_what_is_deep_is_counted_and_known_by_its_id(memory: Memory, sunk: UUID) -> None:
    stats = memory.stats(4)
    assert (stats.facts, stats.forgotten, stats.forgotten_by_reason, stats.deep) == (0, 1, {"faded": 1}, 1)
    assert counting.measure(memory.context, day(20))["forgotten"] == {"faded": 1}
    assert memory.examine(4) == {}
    (again,) = memory.store({"id": str(sunk), "text": TEXT}, at=5)
    assert isinstance(again, Stored)
    assert again.id == sunk


def test_a_branch_has_the_deep_facts_of_its_original_once_and_earlier(memory: Memory, sunk: UUID) -> None:
    branch = branches.begin(memory.context, "default", 10)
    branches.conclude(memory.context, branch, day(5))
    with pytest.raises(branches.StoppedError):
        branches.conclude(memory.context, branch, day(5))
    (one,) = [line for line in memory.archive(5, "default-older-10d") if "text" in line]
    (original,) = [line for line in memory.archive(5) if "text" in line]
    assert (one["id"], one["created_at"]) == (str(sunk), "2024-12-22T00:00:00+00:00")
    assert datetime.fromisoformat(original["expires_at"]) - datetime.fromisoformat(one["expires_at"]) == timedelta(10)


def test_another_embedder_leaves_what_is_deep_to_its_words(memory: Memory, sunk: UUID) -> None:
    embed.reset(memory.context)
    assert memory.value("select count(signature) from deep") == 0
    memory.restore(sunk, at=5)
    assert memory.value("select fidelity from activity") == 0
    embed.embed_pending(memory.context, embed.START, day(5))
    assert memory.value("select fidelity from activity") == 1


def test_an_ordinary_recall_says_how_much_that_fits_is_deep(memory: Memory, sunk: UUID) -> None:
    found = memory.ask("Where does Mira hide the spare key?", at=20)
    assert (found.results, found.deep) == ([], 1)
    assert memory.ask("zqx vvkp", at=20).deep == 0
    assert memory.value("select id from deep") == sunk
    assert signals.counted(memory.context.redis, signals.REGRETS) == {"default": 1}
    memory.add("The oboe is in its case.", at=20)
    assert memory.ask("Where is the oboe?", at=20).deep is None


def test_looks_at_the_past_and_questions_that_measure_are_no_regrets(memory: Memory, sunk: UUID) -> None:
    question = "Where does Mira hide the spare key?"
    assert memory.ask(question, at=20, measures=True).deep == 1
    assert memory.ids(question, at=20, deep=True, measures=True) == [sunk]
    assert memory.ids(question, at=20, as_of=day(0.5)) == [sunk]
    assert memory.ids(question, at=20, known_as_of=day(0.5)) == [sunk]
    assert signals.counted(memory.context.redis, signals.REGRETS) == {}


@pytest.mark.parametrize("packed", [False, True])
def test_a_regret_counts_for_the_namespace_whose_deep_memory_has_the_answer(memory: Memory, packed: bool) -> None:
    memory.add("The oboe is in its case.", namespace="first")
    memory.add(TEXT, namespace="second", decay_class="session")
    memory.decay(2)
    assert memory.demote(at=4 if packed else 2) == packed
    both = ("first", "second")
    for included in (False, True):
        memory.ask("Where does Mira hide the spare key?", at=4, namespace="first", namespaces=both, deep=included)
    assert signals.counted(memory.context.redis, signals.REGRETS) == {"second": 2}


def test_in_a_small_namespace_a_worse_answer_does_not_hide_that_a_better_one_is_deep(memory: Memory) -> None:
    gone = memory.add(TEXT, decay_class="session", category="home")
    live = memory.add("Mira sings in a choir.")
    memory.decay(2)
    for at in (2, 4):  # a tombstone, then packed
        found = memory.ask("Where does Mira hide the spare key?", at=at)
        assert ([one.id for one in found.results], found.deep) == ([live], 1)
        assert memory.demote(at=at) == (at == 4)
    assert memory.ask("Where does Mira hide the spare key?", at=5, category="home").deep == 1
    assert memory.ask("Where does Mira hide the spare key?", at=5, category="work").deep == 0
    assert signals.counted(memory.context.redis, signals.REGRETS) == {"default": 3}
    assert memory.ask("Where does Mira sing?", at=5).deep is None
    assert memory.ids("Where does Mira hide the spare key?", at=5, deep=True)[0] == gone


def test_what_ended_today_or_came_up_for_another_question_counts_as_deep_too(memory: Memory, sunk: UUID) -> None:
    today = memory.add("The red bicycle stands in the cellar.", at=20, decay_class="session")
    memory.decay(22)
    assert memory.ask("Where is the red bicycle?", at=22).deep == 1
    explained = memory.ask("Where is the red bicycle?", at=22, explain=True)
    assert explained.deep == 1
    assert [one["rule"] for one in explained.left_out or ()] == ["forgotten: faded"]
    assert set(memory.ids("Where is the red bicycle or the spare key?", at=22, deep=True)) == {today, sunk}
    assert memory.value("select count(*) from deep") == 0
    assert memory.ask("Where does Mira hide the spare key?", at=22).deep == 1
    memory.forget(today, sunk, at=22)
    assert memory.ask("Where is the red bicycle or the spare key?", at=22).deep == 0


def test_a_deep_recall_finds_what_ended_by_itself_and_nothing_that_was_asked_to_be_forgotten(
    memory: Memory, sunk: UUID
) -> None:
    recent, asked = memory.add("Mira's spare key is red.", at=20, decay_class="session"), memory.add("The key is mine.")
    memory.forget(asked, at=20)
    live = memory.add("Mira has a key ring.", at=25)
    memory.decay(25)
    found = memory.ask("Where does Mira hide the spare key?", at=26, deep=True, min_relevance=0)
    assert {one.id: one.deep for one in found.results} == {sunk: "faded", recent: "faded", live: None}
    assert memory.ids("Where does Mira hide the spare key?", at=26, deep=True, tag="home") == [sunk]
    assert memory.ids("Where does Mira hide the spare key?", at=26) == [live]


def test_of_facts_that_say_the_same_the_live_one_is_found_else_the_one_that_ended_last(memory: Memory) -> None:
    said = {"text": TEXT, "decay_class": "session"}
    first, second = memory.add(**said | {"text": TEXT.upper()}), memory.add(**said, at=5)
    memory.decay(10)
    assert memory.demote(at=12) == 2
    assert memory.ask("Where is Mira's spare key?", at=12, measures=True).deep == 1
    assert memory.ids("Where is Mira's spare key?", at=12, deep=True) == [second]
    third = memory.add(**said, at=12)
    found = memory.ask("Where is Mira's spare key?", at=12, deep=True, explain=True)
    assert [one.id for one in found.results] == [third]
    assert {(one["id"], one["rule"]) for one in found.left_out or ()} == {
        (str(one), "says the same as another fact") for one in (first, second)
    }
    found = memory.ask("Where is Mira's spare key?", at=12, deep=True, why=second)
    assert found.why is not None
    assert found.why["rule"] == "says the same as another fact"
    assert signals.counted(memory.context.redis, signals.REGRETS) == {"default": 1}


def test_an_item_that_ended_is_found_though_another_text_is_in_its_place(memory: Memory) -> None:
    ids = [uuid4() for _ in range(3)]
    texts = ("The boat is moored at pier three.", "The boat is moored at pier four.", "The boat was sold.")
    for at, (id_, text) in enumerate(zip(ids, texts, strict=True)):
        memory.decay(at)
        given = NewItem(path=["boat"], key="place", document="{}", text=text, ttl=60)
        items.put(memory.context, "default", [given], [id_], day(at))
    assert memory.demote(at=4) == 2
    assert set(memory.ids("Where is the boat moored?", at=2, deep=True, min_relevance=0)) == {*ids}
    assert restore.revive(memory.context, "default", ids[:2], day(2))[0] == []


def test_used_deep_facts_become_live_and_the_others_are_demoted_again(memory: Memory, sunk: UUID) -> None:
    other = memory.add("Mira waters the blue flower.", at=3, decay_class="session")
    memory.decay(5)
    memory.demote(at=7)
    assert set(memory.ids("Where is the key behind the flower?", at=20, deep=True, min_relevance=0)) == {sunk, other}
    assert restore.revive(memory.context, "default", [sunk], day(20)) == ([sunk], [sunk])
    assert memory.demote(at=20) == 1
    assert memory.ids("Where is the spare key?", at=20) == [sunk]
    assert memory.value("select details ->> 'by' from events where what = 'restored'") == "recall"
    assert restore.revive(memory.context, "default", [sunk], day(20)) == ([sunk], [sunk]), "a second delivery"
    assert restore.revive(memory.context, "default", [sunk], day(20.1)) == ([], [])


def test_a_deep_fact_whose_use_comes_after_the_pass_that_forgot_it_is_known_since(memory: Memory) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    assert memory.ids("Where is the spare key?", at=2, deep=True) == [id_]
    memory.decay(2.01)
    assert restore.revive(memory.context, "default", [id_], day(2)) == ([id_], [id_])
    known = [memory.ids("Where is the spare key?", at=3, known_as_of=day(at)) for at in (0.5, 2.005, 2.02)]
    assert known == [[id_]] * 3


def test_a_deep_fact_is_as_similar_and_relevant_as_it_was(memory: Memory) -> None:
    memory.store(
        *({"text": f"{TEXT} {more}", "decay_class": "session"} for more in ("", "Not under it.", "She said so."))
    )
    question = "Where is the key to the house?"

    def fit(at: float, *, deep: bool) -> dict[UUID, list[float]]:
        found = memory.ask(question, at=at, deep=deep, explain=True, min_relevance=0).results
        return {one.id: [(one.explain or {})["similarity"], one.relevance or 0.0] for one in found}

    fresh = fit(0, deep=False)
    memory.decay(2)
    assert memory.demote(at=4) == 3
    known = fit(5, deep=True)
    assert known.keys() == fresh.keys()
    for id_, then in fresh.items():
        assert known[id_] == pytest.approx(then, abs=1e-3)


def test_a_question_as_of_before_the_end_finds_facts_demoted_since(memory: Memory, sunk: UUID) -> None:
    assert memory.ids("Where is the spare key?", at=20, as_of=day(20)) == []
    assert memory.ids("Where is the spare key?", at=20, as_of=day(0.5)) == [sunk]
    assert memory.ids("Where is the spare key?", at=20, as_of=day(2)) == []
    assert memory.ids("Where is the spare key?", at=20, known_as_of=day(0.5)) == [sunk]
    assert memory.ids("Where is the spare key?", at=20) == []


@pytest.mark.parametrize("several", [False, True])
def test_why_explains_a_deep_fact_that_no_question_promotes(memory: Memory, sunk: UUID, *, several: bool) -> None:
    memory.add("Noah plays the violin.", at=20, namespace="other")
    names = {"namespaces": ("other", "default")} if several else {}
    found = memory.ask("Who plays the violin?", at=20, why=sunk, **names).why
    assert found is not None
    assert (found["text"], found["recalled"], found["rule"]) == (TEXT, False, "forgotten: faded")


def test_what_was_known_of_an_entity_before_the_end_is_looked_up(memory: Memory, sunk: UUID) -> None:
    for as_of, found in ((20, []), (0.5, [sunk])):
        results, _ = recall.lookup(memory.context, Lookup(entity="Mira", as_of=day(as_of)), day(20))
        assert [one.id for one in results] == found


def test_what_is_deep_is_found_by_pairs_of_characters_before_single_ones(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "藏宝图在阁楼第三块地板下面"
    apart = ", ".join(said)
    memory.store(*({"text": f"{apart}, {number}", "decay_class": "session"} for number in range(20)))
    gone = memory.add(said, decay_class="session")
    memory.add(apart)  # its characters are known, the pairs are not
    memory.decay(2)
    memory.demote(at=4)
    embed.reset(memory.context)
    with transaction(memory.context.database_url) as db:
        words.count(db, memory.value("select id from namespaces"), day(4))
    monkeypatch.setattr("workers.memory.recall.deep.PROMOTED", 5)
    assert memory.ids(said, at=20, deep=True)[0] == gone


def test_the_reply_to_a_deep_fact_is_found_with_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["Where did you put the spare key, Mira?", "Behind the blue flower pot."]
    others = [f"A {thing} costs {number} euros." for number, thing in enumerate(("chair", "lamp") * 10)]
    facts = [{"text": text, "session": 1, "turn": turn} for turn, text in enumerate([*others, *said])]
    stored = memory.store(*(fact | {"decay_class": "session"} for fact in facts))
    memory.decay(2)
    assert memory.demote(at=4) == len(facts)
    monkeypatch.setattr("workers.memory.recall.deep.PROMOTED", 4)
    found = memory.ids("Where is the spare key?", at=20, deep=True, min_relevance=0)
    assert {one.id for one in stored[-2:]} <= set(found)


@pytest.mark.parametrize(
    "given",
    [
        {"tag": "home"},
        {"category": "places"},
        {"role": "tool"},
        {"entity": "MIRA"},
        {"key": "Spare key"},
        {"session": 7},
        {"source": "notes.md"},
    ],
)
def test_filters_apply_before_deep_facts_are_chosen(
    memory: Memory, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.memory.recall.deep.PROMOTED", 2)
    memory.store(*({"text": f"Where is spare key {number}?", "decay_class": "session"} for number in range(6)))
    about = {"tags" if name == "tag" else name: [one] if name == "tag" else one for name, one in given.items()}
    said = memory.add("A spare one hangs by the door, as the key to the cellar does.", decay_class="session", **about)
    memory.decay(2)
    assert memory.demote(at=4) == 7
    assert memory.ids("Where is the spare key?", at=20, deep=True, min_relevance=0, **given) == [said]


def test_a_timeline_has_all_that_deep_memory_knows_of_a_property(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.memory.recall.deep.PROMOTED", 2)
    about = {"entity": "Mira", "key": "weight", "decay_class": "session"}
    memory.store(*(about | {"text": f"Mira weighs {kilos} kg.", "value": str(kilos)} for kilos in range(60, 66)))
    memory.decay(2)
    assert memory.demote(at=4) == 6
    asked = ShowTimeline(namespace="default", entity="mira", key="Weight")
    assert len(history.timeline(memory.context, asked, day(5)).statements) == 6


@pytest.mark.parametrize("text", ["Where is it, then?", "?!", "it " * 300])
def test_a_question_without_informative_words_searches_deep_memory_too(memory: Memory, sunk: UUID, text: str) -> None:
    assert memory.ids(text, at=20, deep=True, min_relevance=0) == [sunk]


def test_without_an_embedder_words_find_what_is_deep(memory: Memory, sunk: UUID) -> None:
    embed.reset(memory.context)
    assert memory.ids("Where does Mira hide the spare key?", at=20, deep=True) == [sunk]


def test_of_a_long_question_the_words_that_only_deep_memory_has_are_searched_first(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.memory.recall.deep.PROMOTED", 5)
    usual = "The old doctor said that mother likes the winter house near the river, visit"
    memory.store(*(f"{usual} {number}." for number in range(5)))
    memory.store(*({"text": f"{usual} {number}.", "decay_class": "session"} for number in range(10, 30)))
    hamster = memory.add("The hamster bit him.", decay_class="session")
    memory.decay(2)
    assert memory.demote(at=3.5) == 21
    search_indexes.count_lexemes(memory.context, "default", day(4))
    embed.reset(memory.context)
    question = "Did the hamster visit the old doctor, who said that mother likes the winter house near the river?"
    assert hamster in memory.ids(question, at=5, deep=True, min_relevance=0, limit=100)


@pytest.mark.parametrize("superseded", [False, True])
def test_a_fact_that_is_restored_while_a_purge_chooses_it_stays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, superseded: bool
) -> None:
    id_ = memory.add(TEXT, decay_class="session")
    if superseded:
        memory.store({"text": "Mira has the spare key.", "supersedes": str(id_)}, at=0.1)
        memory.forget(id_, at=0.2)
    memory.decay(2)
    statement = "CLAIM_OLD" if superseded else "CLAIM_DECAYED"
    waiting = getattr(tombstones, statement).replace(
        "where", "where (select pg_advisory_xact_lock(7) is not null) and", 1
    )
    monkeypatch.setattr(tombstones, statement, waiting)
    with ThreadPoolExecutor(1) as pool, connect(memory.context.database_url) as db:
        db.execute("select pg_advisory_xact_lock(7) from languages")  # on the node of Citus that has the facts
        purging = pool.submit(memory.purge, at=40)
        wait_for(lambda: bool(memory.value(LOCK_WAITS)))
        memory.restore(id_, at=40)
        db.commit()
        assert purging.result() == 0
    assert memory.value("select forgotten_at is null from facts where id = %s", id_) is True
    assert memory.examine(40) == {}


def test_each_deep_fact_of_an_export_is_unpacked_once(memory: Memory) -> None:
    for number in range(30):
        memory.add(f"Mira hides key {number} behind pot {number}.", decay_class="session")
    memory.decay(2)
    assert memory.demote(at=4) == 30
    with connect(memory.context.database_url) as db:
        given = deep.parameters(list(deep.rows(db, None, 100))) | {"namespace": None, "ids": None, "seen_at": None}
        plan = [line for (line,) in db.execute(f"explain (analyze, timing off) {exports.DEEP_ROWS}", given)]
    populated = [line for line in plan if "_populate_record" in line]
    assert len(populated) == 2
    assert all(line.endswith("loops=30)") for line in populated)
