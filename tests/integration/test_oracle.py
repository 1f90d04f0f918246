"""The oracle of `make chaos` checks every table and finds each wrong row."""

import random
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from memory import Memory
from psycopg import sql
from psycopg.rows import dict_row

from tests.chaos import load, oracle, rows
from tests.chaos.cells import ACKNOWLEDGED, KINDS, NAMESPACES, Author, Cell, Step
from tests.chaos.oracle import Verdict
from tests.chaos.replaying import replay
from tests.chaos.rows import KEYS, NOT_COMPARED, SUMMED
from workers.admin import stats
from workers.context import Context

TABLES = """
    select relname from pg_class where relkind = 'r' and relnamespace = quote_ident(current_schema())::regnamespace
"""
ADD_CHANGE = "insert into tally_changes (namespace, tier, facts) values (1, 0, 3)"
CELLS = 32
COUNTED = "(select id from namespaces where name ~ '^(fading|deep)-')"
ONE_ROW = dict.fromkeys((*KEYS, *SUMMED), "select ctid from {} limit 1") | {
    "decay_runs": f"select ctid from {{}} where namespace in {COUNTED} limit 1",
    "decay_parts": f"select ctid from {{}} where changed > 0 and run in "
    f"(select id from decay_runs where namespace in {COUNTED}) limit 1",
}


def acted_out(context: Context, seed: int) -> list[Cell]:
    """Run the operations of a load without faults; return its cells."""
    author = Author(0, random.Random(seed), load.ticking(), most_facts=12)
    cells = []
    for place in range(CELLS):
        cells.append(cell := author.cell(place))
        for task, arguments in author.plan(cell):
            cell.steps.append(step := Step(task, arguments, author.uuid(), ACKNOWLEDGED))
            replay(context, cell, step)
    return cells


def test_every_table_is_compared_or_is_named_with_the_reason_why_not(memory: Memory) -> None:
    there = {table for (table,) in memory.rows(TABLES)}
    known = [*KEYS, *SUMMED, *NOT_COMPARED]
    assert sorted(known) == sorted(there)
    assert all(NOT_COMPARED.values())


@pytest.mark.slow
def test_equal_histories_give_equal_states_and_one_wrong_row_of_any_table_is_found(
    memory: Memory, twin: Memory
) -> None:
    memory, twin = (each.having(forget_limit=1.0) for each in (memory, twin))  # as the servers of chaos have it
    cells, until = acted_out(memory.context, 1), datetime.now(UTC)
    assert {cell.kind for cell in cells} == set(KINDS)
    oracle.finish(memory.context, cells, until)
    verdict = oracle.judge([memory.context.database_url], twin.context, cells, until)
    assert verdict.faults == 0, verdict
    should = rows.rows([twin.context.database_url])
    stats.settle_tallies(memory.context, until)
    with psycopg.connect(memory.context.database_url, row_factory=dict_row) as db:
        for table, row in ONE_ROW.items():
            with db.transaction(force_rollback=True):
                db.execute("set local session_replication_role = replica")  # so that nothing goes with it
                name, one = sql.Identifier(table), sql.SQL(row)
                removal = sql.SQL("delete from {} where ctid = ({})").format(name, one.format(name))
                assert db.execute(ADD_CHANGE if table == "tally_changes" else removal).rowcount == 1, table
                found = Verdict()
                oracle.compare(found, rows.read(db), should, {})
            assert any(f"('{SUMMED.get(table, table)}'" in fault for fault in _all(found)), table
    assert rows.rows([memory.context.database_url]) == should


def test_what_two_shards_have_is_found(memory: Memory) -> None:
    memory.store("Ann has a bicycle.")
    url = memory.context.database_url
    should, both, found = rows.rows([url]), rows.rows([url, url]), Verdict()
    oracle.compare(found, both, should, {})
    assert {key[1] for key in both if key[0] == rows.BOTH} >= {"facts", "activity", "namespaces", "vectors", "tallies"}
    assert len(found.doubled) == len(found.doubled + found.lost + found.torn) > 0


def test_what_one_cell_did_to_a_namespace_is_not_taken_for_what_another_did(memory: Memory, twin: Memory) -> None:
    """Whether either was stored is unknown; the first one was, and the namespace's rows show it, too."""
    cells, until = [], datetime.now(UTC)
    for place in (1, 2):
        fact = {"id": str(UUID(int=place)), "text": f"Stone {place}.", "session": "s", "turn": place}
        arguments = {"facts": [fact], "classify": False, "now": until.isoformat(), "namespace": NAMESPACES[0]}
        step = Step("memory.store_many", arguments, str(UUID(int=place)))
        cells.append(Cell(NAMESPACES[0], [fact["id"]], f"cell {place}", steps=[step]))
    replay(memory.context, cells[0], cells[0].steps[0])
    oracle.finish(memory.context, cells, until)
    verdict = oracle.judge([memory.context.database_url], twin.context, cells, until)
    assert (verdict.faults, verdict.uncertain, verdict.happened) == (0, 2, 1), verdict


def _all(found: Verdict) -> list[str]:
    return [*found.lost, *found.doubled, *found.decayed_twice, *found.torn]
