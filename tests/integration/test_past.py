"""The past of a curve equals the exports at each instant; it is bounded and stored."""

import json
from typing import Any
from uuid import UUID

import pytest
from ebb.contract.reports import ShowCurve
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.admin import export, import_archive
from workers.core import decay_intervals
from workers.memory import curve, touch
from workers.validation.archived import archived

DAY = 86_400
bounded = examples(15)


def drawn(memory: Memory, id_: UUID, at: float) -> dict[str, Any]:
    return curve.curve(memory.context, ShowCurve(id=id_), day(at))


def salience(memory: Memory, id_: UUID, at: float) -> float:
    return next(row["salience"] for row in export.export(memory.context, "default", day(at)) if row["id"] == id_)


def height(found: dict[str, Any], at: float) -> float:
    """Return the interpolated value of a curve at an instant."""
    instants, heights, instant = found["at"], found["salience"], day(at).timestamp()
    after = next(i for i, one in enumerate(instants) if one >= instant)
    if after == 0:
        return heights[0]
    share = (instant - instants[after - 1]) / (instants[after] - instants[after - 1])
    return heights[after - 1] + share * (heights[after] - heights[after - 1])


@bounded
@given(gaps=st.lists(st.floats(0.01, 60), min_size=1, max_size=20), strength=st.floats(0.05, 1))
def test_the_past_of_a_curve_is_what_was_exported_at_each_instant(
    memory: Memory, gaps: list[float], strength: float
) -> None:
    memory.rows("truncate facts cascade")
    id_, at, exported = memory.add("The brook is low.", strength=strength), 0.0, []
    for gap in gaps:
        exported.append((at + gap / 2, salience(memory, id_, at + gap / 2)))
        at += gap
        memory.touch(id_, at=at)
    found = drawn(memory, id_, at)
    first = max(0.0, (found["from"] - day(0).timestamp()) / DAY)
    for when, high in exported:
        if when > first:
            assert height(found, when) == pytest.approx(high, abs=0.02)
    assert found["at"] == sorted(set(found["at"]))
    assert len(found["hits"]) == min(len(gaps), decay_intervals.MOST)
    assert found["whole"] == (len(gaps) < decay_intervals.MOST)
    assert found["hits"][-1]["at"] == found["since"] == pytest.approx(day(at).timestamp())
    assert all(hit["after"] >= hit["before"] for hit in found["hits"])
    ends = [band["until"] for band in found["tiers"]]
    assert [found["from"], *ends[:-1]] == [band["from"] for band in found["tiers"]]


def test_touches_that_come_again_or_out_of_order_are_one_spell(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    for at in (3, 3, 1, 5, 3, 5):
        memory.touch(id_, at=at)
    assert [hit["at"] for hit in drawn(memory, id_, 6)["hits"]] == [day(3).timestamp(), day(5).timestamp()]


def test_a_curve_as_of_years_before_the_last_use_is_in_order_and_reaches_beyond_that_use(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    memory.touch(id_, at=3)
    found = drawn(memory, id_, -4_000)
    assert found["at"] == sorted(set(found["at"]))
    assert found["at"][-1] == found["until"] > found["since"]


def test_an_unused_fact_has_no_past_and_keeps_nothing(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    memory.decay(40)
    found = drawn(memory, id_, 40)
    assert (found["hits"], found["whole"], found["from"]) == ([], True, found["since"])
    assert memory.value("select spells from activity") is None


def test_a_fact_that_is_used_a_thousand_times_keeps_no_more_than_its_newest_spells(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    for number in range(1, 41):
        memory.touch(id_, at=number)
    found = drawn(memory, id_, 41)
    assert [hit["at"] for hit in found["hits"]] == [day(number).timestamp() for number in range(25, 41)]
    assert memory.value("select length(spells) from activity") == decay_intervals.LONGEST


def test_what_is_pinned_stays_at_its_height_in_the_past(memory: Memory) -> None:
    id_ = memory.add("The brook is low.", strength=0.4)
    memory.pin(id_, at=0, until=50)
    memory.touch(id_, at=60)
    found = drawn(memory, id_, 60)
    assert height(found, 49) == pytest.approx(0.4, abs=1e-4)
    assert height(found, 58) < 0.4
    assert found["tiers"][0] == {"tier": "warm", "from": day(0).timestamp(), "until": found["tiers"][0]["until"]}
    assert found["tiers"][0]["until"] > day(50).timestamp()


def test_reinforcing_and_restoring_are_uses_and_pinning_is_none(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    touch.reinforce(memory.context, "default", id_, 0.2, day(1))
    memory.pin(id_, at=2)
    memory.unpin(id_, at=3)
    memory.forget(id_, at=4)
    memory.restore(id_, at=5)
    assert [hit["at"] for hit in drawn(memory, id_, 6)["hits"]] == [day(1).timestamp(), day(5).timestamp()]


def test_confidence_is_drawn_only_where_it_is_known(memory: Memory) -> None:
    id_ = memory.add("The brook is low.", decay_class="stable")
    memory.touch(id_, at=10)
    found = drawn(memory, id_, 20)
    believed = dict(zip(found["at"], found["confidence"], strict=True))
    assert believed[day(0).timestamp()] is None
    assert believed[day(10).timestamp()] == 1


def test_an_archive_restores_the_past(memory: Memory, twin: Memory) -> None:
    id_ = memory.add("The brook is low.")
    for at in (1, 3, 9):
        memory.touch(id_, at=at)
    lines = [json.loads(json.dumps(line, default=str)) for line in export.export(memory.context, "default", day(10))]
    import_archive.import_records(
        twin.context, "default", [archived(line, 65_536) for line in lines if "text" in line], day(10)
    )
    assert drawn(twin, id_, 10) == drawn(memory, id_, 10)


@pytest.mark.parametrize("wrong", ["00", "\\x00", "\\x" + "00" * 11 * 17, "\\x" + "zz" * 11])
def test_an_archive_with_another_past_is_refused(memory: Memory, wrong: str) -> None:
    id_ = memory.add("The brook is low.")
    (line,) = [one for one in export.export(memory.context, "default", day(1)) if one.get("id") == id_]
    line = json.loads(json.dumps(line, default=str))
    line["state"]["spells"] = wrong
    with pytest.raises(Exception, match="spells"):
        archived(line, 65_536)


def test_nothing_of_the_past_outlives_a_purge(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    memory.touch(id_, at=1)
    memory.forget(id_, at=2, purge=True)
    assert memory.value("select count(*) from activity") == 0
