"""The value rank in the database equals the core's, and is updated when its inputs change."""

import math
from uuid import UUID

import numpy as np
import pytest
from ebb.contract.graph import Link, Unlink
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory import Memory, day

from workers import graph
from workers.core import tiers
from workers.core.value import Standing, rank, value
from workers.memory import estimate
from workers.storage import activity, namespaces
from workers.storage.activity import Activity
from workers.storage.connection import transaction

RANK = """
    select value_rank(
        fact_worth(%s::real, %s, %s::bigint), %s::float8, %s::integer, to_timestamp(%s), null, %s::integer, %s::integer
    )
"""


def rows(memory: Memory, *ids: UUID) -> Activity:
    with transaction(memory.context.database_url) as db:
        tenant = namespaces.find(db, "default")
        assert tenant is not None
        return activity.read(db, tenant.id, list(ids))


def ranks(memory: Memory) -> dict[UUID, float]:
    return dict(memory.rows("select fact, value_rank from anchors"))


@given(
    st.tuples(*[st.floats(0, 1, width=32)] * 3),
    st.tuples(*[st.integers(0, 2**31 - 1)] * 4),
    st.floats(0, 4e9),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_database_computes_the_same_as_the_core(
    memory: Memory, shares: tuple[float, ...], counts: tuple[int, ...], seen_at: float
) -> None:
    (content, importance, base), (links, coactivations, shown, used) = shares, counts
    ((found,),) = memory.rows(RANK, content, importance, links, base, coactivations, seen_at, shown, used)
    strength = tiers.strength(np.array([base]), np.array([coactivations]))
    arrays = [np.array([one]) for one in (content, importance)]
    standing = Standing(*arrays, strength, *(np.array([one]) for one in (seen_at, shown, used, links)))
    assert found == pytest.approx(float(rank(standing)[0]), rel=1e-6, abs=1e-5)


def test_stated_used_confirmed_linked_and_important_facts_have_more_value(memory: Memory) -> None:
    much = memory.add("I moved to Porto in March 2024 and work as a nurse now.")
    little = memory.add("Wow, that's great!")
    before = ranks(memory)
    assert before[little] < before[much]
    graph.link(memory.context, Link(source=much, target=little, type="RELATED_TO"), day(0))
    linked = ranks(memory)
    assert all(linked[id_] > before[id_] for id_ in (much, little))
    graph.unlink(memory.context, Unlink(source=much, target=little))
    assert ranks(memory) == before
    memory.reinforce(little, at=0, boost=0)
    assert ranks(memory)[little] > before[little]


def test_new_estimates_count_in_the_value(memory: Memory) -> None:
    id_ = memory.add("Wow, that's great!")
    before = rows(memory, id_).value_rank
    memory.rows("update facts set content_salience = 1")
    estimate.estimate_again(memory.context, "default", day(0))
    assert rows(memory, id_).value_rank == pytest.approx(before)
    memory.rows("update facts set content_salience = null")
    memory.rows("update activity set worth = 0")
    estimate.fill(memory.context)
    assert rows(memory, id_).value_rank == pytest.approx(before)
    assert value(before, day(0).timestamp())[0] < value(before + 1, day(0).timestamp())[0]


def test_a_pin_without_end_is_worth_most(memory: Memory) -> None:
    id_ = memory.add("Wow, that's great!")
    memory.pin(id_, at=0)
    assert math.isinf(rows(memory, id_).value_rank[0])


@pytest.mark.parametrize("name", ["strength", "salience", "importance"])
def test_the_smallest_number_is_stored_as_any_other(memory: Memory, name: str) -> None:
    id_ = memory.add("Tea at four.", **{name: 5e-324})
    assert math.isfinite(ranks(memory)[id_])
