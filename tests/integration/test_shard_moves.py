"""A namespace is moved to another shard while it is in use: nothing is lost or doubled, whenever the move is killed."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from citus import holder
from ebb.contract.decay import ListRuns
from ebb.contract.facts import Edit
from ebb.contract.retention import Forget
from memory import LOCK_WAITS, ON_CITUS, SHARDS, Memory, day, wait_for

from workers.admin import branches, keys
from workers.admin import shard_moves as moves
from workers.admin.export import export
from workers.decay import janitor, passes
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.memory import edit, embed, facts, forget
from workers.storage import branches as tables
from workers.storage import limits, namespaces, routing, schema, shard_moves, tombstones, words
from workers.storage.connection import close_pools, transaction

pytestmark = pytest.mark.long

STEPS = ("copied", "caught up", "shown", "switched", "left")
TWO_STEPS = ("caught up", "switched")
"""One before the namespace is read at its new place, and one after."""

LAST = UUID(int=2**128 - 1)
"""An id that comes after all others."""


class KilledError(Exception):
    """The end of a process."""


def fill(memory: Memory) -> None:
    """Give `ann` rows in every table, and another namespace on each shard rows too."""
    for shard in range(SHARDS):
        name = next(f"other-{number}" for number in range(100) if routing_of(f"other-{number}") == shard)
        with memory.context.at(name):
            memory.store(f"{name} is not moved.", namespace=name)
    with memory.context.at("ann"):
        ids = [memory.add(f"Ann has bicycle number {number}.", namespace="ann") for number in range(20)]
        memory.link(ids[0], ids[1], namespace="ann")
        for session in ("chat", "call"):
            memory.store({"text": "Ann has bicycle number 7.", "session": session, "turn": 1}, namespace="ann")
        memory.relate("Ann", "Bob", namespace="ann")
        memory.forget(ids[2], at=1, namespace="ann")
        memory.touch(*ids[3:6], at=2, namespace="ann")
        memory.store({"text": "Ann waits.", "decay_class": "checkpoint"}, namespace="ann")
        memory.decay(3, namespace="ann")
        memory.demote(at=60, namespace="ann")


def routing_of(name: str) -> int:
    with routing.at(0, SHARDS):
        return routing.shard_of_new(name)


def contents(memory: Memory, name: str | None = "ann") -> list[str]:
    return sorted(str(one) for one in export(memory.context, name, day(70)))


def said_again(memory: Memory, name: str = "ann") -> list[tuple[str, Any]]:
    """Return the texts that were said again, and in which sessions, as an export has them."""
    lines = list(export(memory.context, name, day(70)))
    texts = {line["id"]: line["text"] for line in lines if "text" in line}
    said = [line["occurrence"] for line in lines if "occurrence" in line]
    return sorted((texts[one["fact"]], one["session"]) for one in said)


def counts(memory: Memory) -> dict[str, Any]:
    with memory.context.at("ann"):
        found = memory.stats(70, namespace="ann")
    return {"facts": found.facts, "forgotten": found.forgotten_by_reason, "deep": found.deep, "tiers": found.tiers}


def sound(memory: Memory) -> bool:
    return all(memory.examine(70) == {} for _ in memory.context.each_shard())


def killed_at(step: str) -> Callable[[str], None]:
    def meanwhile(reached: str) -> None:
        if reached == step:
            raise KilledError

    return meanwhile


def test_a_move_keeps_everything(sharded: Memory) -> None:
    fill(sharded)
    before, counted = contents(sharded), counts(sharded)
    assert said_again(sharded) == [("Ann has bicycle number 7.", session) for session in ("call", "chat")]
    key = keys.create(sharded.context, "ann", ["read"], None, day(0))
    for new in (0, 1, 2, 0):
        done = moves.move(sharded.context, "ann", new)
        assert (done.new, done.old == new) == (new, False)
        assert contents(sharded) == before
        assert counts(sharded) == counted
        assert sound(sharded)
        assert [one.id for one in keys.of_namespace(sharded.context, "ann")] == [key.id]
    assert [one.namespaces for one in moves.listed(sharded.context)] == [2, 1, 1]
    assert moves.move(sharded.context, "ann", 0).rows == 0
    with sharded.context.at("ann"):
        sharded.relate("Bob", "Eve", namespace="ann")
        assert sharded.ids("bicycle number 7", namespace="ann")


def test_what_changes_while_rows_are_copied_is_moved_too(sharded: Memory) -> None:
    fill(sharded)
    expected: list[list[str]] = []

    def meanwhile(step: str) -> None:
        if step != "copied":
            return
        with sharded.context.at("ann"):
            first, second, third = sharded.ids("bicycle number 8 9 10", namespace="ann")[:3]
            sharded.touch(first, at=70, namespace="ann")
            sharded.forget(second, at=70, namespace="ann")
            sharded.forget(third, at=70, namespace="ann", purge=True)
            sharded.purge(at=71, namespace="ann")
            sold = {"text": "Ann sold all others.", "metadata": {"z": -0.0, "a": 1e300}}
            sharded.store("Ann has bicycle number 2.", sold, at=70, namespace="ann")
            sharded.relate("Ann", "Bob", at=70, namespace="ann")
            sharded.store({"text": "Ann has bicycle number 6.", "session": "call"}, at=70, namespace="ann")
            forgetting = Forget(namespace="ann", session="chat")
            forget.forget_subject(sharded.context, forgetting, day(71), uuid4(), float("inf"))
        expected.append(contents(sharded))

    moves.move(sharded.context, "ann", 1, meanwhile)
    assert contents(sharded) == expected[0]
    assert said_again(sharded) == [(f"Ann has bicycle number {number}.", "call") for number in (6, 7)]
    assert sound(sharded)


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_move_has_moved_everything_or_nothing(sharded: Memory, step: str) -> None:
    fill(sharded)
    before, counted = contents(sharded), counts(sharded)
    with pytest.raises(KilledError):
        moves.move(sharded.context, "ann", 1, killed_at(step))
    assert contents(sharded) == before
    with sharded.context.at("ann"):
        sharded.store("Ann rings.", at=70, namespace="ann")
    done = moves.move(sharded.context, "ann", 1)
    assert done.old == (1 if step in {"switched", "left"} else routing_of("ann"))
    assert len(contents(sharded)) == len(before) + 1
    assert counts(sharded)["facts"] == counted["facts"] + 1
    assert sound(sharded)
    assert [one.namespaces for one in moves.listed(sharded.context)] == [1, 2, 1]


def test_a_cleaning_deletes_old_rows_that_a_killed_move_left(sharded: Memory) -> None:
    fill(sharded)
    with pytest.raises(KilledError):
        moves.move(sharded.context, "ann", 1, killed_at("left"))
    context = sharded.context
    with context.at(routing_of("ann")), transaction(context.database_url) as db:
        gap = "update namespaces set gap_until = %s where name = 'ann (moved)'"
        assert db.execute(gap, [day(900)]).rowcount == 1
        db.execute("insert into erasures (namespace) select id from namespaces where name = 'ann (moved)'")
    assert len(contents(sharded, None)) == len({*contents(sharded, None)})
    assert [one for one in contents(sharded, None) if "(moved)" in one] == []
    seen = [
        facts.namespaces(context, "", 100),
        janitor.due(context, day(900)),
        janitor.due(context, day(900), uncompared=True),
    ]
    for _ in context.each_shard():
        with transaction(context.database_url) as db:
            seen += [namespaces.all_names(db), words.grown_tenfold(db), limits.gaps_waiting(db)]
            seen.append(tombstones.erasures(db)[1])
    assert not [name for names in seen for name in names if " " in name]
    assert branches.listed(context, None) == []
    assert moves.finish(sharded.context) == 1
    assert moves.finish(sharded.context) == 0
    for number in (0, 2):
        with sharded.context.at(number), transaction(sharded.context.database_url) as db:
            assert db.execute("select count(*) from facts where text like 'Ann%'").fetchone() == (0,)


def test_a_pass_that_began_before_a_move_is_finished_while_the_old_rows_are_deleted(sharded: Memory) -> None:
    fill(sharded)
    context, run = sharded.context, uuid4()
    with context.at("ann"):
        parts = passes.plan(context, run, day(400), namespace="ann")
    with pytest.raises(KilledError):
        moves.move(context, "ann", 1, killed_at("left"))
    with context.at("ann"):
        for part in parts:
            passes.apply(context, part, lambda: None)
        report = passes.finish(context, run)
    assert parts
    assert report.finished
    found = passes.latest_runs(context, ListRuns(everything=True)).runs
    assert [one.namespace for one in found if one.id == run] == ["ann"]


@pytest.mark.slow
def test_writes_and_reads_go_on_during_moves(sharded: Memory) -> None:
    fill(sharded)
    _ = sharded.context.rules
    over, stored, answers = Event(), list[str](), list[int]()

    def write() -> None:
        while not over.is_set():
            text = f"Line {len(stored)} of the log is written."
            with sharded.context.at("ann"):
                sharded.store(text, at=70, namespace="ann")
            stored.append(text)

    def read() -> None:
        while not over.is_set():
            with sharded.context.at("ann"):
                answers.append(len(sharded.ask("bicycle number 7", at=70, namespace="ann").results))

    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(write), pool.submit(read)]
        try:
            for new in (1, 0, 2, 1):
                reached = len(stored)
                while len(stored) < reached + 3 and not any(task.done() for task in tasks):
                    Event().wait(0.01)
                assert moves.move(sharded.context, "ann", new).new == new
        finally:
            over.set()
        for task in tasks:
            task.result()
    assert min(answers) > 0
    texts = [one["text"] for one in export(sharded.context, "ann", day(70)) if "Line" in one.get("text", "")]
    assert sorted(texts) == sorted(stored)
    assert sound(sharded)


END_SESSIONS = (
    "select pg_terminate_backend(pid, 60000) from pg_stat_activity where pid <> pg_backend_pid() and datname = %s"
)


@pytest.mark.parametrize(
    "step", [pytest.param(one, marks=[pytest.mark.deep] * (one not in TWO_STEPS)) for one in STEPS]
)
def test_a_move_whose_server_ends_says_what_to_do(sharded: Memory, step: str) -> None:
    fill(sharded)
    before = contents(sharded)

    def meanwhile(reached: str) -> None:
        if reached == step:
            with psycopg.connect(sharded.context.database_url, autocommit=True) as db:
                db.execute(END_SESSIONS, [db.info.dbname])

    new = (routing_of("ann") + 1) % SHARDS
    if step == "left" and ON_CITUS:
        with suppress(UnavailableError):  # all is done; whether its session notices the end is a matter of time
            moves.move(sharded.context, "ann", new, meanwhile)
    elif step in {"switched", "left"} and not ON_CITUS:
        moves.move(sharded.context, "ann", new, meanwhile)  # all is done; what is left is deleted in new sessions
    else:
        with pytest.raises(UnavailableError, match=rf"Nothing is lost: .* run `ebb shards move ann {new}` again"):
            moves.move(sharded.context, "ann", new, meanwhile)
    close_pools()
    assert contents(sharded) == before
    assert moves.move(sharded.context, "ann", new).new == new
    assert contents(sharded) == before
    assert sound(sharded)


@pytest.mark.skipif(not ON_CITUS, reason="EBB_TEST_CITUS_URL names no cluster")
@pytest.mark.parametrize("end", ["source", "target"])
@pytest.mark.parametrize("step", STEPS)
def test_a_move_whose_node_is_killed_says_what_to_do_and_can_be_repeated(sharded: Memory, step: str, end: str) -> None:
    fill(sharded)
    before, counted, old = contents(sharded), counts(sharded), routing_of("ann")
    nodes = [holder(sharded.context.database_url, one.schema_name) for one in moves.listed(sharded.context)]
    new = next(shard for shard in range(SHARDS) if nodes[shard].data != nodes[old].data)
    node = nodes[old if end == "source" else new]

    def meanwhile(reached: str) -> None:
        if reached == step:
            node.kill()

    said = rf"Nothing is lost: .* run `ebb shards move ann {new}` again"
    try:
        with pytest.raises(UnavailableError, match=said):
            moves.move(sharded.context, "ann", new, meanwhile)
        with pytest.raises(UnavailableError, match=said):
            moves.move(sharded.context, "ann", new)
    finally:
        node.start()
        close_pools()
    assert contents(sharded) == before
    with sharded.context.at("ann"):
        sharded.store("Ann rings.", at=70, namespace="ann")
    assert moves.move(sharded.context, "ann", new).new == new
    assert len(contents(sharded)) == len(before) + 1
    assert counts(sharded)["facts"] == counted["facts"] + 1
    assert sound(sharded)
    assert sum(one.namespaces for one in moves.listed(sharded.context)) == SHARDS + 1


def test_an_error_of_a_statement_is_not_called_an_interruption(sharded: Memory) -> None:
    fill(sharded)

    def meanwhile(_: str) -> None:
        with transaction(sharded.context.database_url) as db:
            db.execute("select from no_such_table")

    with pytest.raises(psycopg.errors.UndefinedTable):
        moves.move(sharded.context, "ann", (routing_of("ann") + 1) % SHARDS, meanwhile)
    assert sound(sharded)


TIMES = 14
GROW = """
    insert into events (namespace, fact, at, what, details)
    select namespace, fact, at, what, jsonb_build_object('note', repeat('n', %s))
    from (select * from events limit 1) as one, generate_series(1, %s)
"""


# 280 MB in one value are refused: it may take 256 MB
@pytest.mark.parametrize(
    ("large", "piece"), [(1_000, 3_000), pytest.param(20_000_000, 1 << 24, marks=pytest.mark.deep)]
)
def test_large_changes_while_rows_are_copied_are_read_in_pieces(
    sharded: Memory, large: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_moves, "PIECE_CHARACTERS", piece)
    fill(sharded)

    def meanwhile(step: str) -> None:
        if step == "copied":
            with sharded.context.at("ann"), transaction(sharded.context.database_url) as db:
                assert db.execute(GROW, [large, TIMES]).rowcount == TIMES

    new = (routing_of("ann") + 1) % SHARDS
    moves.move(sharded.context, "ann", new, meanwhile)
    with sharded.context.at(new), transaction(sharded.context.database_url) as db:
        found = db.execute("select sum(length(details ->> 'note')) from events").fetchone()
    assert found == (large * TIMES,)
    assert sound(sharded)


@pytest.mark.parametrize("piece", [1, 1 << 24])
def test_what_a_fact_said_before_an_edit_may_be_said_by_another_one_meanwhile(
    sharded: Memory, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_moves, "PIECE_CHARACTERS", piece)
    door = {"text": "The code of the door.", "entity": "door", "key": "code", "value": "1111"}
    with sharded.context.at("ann"):
        sharded.store(door | {"id": LAST}, namespace="ann")
    expected: list[list[str]] = []

    def meanwhile(step: str) -> None:
        if step == "copied":
            with sharded.context.at("ann"):
                edit.edit(sharded.context, Edit(id=LAST, value="2222", namespace="ann"), day(1))
                sharded.store(door, at=2, namespace="ann")
            expected.append(contents(sharded))

    moves.move(sharded.context, "ann", (routing_of("ann") + 1) % SHARDS, meanwhile)
    assert contents(sharded) == expected[0]
    assert len(sharded.listed(at=3, namespace="ann")) == 2
    assert sound(sharded)


def test_pieces_are_small_and_have_every_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_moves, "PIECE_CHARACTERS", 10)
    rows = ["aaaa", "bbbb", "cccc", "d" * 20, "e"]
    assert list(shard_moves._pieces(rows)) == [["aaaa", "bbbb"], ["cccc"], ["d" * 20], ["e"]]


def test_two_moves_at_once_are_refused(sharded: Memory) -> None:
    fill(sharded)

    def meanwhile(step: str) -> None:
        if step == "copied":
            with pytest.raises(UnavailableError, match="another move"):
                moves.move(sharded.context, "ann", 0)

    assert moves.move(sharded.context, "ann", 1, meanwhile).new == 1


def test_what_cannot_be_moved_is_refused(sharded: Memory) -> None:
    fill(sharded)
    context = sharded.context
    with pytest.raises(NotFoundError, match="there is no 'nobody'"):
        moves.move(context, "nobody", 1)
    with pytest.raises(InvalidInputError, match=r"EBB_SHARDS=3 has no shard 3, only 0 to 2.*then raise EBB_SHARDS"):
        moves.move(context, "ann", 3)
    with context.at("ann"):
        made = branches.begin(context, "ann", 30)
    with pytest.raises(InvalidInputError, match="'ann' has branches"):
        moves.move(context, "ann", 1)
    with pytest.raises(InvalidInputError, match="is a branch, and branches stay with their original"):
        moves.move(context, made.name, 1)


def test_a_shard_that_is_not_counted_or_has_no_schema_is_refused(sharded: Memory) -> None:
    fill(sharded)
    context = sharded.context
    with context.at(0), transaction(context.database_url) as db:
        db.execute("insert into directory (name, shard) values ('lost', 7)")
    with pytest.raises(InvalidInputError, match=r"'lost' is on shard 7 by the directory.* EBB_SHARDS=8 or more"):
        moves.move(context, "lost", 1)
    more = sharded.having(shards=8).context
    with pytest.raises(InvalidInputError, match=r"shard 7 has no schema .*: run `ebb migrate` with EBB_SHARDS=8"):
        moves.move(more, "lost", 1)
    with pytest.raises(InvalidInputError, match="shard 5 has no schema"):
        moves.move(more, "ann", 5)


@pytest.mark.parametrize(
    "other", ["update languages set name = 'german' returning name", "delete from embedders returning name"]
)
def test_a_shard_of_another_language_or_embedder_is_refused(sharded: Memory, other: str) -> None:
    fill(sharded)
    new = next(shard for shard in range(SHARDS) if shard != routing_of("ann"))
    with routing.at(new, SHARDS), transaction(sharded.context.database_url) as db:
        db.execute(other)
    with pytest.raises(InvalidInputError, match="has another language or embedder: start a worker"):
        moves.move(sharded.context, "ann", new)
    assert len(contents(sharded)) > 1


def test_a_reset_of_vectors_waits_for_a_move_and_finds_what_it_moved(sharded: Memory) -> None:
    fill(sharded)
    moves.move(sharded.context, "ann", 1)
    other = sharded.having(max_vector_dim=128)
    with ThreadPoolExecutor(1) as pool:

        def meanwhile(step: str) -> None:
            if step == "copied":
                resets.append(pool.submit(embed.reset, other.context))
                wait_for(lambda: sharded.value(LOCK_WAITS) > 0)

        resets: list[Future[int]] = []
        moves.move(sharded.context, "ann", 0, meanwhile)
        assert resets[0].result() > 0
    for _ in sharded.context.each_shard():
        assert sharded.value("select count(*) from activity where fidelity <> 0") == 0
        assert sharded.value("select count(*) from deep where signature is not null") == 0


def test_facts_fade_by_the_rules_of_their_new_shard(sharded: Memory) -> None:
    fill(sharded)
    new = next(shard for shard in range(SHARDS) if shard != routing_of("ann"))
    sharded = sharded.having(confidence_half_life=5.0)
    moves.move(sharded.context, "ann", new)
    with sharded.context.at("ann"):
        sharded.decay(4)
        assert sharded.examine(4, namespace="ann") == {}


def test_an_added_shard_is_the_next(sharded: Memory) -> None:
    assert moves.add(sharded.context) == SHARDS
    schema.verify_at(sharded.context.database_url, SHARDS + 1)


def test_of_each_table_it_is_settled_whether_a_move_copies_it() -> None:
    known = {"facts", *tables.OF_FACTS, *tables.BETWEEN_FACTS, *tables.OF_NAMESPACES, *tables.DROPPED}
    assert known - {*shard_moves.MOVED} == {"tallies", "tally_changes"}
