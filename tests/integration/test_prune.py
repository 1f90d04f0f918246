"""Prunes: hard ones forget expired facts, soft ones halve or forget facts near their expiry, each counted once."""

import logging
import random
from math import inf
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.admin import export
from workers.core.confidence import soft_decay_halvings
from workers.core.fading import REASONS
from workers.core.lifetime import LIFETIMES
from workers.decay import passes as decay
from workers.storage.due import Work

HOUR = 1 / 24
SOFT = 0.75 * 14
"""Day on which soft decay of a `normal` fact begins."""

WORKS = ["decay", "prune", "hard prune", "soft prune", "startup prune"]
STATE = """
    select facts.id, forgotten_reason, confidence, expires_at::text, ends_at::text,
        case when forgotten_at is null then (tier, fidelity, halvings, due_at::text)::text end
    from facts join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    order by id
"""
bounded = examples(15)
aging = st.lists(
    st.fixed_dictionaries(
        {
            "last_seen_at": st.floats(0, 20).map(lambda number: day(number).isoformat()),
            "decay_class": st.sampled_from([None, *LIFETIMES]),
            "confidence": st.sampled_from([1.0, 0.8, 0.3, 0.1]),
        }
    ),
    min_size=10,
    max_size=20,
)
prunes = st.lists(st.tuples(st.sampled_from(WORKS), st.floats(0, 40)), max_size=6)


def normal(memory: Memory, text: str = "Tea at four.", **fields: Any) -> UUID:
    return memory.add(text, decay_class="normal", **fields)


def counts(memory: Memory, at: float, work: str = "prune", **plan: Any) -> tuple[int, int, int]:
    """Run a pass; return its counts of expired, decayed and deleted facts."""
    done = memory.decay(at, work=work, **plan).counters
    return done.expired, done.decayed, done.faded + done.culled


def belief(memory: Memory, at: float) -> float:
    """Return the stored confidence of the only fact."""
    (line,) = export.export(memory.context, "default", day(at))
    return float(line["effective_confidence"]) / 0.5 ** ((at - memory.row(line["id"])["confirmed"]) / 180)


def test_a_hard_prune_forgets_what_has_expired_and_nothing_else(memory: Memory) -> None:
    over = memory.add("The ticket is in the car.", decay_class="checkpoint")
    kept = [normal(memory), memory.add("Cake on Sunday."), memory.add("Ana.", decay_class="permanent")]
    assert counts(memory, SOFT + 1, "hard prune") == (1, 0, 0)
    assert (memory.row(over)["forgotten_reason"], memory.row(over)["forgotten_at"]) == ("expired", day(SOFT + 1))
    assert [memory.row(id_)["forgotten_at"] for id_ in kept] == [None] * 3


def test_a_hard_prune_leaves_cooling_and_shrinking_to_decay(memory: Memory) -> None:
    id_ = memory.add("Cake on Sunday.")
    before = memory.row(id_)
    assert memory.decay(300, work="hard prune").counters.processed == 0
    assert memory.row(id_) == before
    assert memory.decay(300).counters.fingerprinted == 1


def test_a_soft_prune_leaves_what_has_expired_and_removes_what_lost_its_confidence(memory: Memory) -> None:
    over = memory.add("The ticket is in the car.", decay_class="checkpoint")
    faded, halved = normal(memory), normal(memory, "Cake on Sunday.", last_seen_at=day(0.1).isoformat())
    assert counts(memory, SOFT + 3.5 * HOUR, "soft prune") == (0, 2, 1)
    assert memory.row(over)["forgotten_at"] is None
    assert (memory.row(faded)["forgotten_reason"], memory.row(halved)["forgotten_at"]) == ("faded", None)


def test_a_prune_does_both(memory: Memory) -> None:
    memory.store({"text": "The ticket is in the car.", "decay_class": "checkpoint"})
    normal(memory)
    assert counts(memory, SOFT + 3.5 * HOUR) == (1, 1, 1)
    assert memory.stats(20).forgotten == 2


def test_a_fact_that_lost_its_confidence_before_it_expired_counts_as_faded(memory: Memory) -> None:
    id_ = normal(memory)
    assert counts(memory, 15) == (0, 0, 1)
    assert memory.row(id_)["forgotten_reason"] == "faded"


@pytest.mark.parametrize("work", ["decay", "prune", "hard prune", "soft prune"])
def test_at_the_very_expiry_a_dry_run_and_a_pass_both_keep_a_fact(memory: Memory, work: Work) -> None:
    id_ = memory.add("The ticket is in the car.", decay_class="checkpoint")
    assert memory.decay(4 * HOUR, work=work, dry_run=True).counters.forgotten == 0
    assert memory.decay(4 * HOUR, work=work).counters.forgotten == 0
    assert memory.row(id_)["forgotten_at"] is None
    assert memory.decay(5 * HOUR).counters.expired == 1


@bounded
@given(facts=aging, at=st.floats(0, 200))
def test_a_run_counts_each_reason_as_its_tombstones_have_it(
    memory: Memory, facts: list[dict[str, Any]], at: float
) -> None:
    memory.rows("truncate facts, decay_runs cascade")
    memory.store(*(fact | {"text": f"Guest {i} takes tea."} for i, fact in enumerate(facts)))
    done = memory.decay(at, force=True).counters
    counted = {reason: getattr(done, reason) for reason in REASONS if getattr(done, reason)}
    buried = "select forgotten_reason, count(*) from facts where forgotten_at is not null group by 1"
    assert counted == dict(memory.rows(buried))


def test_soft_decay_halves_once_an_hour_however_many_prunes_come(memory: Memory) -> None:
    id_ = normal(memory)
    seen = [counts(memory, SOFT + minutes / 1440) for minutes in (-1, 1, 1, 30, 61, 62, 119, 121)]
    assert [decayed for _, decayed, _ in seen] == [0, 1, 0, 0, 1, 0, 0, 1]
    assert memory.row(id_)["halvings"] == 3
    assert counts(memory, SOFT + 3.1 * HOUR) == (0, 1, 1)


@pytest.mark.parametrize("passes", [[], [0.5], [0.5, 1.5], [0.1, 0.2, 2.4]])
def test_confidence_is_the_same_whatever_prunes_came_or_failed_to_come(memory: Memory, passes: list[float]) -> None:
    id_ = normal(memory)
    for hours in passes:
        counts(memory, SOFT + hours * HOUR)
    counts(memory, SOFT + 2.5 * HOUR)
    assert belief(memory, SOFT + 2.5 * HOUR) == pytest.approx(0.125)
    assert (memory.row(id_)["halvings"], memory.row(id_)["confidence"]) == (3, 1.0)


def test_what_one_pass_counted_no_other_counts_again(memory: Memory) -> None:
    normal(memory)
    assert counts(memory, SOFT + 0.5 * HOUR, "decay") == (0, 1, 0)
    assert counts(memory, SOFT + 0.6 * HOUR) == (0, 0, 0)


def test_a_prune_with_nothing_due_touches_nothing(memory: Memory) -> None:
    memory.store(*[{"text": f"Guest {i}.", "decay_class": "normal"} for i in range(20)])
    counts(memory, SOFT + 0.5 * HOUR)
    before = memory.rows("select xmin, ctid from activity")
    assert memory.decay(SOFT + 0.6 * HOUR, work="prune").counters.processed == 0
    assert memory.rows("select xmin, ctid from activity") == before


def test_a_dry_run_writes_nothing_and_counts_what_the_prune_then_does(memory: Memory) -> None:
    classes = ["checkpoint", "short", "normal", "active", "stable", None]
    memory.store(*[{"text": f"{name} {i}", "decay_class": name} for i in range(4) for name in classes])
    before = memory.rows(STATE)
    tried = counts(memory, SOFT + 0.1, dry_run=True)
    assert memory.rows(STATE) == before
    assert tried == counts(memory, SOFT + 0.1) == (4, 8, 4)


@bounded
@given(facts=aging, passes=prunes)
def test_prunes_in_between_leave_what_one_pass_leaves(
    memory: Memory, twin: Memory, facts: list[dict[str, Any]], passes: list[tuple[str, float]]
) -> None:
    given = [fact | {"id": str(uuid4()), "text": f"Guest {i} takes tea."} for i, fact in enumerate(facts)]
    memory, twin = memory.having(forget_limit=1.0), twin.having(forget_limit=1.0)
    for one in (memory, twin):
        one.rows("truncate facts, decay_runs cascade")
        one.store(*given)
    for work, at in sorted(passes, key=lambda one: one[1]):
        memory.decay(at, work=work)
    memory.decay(40)
    twin.decay(40)
    assert memory.rows(STATE) == twin.rows(STATE)


def test_the_last_quarter_is_the_same_in_sql_and_in_numpy(memory: Memory) -> None:
    letters = random.Random(5)
    now = 1_750_000_000.0
    confirmed = [now - letters.uniform(0, 100) * 86_400 for _ in range(3_000)]
    expires = [at + letters.choice([14_400, 172_800, 1_209_600, 7_776_000, inf]) for at in confirmed]
    taken = memory.rows(
        "select pass_takes('soft prune', confirmed, expires, %s) from unnest(%s::float8[], %s::float8[])"
        " with ordinality as one (confirmed, expires, place) order by place",
        now,
        confirmed,
        expires,
    )
    halved = soft_decay_halvings(np.array(confirmed), np.array(expires), now) > 0
    assert [one for (one,) in taken] == halved.tolist()
    assert 100 < halved.sum() < 2_900


def test_a_prune_takes_all_that_is_due_whatever_share_a_pass_of_decay_takes(memory: Memory) -> None:
    small = memory.having(decay_ratio=0.1)
    small.store(*[{"text": f"Guest {i}.", "decay_class": "checkpoint"} for i in range(30)])
    assert counts(small, 1) == (30, 0, 0)


def test_two_scheduled_prunes_of_a_minute_are_one_and_do_not_block_decay(memory: Memory) -> None:
    memory.store({"text": "Tea at four.", "decay_class": "checkpoint"})
    slot: dict[str, Any] = {"slot": day(1)}
    parts = [decay.plan(memory.context, uuid4(), day(1), work="prune", **slot) for _ in range(2)]
    assert [len(one) for one in parts] == [1, 0]
    assert len(decay.plan(memory.context, uuid4(), day(1), **slot)) == 1


def test_what_a_prune_did_is_logged_as_documented(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    memory.store(*[{"text": f"Guest {i}.", "decay_class": "checkpoint"} for i in range(3)])
    normal(memory)
    with caplog.at_level(logging.INFO, "workers.decay.passes"):
        memory.decay(1, work="prune", dry_run=True)
        memory.decay(1, work="startup prune")
        memory.decay(SOFT + 0.1 * HOUR, work="prune")
        memory.decay(SOFT + 0.2 * HOUR, work="prune")
    assert caplog.messages == [
        "startup prune removed 3 expired facts",
        "periodic prune - 0 expired, 1 decayed",
        "periodic prune - 0 expired, 0 decayed",
    ]


# Refresh --------------------------------------------------------------------------------------------------------


def test_use_restores_what_soft_decay_had_taken(memory: Memory) -> None:
    id_ = normal(memory)
    counts(memory, SOFT + 1.5 * HOUR)
    assert (belief(memory, SOFT + 1.5 * HOUR), memory.row(id_)["halvings"]) == (pytest.approx(0.25), 2)
    memory.touch(id_, at=SOFT + 1.6 * HOUR)
    row = memory.row(id_)
    assert (belief(memory, SOFT + 1.7 * HOUR), row["halvings"]) == (pytest.approx(1.0), 0)
    assert row["expires"] == pytest.approx(SOFT + 1.6 * HOUR + 14)
    assert counts(memory, SOFT + 5 * HOUR) == (0, 0, 0)


def test_use_restores_nothing_to_a_class_that_is_not_refreshed(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="short")
    counts(memory, 1.51)
    memory.touch(id_, at=1.52)
    assert (belief(memory, 1.53), memory.row(id_)["halvings"]) == (pytest.approx(0.5), 1)
    assert counts(memory, 1.53) == (0, 0, 0)


@pytest.mark.parametrize("decay_class", ["durable", "normal", "stable", "active"])
def test_what_is_used_again_and_again_stays_and_what_is_not_goes(memory: Memory, decay_class: str) -> None:
    used = memory.add("Tea at four.", decay_class=decay_class)
    unused = memory.add("Cake on Sunday.", decay_class=decay_class)
    for week in range(1, 20):
        memory.touch(used, at=week * 7)
        memory.decay(week * 7, work="prune")
    assert memory.row(used)["forgotten_at"] is None
    assert memory.row(unused)["forgotten_reason"] == "faded"
