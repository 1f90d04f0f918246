"""The curve of a fact agrees with reads and passes at each instant; neighbours agree with links."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.reports import ShowCurve, ShowNeighbours
from memory import Memory, day

from api.http.dashboard.facts import drawing
from workers import graph
from workers.admin import export
from workers.core.decay_intervals import PACKED
from workers.errors import NotFoundError
from workers.memory import curve
from workers.memory.add import Stored

DAY = 86_400


def drawn(memory: Memory, id_: UUID, at: float) -> dict[str, Any]:
    return curve.curve(memory.context, ShowCurve(id=id_), day(at))


def exported(memory: Memory, id_: UUID, at: float) -> dict[str, Any]:
    return next(row for row in export.export(memory.context, "default", day(at)) if row.get("id") == id_)


@pytest.mark.parametrize("decay_class", [None, "permanent", "stable", "short"])
def test_a_curve_is_what_an_export_has_at_each_instant(memory: Memory, decay_class: str | None) -> None:
    id_ = memory.add("The brook is low.", decay_class=decay_class, importance=0.7)
    memory.touch(id_, at=1)
    found = drawn(memory, id_, 1)
    assert found["since"] == found["now"] == day(1).timestamp()
    now = found["at"].index(found["since"])
    for i in range(now, len(found["at"]), 24):
        row = exported(memory, id_, (found["at"][i] - day(0).timestamp()) / DAY)
        assert found["salience"][i] == pytest.approx(row["salience"], abs=1e-9)
        assert found["confidence"][i] == pytest.approx(row["effective_confidence"], abs=1e-9)


def test_passes_make_the_changes_of_the_curve_when_it_predicts_them(memory: Memory) -> None:
    id_ = memory.add("The brook is low.", salience=0.9)
    changes = [one for one in drawn(memory, id_, 0)["changes"] if one["what"] != "culled"]
    assert {"warm", "cold", "pooled to 1/2", "fingerprinted"} <= {one["what"] for one in changes}
    for change in changes:
        at = (change["at"] - day(0).timestamp()) / DAY
        memory.decay(at - 0.001)
        before = exported(memory, id_, at - 0.001)
        memory.decay(at + 0.001)
        after = exported(memory, id_, at + 0.001)
        assert (before["tier"], before["fidelity"], before["dims"]) != (after["tier"], after["fidelity"], after["dims"])
        assert change["what"].split()[0] in (after["tier"], after["fidelity"], f"{after['fidelity']}ed")


def test_a_fact_ends_when_its_curve_says_so(memory: Memory) -> None:
    id_ = memory.add("The brook is low.", decay_class="session")
    found = drawn(memory, id_, 0)
    ends = (found["ends_at"] - day(0).timestamp()) / DAY
    assert found["changes"][-1]["what"] == found["ends_for"]
    assert found["until"] > found["ends_at"]
    memory.decay(ends - 0.001)
    assert exported(memory, id_, ends)["forgotten_at"] is None
    memory.decay(ends + 0.001)
    assert exported(memory, id_, ends)["forgotten_reason"] == found["ends_for"]


def test_intervals_of_an_archive_after_the_last_use_do_not_multiply_the_points_of_a_curve(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    used = int(day(0).timestamp())
    packed = b"".join(PACKED.pack(at, at, 100, 1) for at in (used + 100_000, used - 1))
    memory.rows("update activity set spells = %s", packed)
    found = drawn(memory, id_, 1)
    assert (found["from"], found["since"]) == (used - 1, used)
    assert len(found["at"]) < 1_000
    assert len(found["hits"]) == 1


def test_a_change_before_all_times_is_shown_at_the_last_use(memory: Memory) -> None:
    id_ = memory.add("We met at the brook.", kind="episodic", durability="persistent")
    memory.rows("update activity set encoded_at = null")
    found = drawn(memory, id_, 1)
    assert found["changes"] == [{"at": found["since"], "what": "aged", "past": True}]


def test_a_pinned_fact_keeps_its_level_until_the_pin_ends(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    memory.pin(id_, at=1, until=50)
    found = drawn(memory, id_, 20)
    pinned = [level for at, level in zip(found["at"], found["salience"], strict=True) if at <= day(50).timestamp()]
    assert found["pinned"]
    assert max(pinned) == min(pinned) == found["strength"]
    assert found["salience"][-1] < found["strength"]


def test_a_fact_pinned_without_end_never_ends(memory: Memory) -> None:
    id_ = memory.add("The brook is low.", decay_class="session")
    memory.pin(id_, at=0.1)
    found = drawn(memory, id_, 3)
    assert found["ends_at"] is None
    assert not [one for one in found["changes"] if one["what"] in ("expired", "faded", "culled")]


@pytest.mark.parametrize("until", [None, 50])
def test_a_pinned_fact_keeps_its_confidence_on_the_curve_as_in_an_export(memory: Memory, until: float | None) -> None:
    id_ = memory.add("The brook is low.", confidence=0.8)
    memory.pin(id_, at=1, until=until)
    found = drawn(memory, id_, 20)
    at = found["at"].index(found["now"])
    assert found["confidence"][at] == exported(memory, id_, 20)["effective_confidence"] == 0.8


def test_a_forgotten_fact_has_a_curve_and_one_of_another_namespace_has_none(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    memory.forget(id_, at=1)
    assert drawn(memory, id_, 2)["at"]
    memory.add("The tide is out.", namespace="other")
    for namespace in ("other", "unknown"):
        with pytest.raises(NotFoundError):
            curve.curve(memory.context, ShowCurve(id=id_, namespace=namespace), day(2))
    with pytest.raises(NotFoundError):
        drawn(memory, uuid4(), 2)


def around(memory: Memory, id_: UUID, most: int = 20, namespace: str = "default") -> dict[str, Any]:
    return graph.neighbours(memory.context, ShowNeighbours(id=id_, most=most, namespace=namespace), day(2))


def test_neighbours_are_those_of_the_strongest_links_and_what_links_them(memory: Memory) -> None:
    middle, *others = [memory.add(f"Boat number {number}.") for number in range(5)]
    for number, other in enumerate(others):
        source, target = (middle, other) if number % 2 else (other, middle)
        memory.link(source, target, "PART_OF", 1 - number * 0.1, at=1)
    memory.link(others[0], others[1], "CAUSED_BY", 0.5, at=1)
    memory.link(others[2], others[3], "CAUSED_BY", 0.5, at=1)
    found = around(memory, middle, most=3)
    assert {one["id"] for one in found["facts"]} == {str(other) for other in others[:3]}
    assert [(one["type"], one["strength"]) for one in found["links"]] == [
        ("PART_OF", 1.0), ("PART_OF", 0.9), ("PART_OF", 0.8), ("CAUSED_BY", 0.5),
    ]  # fmt: skip
    assert found["total"] == 4


def test_forgotten_neighbours_are_not_there(memory: Memory) -> None:
    one, two, three = (memory.add(f"Boat number {number}.") for number in range(3))
    for other, strength in ((two, 1.0), (three, 0.5)):
        memory.link(one, other, strength=strength, at=1)
    memory.forget(two, at=1)
    found = around(memory, one, most=1)
    assert [fact["id"] for fact in found["facts"]] == [str(three)]
    assert [link["target"] for link in found["links"]] == [str(three)]


def test_a_fact_of_another_namespace_or_of_none_has_no_neighbours(memory: Memory) -> None:
    one = memory.add("Boat number one.")
    for id_, namespace in ((one, "other"), (uuid4(), "default")):
        with pytest.raises(NotFoundError, match="it never was, or it was purged"):
            around(memory, id_, namespace=namespace)


def test_a_fact_in_deep_memory_has_its_curve_and_its_neighbours(memory: Memory) -> None:
    one, two = memory.add("The brook is low.", decay_class="session"), memory.add("The mill is old.")
    memory.link(one, two)
    memory.decay(2)
    changes, before = drawn(memory, one, 5)["changes"], around(memory, one)
    assert [fact["id"] for fact in before["facts"]] == [str(two)]
    assert memory.demote(at=4) == 1
    assert around(memory, one) == before
    assert memory.demote(at=4) == 1
    assert drawn(memory, one, 5)["changes"] == changes


def test_what_took_its_place_is_a_neighbour(memory: Memory) -> None:
    old = memory.add("The boat is red.")
    (stored,) = memory.store({"text": "The boat is blue.", "supersedes": str(old)}, at=1)
    assert isinstance(stored, Stored)
    new = stored.id
    for middle, other in ((old, new), (new, old)):
        found = around(memory, middle)
        assert [fact["id"] for fact in found["facts"]] == [str(other)]
        (link,) = found["links"]
        assert (link["source"], link["target"], link["type"]) == (str(new), str(old), "SUPERSEDES")


def test_the_links_of_a_fact_are_counted_whether_they_are_shown_or_lead_to_forgotten_facts(memory: Memory) -> None:
    old, other = memory.add("The boat is red."), memory.add("The boat leaks.")
    (stored,) = memory.store({"text": "The boat is blue.", "supersedes": str(old)}, at=1)
    assert isinstance(stored, Stored)
    for target, kind in ((old, "SUPERSEDES"), (old, "PART_OF"), (other, "PART_OF")):
        before = around(memory, stored.id)
        assert before["total"] == len(before["links"])
        memory.link(stored.id, target, kind, at=1)
    memory.forget(other, at=1.5)
    found = around(memory, stored.id)
    assert (len(found["facts"]), len(found["links"]), found["total"]) == (1, 2, 3)
    assert drawing(str(stored.id), found)["left_out"] == 1


def test_what_was_superseded_is_no_neighbour_once_it_is_forgotten(memory: Memory) -> None:
    old = memory.add("The boat is red.")
    (stored,) = memory.store({"text": "The boat is blue.", "supersedes": str(old)}, at=1)
    assert isinstance(stored, Stored)
    memory.forget(old, at=1.5)
    assert around(memory, stored.id) == {"facts": [], "links": [], "total": 0}
    memory.restore(old, at=1.7)
    assert [fact["id"] for fact in around(memory, stored.id)["facts"]] == [str(old)]
