"""Columns: PostgreSQL receives packed arrays as the values that they were made of."""

from uuid import UUID

import numpy as np
import pytest

from tests.integration.memory import Memory
from workers.storage import columns
from workers.storage.columns import Column
from workers.storage.connection import transaction

IDS = [UUID(int=0), UUID(int=2**64 + 7), UUID(int=2**128 - 1)]
HALVES = [np.array([[0.5, -1.0]], np.float32), np.array([[0.25], [2.0]], np.float32)]


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        (columns.bools(np.array([True, False])), "bool[]", [True, False]),
        (columns.ints(np.array([1, -7])), "int[]", [1, -7]),
        (columns.ints([]), "int[]", []),
        (columns.bigints([2**40, -1]), "bigint[]", [2**40, -1]),
        (columns.floats(np.array([0.1, -np.inf, np.inf])), "float8[]", [0.1, -np.inf, np.inf]),
        (columns.uuids(IDS), "uuid[]", IDS),
        (columns.uuids([]), "uuid[]", []),
        (
            columns.bits(np.array([[255, 1], [0, 128]], np.uint8)),
            "bit(16)[]",
            ["1" * 8 + "0" * 7 + "1", "0" * 8 + "1" + "0" * 7],
        ),
    ],
)
def test_a_column_arrives_as_it_was(memory: Memory, column: Column, kind: str, values: list[object]) -> None:
    with transaction(memory.context.database_url) as db:
        assert db.execute(f"select %s::{kind}", [column]).fetchone() == (values,)  # type: ignore[call-overload]


def test_vectors_of_several_dims_arrive_in_their_order(memory: Memory) -> None:
    with transaction(memory.context.database_url) as db:
        column = columns.halfvecs(db, HALVES)
        assert db.execute("select %s::halfvec[]::text", [column]).fetchone() == ('{"[0.5,-1]",[0.25],[2]}',)


@pytest.mark.parametrize("rows", [[[0.1, -np.inf]], [[1.5, 2.0], [np.nan, -0.0]], [[], []]])
def test_arrays_are_read_as_they_were_sent(memory: Memory, rows: list[list[float]]) -> None:
    with transaction(memory.context.database_url) as db:
        sent = [db.execute("select array_send(%s::float8[])", [row], binary=True).fetchone() for row in rows]
    found = columns.floats_of([one[0] for one in sent if one], len(rows[0]))
    np.testing.assert_array_equal(found, np.array(rows).reshape(len(rows), -1))
