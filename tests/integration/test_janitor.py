"""The janitor processes the due facts of one namespace and reports the changes since its last run."""

from uuid import UUID, uuid4

import pytest
from ebb.contract.decay import Janitor
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.decay import janitor, passes
from workers.decay.consolidate import compare
from workers.memory.add import Stored

FADED = 200
"""Days after which a fact of confidence 0.2 is no longer believed, and one of 1.0 still is."""


def tidied(memory: Memory, at: float, namespace: str = "default", run: UUID | None = None) -> Janitor:
    run = run or uuid4()
    for part in janitor.plan(memory.context, namespace, run, day(at)):
        passes.apply(memory.context, part, lambda: None)
    return janitor.conclude(memory.context, namespace, run, day(at))


def doubtful(memory: Memory, count: int, namespace: str = "default", prefix: str = "Rumour") -> set[UUID]:
    facts = [{"text": f"{prefix} number {number}.", "confidence": 0.2} for number in range(count)]
    return {one.id for one in memory.store(*facts, namespace=namespace) if isinstance(one, Stored)}


def test_it_culls_facts_of_too_low_confidence_and_lists_them(memory: Memory) -> None:
    kept, ids = memory.add("Certainty."), doubtful(memory, 3)
    done = tidied(memory, FADED)
    assert (set(done.lastCulledFactIds), done.lastCulledFacts, done.totalRuns) == (ids, 3, 1)
    assert done.lastRunAt == day(FADED)
    assert (done.lastCulledEpisodeIds, done.lastMarkedStaleEpisodeIds) == ([], [])
    assert memory.rows("select id, forgotten_reason from facts where forgotten_at is not null order by id") == [
        (id_, "culled") for id_ in sorted(ids)
    ]
    assert memory.row(kept)["forgotten_at"] is None
    assert janitor.last(memory.context, "default") == done


def test_only_its_namespace_is_passed_over(memory: Memory) -> None:
    ours, theirs = doubtful(memory, 2, "ours"), doubtful(memory, 2, "theirs")
    assert set(tidied(memory, FADED, "ours").lastCulledFactIds) == ours
    assert memory.value("select count(*) from facts where forgotten_at is not null") == 2
    assert janitor.last(memory.context, "theirs").totalRuns == 0
    assert set(tidied(memory, FADED, "theirs").lastCulledFactIds) == theirs
    assert set(janitor.last(memory.context, "ours").lastCulledFactIds) == ours


def test_its_facts_are_left_as_a_pass_leaves_them(memory: Memory, twin: Memory) -> None:
    state = """
        select text, forgotten_reason, forgotten_at, tier, fidelity, halvings, ends_at::text, due_at::text
        from facts join activity on fact = id order by text
    """
    for one in (memory, twin):
        doubtful(one, 5)
        for number, name in enumerate(("stable", "session", None)):
            one.add(f"Tea with guest {number}.", decay_class=name)
    for at in (10, 67.5, FADED):
        tidied(memory, at)
        twin.decay(at)
        assert memory.rows(state) == twin.rows(state)


def test_each_run_reports_changes_and_continues_the_count(memory: Memory) -> None:
    doubtful(memory, 3)
    tidied(memory, FADED)
    later = doubtful(memory, 2, prefix="Hearsay")
    done = tidied(memory, FADED + 1)
    assert (set(done.lastCulledFactIds), done.lastCulledFacts, done.totalRuns) == (later, 2, 2)
    done = tidied(memory, FADED + 2)
    assert (done.lastCulledFactIds, done.lastCulledFacts, done.totalRuns) == ([], 0, 3)


def test_what_passes_culled_since_the_last_run_is_reported_by_the_next(memory: Memory) -> None:
    first = doubtful(memory, 3)
    memory.decay(FADED)
    assert set(tidied(memory, FADED + 1).lastCulledFactIds) == first
    memory.forget(memory.add("Asked for.", at=FADED), at=FADED + 1.5)
    memory.add("Expired.", at=FADED, decay_class="session")
    later = doubtful(memory, 2, prefix="Hearsay")
    episode = memory.add("The wedding.", kind="episodic")
    memory.decay(FADED + 9)
    assert memory.demote(at=FADED + 11) > 3
    done = tidied(memory, FADED + 12)
    assert (set(done.lastCulledFactIds), done.lastCulledEpisodeIds) == (later, [episode])


def test_a_run_that_comes_again_changes_nothing(memory: Memory) -> None:
    doubtful(memory, 3)
    run = uuid4()
    done = tidied(memory, FADED, run=run)
    assert tidied(memory, FADED, run=run) == done
    assert memory.value("select total_runs from janitors") == 1


def test_ids_are_capped_and_all_are_counted(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(janitor, "MOST_IDS", 3)
    ids = doubtful(memory, 5)
    done = tidied(memory, FADED)
    assert (len(done.lastCulledFactIds), done.lastCulledFacts) == (3, 5)
    assert set(done.lastCulledFactIds) < ids


def test_it_stops_at_the_forget_limit_as_every_pass_does(memory: Memory) -> None:
    doubtful(memory, 30)
    assert tidied(memory, FADED).lastCulledFacts == 6
    assert tidied(memory, FADED + 1).lastCulledFacts == 0
    memory.decay(FADED + 2, force=True)
    assert tidied(memory, FADED + 3).lastCulledFacts == 24


def test_an_unknown_namespace_has_no_janitor(memory: Memory) -> None:
    assert janitor.plan(memory.context, "unknown", uuid4(), day(0)) == []
    assert janitor.conclude(memory.context, "unknown", uuid4(), day(0)).totalRuns == 0
    assert janitor.last(memory.context, "unknown").totalRuns == 0


def test_namespaces_with_something_new_or_due_are_untidy(memory: Memory) -> None:
    for name in ("b", "a", "c"):
        memory.add("Tea at four.", namespace=name)
    assert janitor.due(memory.context, day(0), uncompared=True) == ["a", "b", "c"]
    for name in "ab":
        compare(memory.context, name, day(0))
    assert janitor.due(memory.context, day(0), uncompared=True) == ["c"]
    assert janitor.due(memory.context, day(0)) == []
    assert (
        janitor.due(memory.context, day(30), uncompared=True) == janitor.due(memory.context, day(30)) == ["a", "b", "c"]
    )
    memory.decay(30)
    assert janitor.due(memory.context, day(30), uncompared=True) == ["c"]


def test_the_turn_of_the_namespace_is_reported(memory: Memory) -> None:
    memory.add("Tea at four.")
    memory.rows("update namespaces set turns = 42")
    assert tidied(memory, 1).lastRunTurn == 42


MANUAL = {"hygiene.schedule": "manual"}
DAYS = st.lists(st.floats(1, 400), max_size=6)
moments = examples(8)


def filled(memory: Memory) -> None:
    """Store facts that are culled, age out, fade by soft decay, expire, and stay."""
    memory.store(
        *({"text": f"Rumour {number}.", "confidence": 0.2} for number in range(3)),
        *({"text": f"Episode {number}.", "kind": "episodic"} for number in range(3)),
        {"text": "Tea at four.", "decay_class": "normal"},
        {"text": "Ticket in the car.", "decay_class": "checkpoint"},
        {"text": "Ana.", "decay_class": "permanent"},
    )


@moments
@given(days=DAYS, schedule=st.sampled_from(["manual", "onCapture", "onConsolidation"]))
def test_passes_leave_culling_and_aging_to_a_janitor_that_is_called_by_hand(
    memory: Memory, twin: Memory, days: list[float], schedule: str
) -> None:
    one, other = memory.having(forget_limit=1.0), twin.having(forget_limit=1.0)
    for each in (one, other):
        each.rows("truncate namespaces, decay_runs, tallies, tally_changes, endings cascade")
        filled(each)
    one.choose({"hygiene.schedule": schedule})
    for at in sorted(days):
        one.decay(at)
        hidden = {text for text in LEFT if text not in {found.text for found in one.ask(text, at=at, limit=50).results}}
        assert hidden == (set() if schedule == "manual" else {text for text in LEFT if at > LEFT[text]})
    one.decay(400)
    gone = "select forgotten_reason, count(*) from facts where forgotten_at is not null group by 1 order by 1"
    if schedule == "manual":
        assert one.rows(gone) == [("expired", 1), ("faded", 1)]
        tidied(one, 401)
    other.decay(401)
    assert one.rows(gone) == other.rows(gone) == [("aged", 3), ("culled", 3), ("expired", 1), ("faded", 1)]


LEFT = {"Rumour 0.": 180.0, "Episode 0.": 90.0}
"""The facts that a janitor ends, with the first day."""


def test_a_janitor_called_by_hand_meets_the_forget_limit_and_the_oldest_go_first(memory: Memory) -> None:
    memory.choose(MANUAL)
    for number in range(9):
        memory.add(f"Rumour {number}.", at=number, confidence=0.2)
    oldest = memory.rows("select fact from activity order by last_confirmed_at limit 5")
    memory.decay(FADED)
    assert memory.stats(FADED).facts == 9
    assert len(tidied(memory, FADED).lastCulledFactIds) == 5
    assert memory.rows("select id from facts where forgotten_at is not null order by id") == sorted(oldest)
    memory.decay(FADED + 1)
    assert (memory.stats(FADED + 1).held, len(memory.ids("rumour", at=FADED + 1))) == (4, 4)
    assert memory.examine(FADED + 1) == {}


def test_what_a_janitor_called_by_hand_holds_goes_by_a_forced_pass(memory: Memory) -> None:
    memory.choose(MANUAL)
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.2} for number in range(9)))
    tidied(memory, FADED)
    tried = memory.decay(FADED + 1, force=True, dry_run=True).counters
    done = memory.decay(FADED + 1, force=True).counters
    assert tried.culled == done.culled == 4
    assert (memory.stats(FADED + 1).held, memory.stats(FADED + 1).facts) == (0, 0)


def test_under_a_setting_of_all_passes_leave_it_to_the_janitor_too(memory: Memory) -> None:
    manual = memory.having(hygiene_schedule="manual", forget_limit=1.0)
    filled(manual)
    assert (manual.decay(400).counters.culled, tidied(manual, 400).lastCulledFacts) == (0, 3)
