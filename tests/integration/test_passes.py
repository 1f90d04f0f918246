"""Passes of one namespace, and the list of past ones."""

from collections.abc import Callable
from math import inf
from uuid import UUID, uuid4

import pytest
from ebb.contract.decay import ListRuns, Run
from memory import Memory, day

from workers.decay import consolidate, janitor, passes
from workers.errors import InvalidInputError


def listed(memory: Memory, namespace: str, **options: bool) -> list[Run]:
    return passes.latest_runs(memory.context, ListRuns(namespace=namespace, limit=10, **options)).runs


def test_a_pass_of_one_namespace_leaves_the_others_as_they_are(memory: Memory) -> None:
    own = memory.add("A meadow.", namespace="own")
    other = memory.add("A meadow.", namespace="other")
    before = memory.row(other)
    done = memory.decay(100, namespace="own").counters
    assert (done.processed, done.fingerprinted) == (1, 1)
    assert memory.row(own)["tier"] != before["tier"]
    assert memory.row(other) == before


def test_a_dry_run_of_one_namespace_counts_no_other(memory: Memory) -> None:
    for name in ("own", "other", "third"):
        memory.add("A meadow.", namespace=name)
    assert memory.decay(100, namespace="own", dry_run=True).counters.processed == 1
    assert memory.decay(100, dry_run=True).counters.processed == 3


def test_a_pass_of_an_unknown_namespace_does_nothing(memory: Memory) -> None:
    memory.add("A meadow.")
    assert memory.decay(100, namespace="unknown", run=uuid4()).counters.processed == 0
    assert memory.value("select count(*) from namespaces where name = 'unknown'") == 0


def test_forcing_one_namespace_forces_no_other(memory: Memory) -> None:
    for name in ("own", "other"):
        for place in range(30):
            memory.store({"text": f"Meadow number {place}.", "confidence": 0.11}, namespace=name)
    assert memory.decay(400).counters.held == 48
    forced = memory.decay(400, namespace="own", force=True).counters
    assert (forced.processed, forced.forgotten) == (24, 24)
    held = dict(memory.rows("select name, held_since is not null from namespaces where name in ('own', 'other')"))
    assert held == {"own": False, "other": True}


def test_one_namespace_does_not_see_what_passes_did_in_others(memory: Memory) -> None:
    memory.add("A meadow.", namespace="own")
    memory.add("A meadow.", namespace="other")
    memory.decay(50, namespace="own")
    memory.decay(60)
    memory.decay(70, namespace="other")
    runs = listed(memory, "own")
    assert [(run.namespace, run.planned_for) for run in runs] == [(None, day(60)), ("own", day(50))]
    assert [run.processed for run in runs] == [None, 1]
    assert [run.processed for run in listed(memory, "own", everything=True)] == [0, 1, 1]


def test_past_passes_are_listed_page_by_page(memory: Memory) -> None:
    memory.add("A meadow.")
    for at in range(3):
        memory.decay(at)
    first = passes.latest_runs(memory.context, ListRuns(limit=2)).runs
    rest = passes.latest_runs(memory.context, ListRuns(limit=2, before=first[-1].started_at)).runs
    assert [run.planned_for for run in (*first, *rest)] == [day(2), day(1), day(0)]


def test_no_page_leaves_out_a_run_that_began_at_the_instant_of_another(memory: Memory) -> None:
    memory.add("A meadow.")
    for at in range(3):
        memory.decay(at)
    memory.rows("update decay_runs set started_at = now() - interval '1 hour' where planned_for < %s", day(2))
    listed_by_page, before = list[Run](), None
    for _ in range(2):
        page = passes.latest_runs(memory.context, ListRuns(limit=1, before=before))
        listed_by_page, before = [*listed_by_page, *page.runs], page.next
    assert sorted(run.planned_for for run in listed_by_page) == [day(0), day(1), day(2)]


def consolidated(memory: Memory, run: UUID) -> object:
    return consolidate.consolidate(memory.context, "default", run, day(1), inf, apply=True)


def tidied(memory: Memory, run: UUID) -> object:
    return janitor.plan(memory.context, "default", run, day(1))


@pytest.mark.parametrize("goes_on", [consolidated, tidied])
def test_nothing_goes_on_in_a_run_that_was_begun_for_something_else(
    memory: Memory, goes_on: Callable[[Memory, UUID], object]
) -> None:
    ids = [memory.add(f"{who} prefers dark mode in every editor") for who in ("The user", "User")]
    memory.decay(0, run=(run := uuid4()))
    with pytest.raises(InvalidInputError, match="begun for something else"):
        goes_on(memory, run)
    assert memory.rows("select id from facts where forgotten_at is null order by created_at, id") == [
        (id_,) for id_ in sorted(ids)
    ]
    goes_on(memory, own := uuid4())
    goes_on(memory, own)
