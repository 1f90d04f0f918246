"""Weights of relations follow from the last observation and the instant; faded ones are hidden but not deleted."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from ebb.contract.decay import ListRuns
from ebb.contract.graph import DecayRelations, Edge, ListRelations, Relations, RelationsDecayed, Unrelate
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day, wait_for

from workers import graph
from workers.decay.passes import latest_runs
from workers.errors import InvalidInputError
from workers.storage import relations as table
from workers.storage.connection import transaction

WAITING = "select count(*) from pg_locks where locktype = 'advisory' and not granted"

WEIGH = """
    select relation_weight(initial, to_timestamp(0), false, to_timestamp(days * 86400), half_life)
    from unnest(%s::float8[], %s::float8[], %s::float8[]) as given (initial, days, half_life)
"""

bounded = examples(20)
shares = st.floats(0, 1, allow_subnormal=False)
cases = st.tuples(shares, st.floats(-1_000, 1e6), st.floats(0.01, 36_525))


def relate(
    memory: Memory,
    source: str = "Alex",
    target: str = "ProjectAlpha",
    kind: str = "works_on",
    *,
    at: float = 0,
    namespace: str = "default",
    **given: Any,
) -> Edge:
    return memory.relate(source, target, kind, at=at, namespace=namespace, **given)


def test_two_first_observations_at_once_in_two_spellings_make_one_relation(memory: Memory) -> None:
    relate(memory, "Mira", "Alex")
    with ThreadPoolExecutor(1) as pool, transaction(memory.context.database_url) as db:
        table.observe(db, 1, "Zo\u00eb", "Alex", "works_on", day(0))
        second = pool.submit(relate, memory, "ZOE", "Alex")
        wait_for(lambda: memory.value(WAITING) == 1)
        db.commit()
        assert second.result().source == "Zo\u00eb"
    assert len(stored(memory)) == 2


def test_two_spellings_of_one_name_have_no_relation(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match="needs two different entities"):
        relate(memory, "Stra\u00dfe", "STRASSE")


def listed(memory: Memory, at: float, **asked: Any) -> Relations:
    return graph.relations(memory.context, ListRelations(**asked), day(at))


def weights(memory: Memory, at: float, **asked: Any) -> dict[str, float]:
    return {one.target: one.weight for one in listed(memory, at, **asked).edges}


def passed(memory: Memory, at: float, *, namespace: str | None = None, **options: Any) -> Any:
    reach = {"everywhere": True} if namespace is None else {"namespace": namespace}
    rest, done = graph.decay(memory.context, DecayRelations(**reach, **options), day(at))
    assert rest is None
    return done


def counters(done: RelationsDecayed) -> tuple[int, ...]:
    return done.processed, done.decayed, done.below_minimum, done.newly_below, done.pinned


def stored(memory: Memory) -> list[Any]:
    return memory.rows(
        "select source, target, weight, initial_weight, last_observed, pinned from relations order by id"
    )


@pytest.mark.parametrize(("days", "weight"), [(0, 1.0), (45, 0.7071), (90, 0.5), (180, 0.25), (298, 0.1008)])
def test_the_documented_weights_come_out(memory: Memory, days: float, weight: float) -> None:
    relate(memory)
    assert weights(memory, days) == {"ProjectAlpha": pytest.approx(weight, abs=5e-5)}


@given(st.lists(cases, min_size=1, max_size=50))
@bounded
def test_weights_are_those_of_the_formula(memory: Memory, given: list[tuple[float, float, float]]) -> None:
    found = [weight for (weight,) in memory.rows(WEIGH, *(list(column) for column in zip(*given, strict=True)))]
    true = [initial * 0.5 ** min(max(days, 0) / half, 500) for initial, days, half in given]
    assert found == pytest.approx(true, rel=1e-9, abs=1e-100)
    assert all(0 <= weight <= initial for weight, (initial, _, _) in zip(found, given, strict=True))


def test_exactly_the_minimum_is_in_use_and_less_is_not(memory: Memory) -> None:
    relate(memory, weight=0.1)
    assert weights(memory, 0) == {"ProjectAlpha": 0.1}
    assert weights(memory, 0, decayed=True) == {}
    assert weights(memory, 0.001) == {}
    assert set(weights(memory, 0.001, decayed=True)) == {"ProjectAlpha"}


def test_what_has_faded_is_kept_and_recovers_when_it_is_observed_again(memory: Memory) -> None:
    relate(memory)
    passed(memory, 400)
    assert weights(memory, 400) == {}
    assert weights(memory, 400, decayed=True) == {"ProjectAlpha": pytest.approx(0.5 ** (400 / 90), abs=5e-5)}
    assert relate(memory, at=400).weight == 1.0
    assert weights(memory, 400, decayed=True) == {}
    assert weights(memory, 490) == {"ProjectAlpha": pytest.approx(0.5)}


def test_an_observation_sets_the_weight_that_is_given_or_the_full_one(memory: Memory) -> None:
    assert relate(memory, weight=0.4).weight == 0.4
    assert weights(memory, 90) == {"ProjectAlpha": pytest.approx(0.2)}
    assert relate(memory, at=90).weight == 1.0
    assert relate(memory, at=100, weight=0).weight == 0.0


def test_case_makes_no_other_relation_but_the_type_does(memory: Memory) -> None:
    relate(memory)
    relate(memory, "ALEX", "projectalpha")
    relate(memory, kind="leads")
    assert memory.value("select count(*) from relations") == 2


@pytest.mark.parametrize(("first", "second"), [("Zo\u00eb", "ZOE\u0308"), ("Ναός", "ΝΑΌΣ"), ("Straße", "STRASSE")])
def test_other_spellings_of_a_name_make_no_other_relation(memory: Memory, first: str, second: str) -> None:
    relate(memory, first, "Alex")
    archive = memory.archive()
    assert relate(memory, second, "Alex", at=90).source == first
    relate(memory, "Alex", second)
    relate(memory, "Alex", first, at=90)
    assert [(row[0], row[1], row[3]) for row in stored(memory)] == [(first, "Alex", 1.0), ("Alex", second, 1.0)]
    assert weights(memory, 90) == {"Alex": 1.0, second: 1.0}
    memory.rows("delete from relations")
    relate(memory, second, "Alex")
    respelt = memory.archive()
    memory.import_records(archive)
    assert [row[0] for row in stored(memory)] == [second]
    memory.rows("delete from relations")
    memory.import_records([*archive, *respelt])
    assert [row[0] for row in stored(memory)] == [first]
    relation = Unrelate(source=first, target="alex", type="works_on")
    assert [graph.unrelate(memory.context, relation).removed for _ in range(2)] == [1, 0]


def test_an_observation_that_comes_late_changes_nothing(memory: Memory) -> None:
    relate(memory, at=10)
    before = stored(memory)
    assert relate(memory, at=5, weight=0.2, pinned=True).weight == 1.0
    assert stored(memory) == before


def test_a_relation_fades_from_its_stated_observation(memory: Memory) -> None:
    seen = relate(memory, at=90, last_observed=day(0))
    assert (seen.weight, seen.last_observed) == (pytest.approx(0.5), day(0).date())
    relate(memory, at=95, last_observed=day(-10))
    assert weights(memory, 90) == {"ProjectAlpha": pytest.approx(0.5)}
    with pytest.raises(InvalidInputError, match=r"observation at .* lies ahead of now.*; leave it out"):
        relate(memory, at=95, last_observed=day(96))


def test_a_pass_over_relations_is_noted_once_among_the_runs(memory: Memory) -> None:
    relate(memory, namespace="a")
    relate(memory, namespace="b")
    asked = DecayRelations(namespace="a")
    rest, done = graph.decay(memory.context, asked, day(90))
    for _ in range(2):
        graph.note(memory.context, asked, done, UUID(int=7), day(90), 12.5, scheduled=False)
    (noted,) = latest_runs(memory.context, ListRuns(namespace="a")).runs
    assert (rest, noted.id, noted.work, noted.namespace) == (None, UUID(int=7), "relations", "a")
    assert (noted.processed, noted.changed, noted.duration_ms, noted.scheduled) == (1, 1, 12.5, False)
    assert noted.finished_at is not None
    assert latest_runs(memory.context, ListRuns(namespace="b")).runs == []


def test_two_schedules_of_one_minute_are_one_run(memory: Memory) -> None:
    relate(memory)
    asked = DecayRelations(everywhere=True)
    _, done = graph.decay(memory.context, asked, day(90))
    for number in (1, 2):
        graph.note(memory.context, asked, done, UUID(int=number), day(90), 1.0, scheduled=True)
    assert [one.id for one in latest_runs(memory.context, ListRuns(everything=True)).runs] == [UUID(int=1)]


def test_a_pinned_relation_keeps_its_weight_until_it_is_no_longer_pinned(memory: Memory) -> None:
    relate(memory, weight=0.6, pinned=True)
    assert weights(memory, 5_000) == {"ProjectAlpha": 0.6}
    assert counters(passed(memory, 5_000)) == (1, 0, 0, 0, 1)
    assert (relate(memory, at=5_000).weight, relate(memory, at=5_000).pinned) == (0.6, True)
    assert relate(memory, at=5_000, pinned=False).weight == 0.6
    assert weights(memory, 5_090) == {"ProjectAlpha": pytest.approx(0.3)}


def test_a_pinned_relation_below_the_minimum_is_out_of_use_and_can_be_seen(memory: Memory) -> None:
    relate(memory, weight=0.05, pinned=True)
    assert (weights(memory, 1), weights(memory, 1, decayed=True)) == ({}, {"ProjectAlpha": 0.05})
    assert counters(passed(memory, 1)) == (1, 0, 1, 0, 1)


def test_a_pass_counts_all_what_changed_what_is_below_and_what_is_pinned(memory: Memory) -> None:
    relate(memory, target="old")
    relate(memory, target="recent", at=399.9999)
    relate(memory, target="middle", at=350)
    relate(memory, target="fixed", pinned=True)
    assert counters(passed(memory, 400)) == (4, 2, 1, 1, 1)
    assert counters(passed(memory, 400)) == (4, 0, 1, 0, 1)


def test_a_dry_run_names_what_would_change_and_changes_nothing(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    relate(memory, target="old")
    relate(memory, target="fixed", pinned=True)
    before = stored(memory)
    done = passed(memory, 400, dry_run=True)
    assert (counters(done), [one.target for one in done.edges]) == ((2, 1, 1, 1, 1), ["old"])
    monkeypatch.setattr(graph, "MOST_PREVIEWED", 0)
    assert passed(memory, 400, dry_run=True).edges == []
    assert stored(memory) == before


@given(st.lists(st.tuples(st.floats(0, 500), shares, st.booleans()), min_size=1, max_size=12), st.data())
@bounded
def test_passes_at_any_moments_any_number_of_times_change_no_weight_that_a_reader_sees(
    memory: Memory, observed: list[tuple[float, float, bool]], data: st.DataObject
) -> None:
    memory.rows("truncate relations")
    for place, (at, weight, pinned) in enumerate(observed):
        relate(memory, target=str(place), at=at, weight=weight, pinned=pinned)
    before = {**weights(memory, 600), **weights(memory, 600, decayed=True)}
    for at in data.draw(st.lists(st.floats(0, 900), max_size=5)):
        passed(memory, at)
    assert {**weights(memory, 600), **weights(memory, 600, decayed=True)} == before
    once = passed(memory, 600)
    assert once.processed == len(observed)
    assert once.decayed <= once.processed - once.pinned
    assert once.below_minimum == len(weights(memory, 600, decayed=True))
    settled = stored(memory)
    assert passed(memory, 600).decayed == 0
    assert stored(memory) == settled


def test_small_steps_are_counted_when_they_have_added_up(memory: Memory) -> None:
    relate(memory, weight=0.05)
    counted = sum(passed(memory, at).decayed for at in range(1, 91))
    assert 0 < counted < 90
    assert memory.value("select weight from relations") == pytest.approx(0.025, abs=1e-3)


def test_what_falls_below_the_minimum_in_small_steps_is_counted_once(memory: Memory) -> None:
    relate(memory)
    assert sum(passed(memory, at / 4).newly_below for at in range(1150, 1250)) == 1


def test_a_pass_goes_on_batch_by_batch(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "BATCH", 3)
    for place in range(10):
        relate(memory, target=str(place), namespace="ab"[place % 2])
    assert counters(passed(memory, 90)) == (10, 10, 0, 0, 0)
    assert counters(passed(memory, 180, namespace="a")) == (5, 5, 0, 0, 0)
    assert counters(passed(memory, 180, namespace="unknown")) == (0, 0, 0, 0, 0)


def test_what_is_observed_while_a_pass_writes_keeps_its_new_weight(memory: Memory) -> None:
    relate(memory)
    relate(memory, at=100)
    passed(memory, 90)
    assert memory.value("select weight from relations") == 1.0


def test_two_namespaces_with_equal_entities_never_mix(memory: Memory) -> None:
    relate(memory, namespace="a")
    relate(memory, namespace="b", weight=0.3, pinned=True)
    passed(memory, 90, namespace="a")
    assert weights(memory, 90, namespace="a") == {"ProjectAlpha": pytest.approx(0.5)}
    assert weights(memory, 90, namespace="b") == {"ProjectAlpha": 0.3}
    assert listed(memory, 90, namespace="c").edges == []
    relation = Unrelate(source="alex", target="PROJECTALPHA", type="works_on", namespace="a")
    assert [graph.unrelate(memory.context, relation).removed for _ in range(2)] == [1, 0]
    assert weights(memory, 90, namespace="b") == {"ProjectAlpha": 0.3}


def test_relations_of_an_entity_at_either_end_are_listed_strongest_first(memory: Memory) -> None:
    relate(memory)
    relate(memory, "ProjectAlpha", "OldFramework", "uses", weight=0.5)
    relate(memory, "Bea", "Cello", "plays")
    found = listed(memory, 0, entity="projectalpha")
    assert [(one.source, one.target, one.weight) for one in found.edges] == [
        ("Alex", "ProjectAlpha", 1.0),
        ("ProjectAlpha", "OldFramework", 0.5),
    ]
    assert (found.total, listed(memory, 0, limit=1).total) == (2, 3)


@pytest.mark.parametrize("half_life", [1.0, 365.0])
def test_the_half_life_and_the_minimum_are_what_is_set(memory: Memory, half_life: float) -> None:
    other = memory.having(relation_half_life=half_life, relation_minimum=0.5)
    relate(other)
    assert weights(other, half_life) == {"ProjectAlpha": 0.5}
    assert weights(other, half_life + timedelta(seconds=60) / timedelta(days=1)) == {}
