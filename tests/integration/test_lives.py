"""Lifetimes of stored facts: from now on, as the answer says, and again from each repeated statement."""

from datetime import timedelta
from typing import Any

import pytest
from ebb.contract.recall import Lookup
from ebb.contract.reports import ListFacts
from ebb.contract.retention import ShowHistory
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import DAY_0, Memory, day

from workers.admin import export
from workers.core.lifetime import LIFETIMES
from workers.errors import InvalidInputError
from workers.memory import facts as show
from workers.memory import history
from workers.memory.add import Stored
from workers.memory.recall.lookups import lookup

EMPTY = "truncate facts, decay_runs, decay_allowances cascade"
MOMENT = timedelta(milliseconds=2) / timedelta(days=1)
"""Days; a little more than the interval between a fact's end and its due time."""


def stored(memory: Memory, *given: str | dict[str, Any], **how: Any) -> list[Stored]:
    answers = memory.store(*given, **how)
    assert not any(isinstance(one, InvalidInputError) for one in answers)
    return [one for one in answers if isinstance(one, Stored)]


def ends(one: Stored) -> float:
    """Return the days until a fact ends, by its answer."""
    at = one.life.ending.at
    return float("inf") if at is None else (at - DAY_0) / timedelta(days=1)


@pytest.mark.parametrize("dated", [{"created_at": "2023-02-01"}, {"source_date": "2023-02-01"}])
def test_facts_of_long_ago_live_from_now_on(memory: Memory, dated: dict[str, str]) -> None:
    old = [{"text": f"Guest {i} takes tea."} | dated for i in range(20)]
    assert {one.action for one in stored(memory, *old, classify=True)} == {"added"}
    assert memory.decay(1).counters.forgotten == 0
    found = memory.ask("Which guest takes tea?", at=1, limit=20).results
    assert len(found) == 20
    assert {(one.source_date or one.created_at).year for one in found} == {2023}


def test_an_explicit_last_use_is_kept_and_facts_that_end_at_once_are_reported(memory: Memory) -> None:
    over, young = stored(
        memory,
        {"text": "Guest 1 takes tea.", "decay_class": "stable", "last_seen_at": day(-700).isoformat()},
        {"text": "Guest 2 takes tea.", "decay_class": "stable", "last_seen_at": day(-7).isoformat()},
    )
    assert (over.action, over.life.over, young.life.over) == ("added", True, False)
    assert ends(over) == pytest.approx(-700 + 67.5 + 2 / 24)
    assert ends(young) == pytest.approx(-7 + 67.5 + 2 / 24)
    assert memory.ids("guest takes tea") == [young.id]


@pytest.mark.parametrize(
    ("given", "decay_class", "reason", "days", "ends_for"),
    [
        ("Ana likes green tea.", "stable", "no rule matched", 67.5 + 2 / 24, "faded"),
        ("I need to buy tea.", "active", "words: need to", 10.5 + 3 / 24, "faded"),
        ({"text": "0341 555", "key": "phone"}, "permanent", "key: phone", float("inf"), None),
        ({"text": "Tea it is.", "entity": "Decision"}, "permanent", "entity: decision", float("inf"), None),
        ({"text": "Tea it is.", "decay_class": "session"}, "session", "given", 0.75 + 3 / 24, "faded"),
        (
            {"text": "Tea it is.", "decay_class": "checkpoint", "confidence": 0.8},
            "checkpoint", "given", 4 / 24, "expired",
        ),
        ({"text": "Tea it was.", "kind": "episodic"}, None, "an episode ages by turns and days", 90, "aged"),
    ],
)  # fmt: skip
def test_the_answer_has_the_class_its_reason_and_the_end(
    memory: Memory, given: Any, decay_class: str | None, reason: str, days: float, ends_for: str | None
) -> None:
    for action in ("added", "duplicate"):
        (one,) = stored(memory, given, classify=True, touch=False)
        assert (one.action, one.life.decay_class, one.life.reason) == (action, decay_class, reason)
        assert (ends(one), one.life.ending.reason) == (pytest.approx(days), ends_for)


@pytest.mark.parametrize(("schedule", "classify", "reason"), [("onCapture", True, "faded"), ("manual", False, None)])
def test_every_reader_reports_the_same_ending(
    memory: Memory, schedule: str, *, classify: bool, reason: str | None
) -> None:
    memory.choose({"hygiene.schedule": schedule})
    given = {"text": "Ana takes green tea.", "entity": "Ana", "key": "tea", "confidence": 0.9}
    (one,) = stored(memory, given, classify=classify)
    expected = (one.life.ending.at, one.life.ending.reason)
    assert expected[1] == reason
    (recalled,) = memory.ask("green tea").results
    (looked_up,), _ = lookup(memory.context, Lookup(entity="Ana"), day(0))
    assert (recalled.ends_at, recalled.ends_for) == (looked_up.ends_at, looked_up.ends_for) == expected
    (exported,) = (one for one in export.export(memory.context, "default", day(0)) if "text" in one)
    shown = show.show(memory.context, "default", one.id, day(0))
    (listed,), _ = show.page(memory.context, ListFacts(limit=10), day(0))
    assert {(line["ends_at"], line["ends_for"]) for line in (exported, shown, listed)} == {expected}
    found = history.history(memory.context, ShowHistory(id=one.id), day(0))
    assert (found.ends_at, found.ends_for) == expected


def test_what_has_ended_has_no_end_before_it(memory: Memory) -> None:
    id_ = memory.add("Tea it is.", decay_class="session")
    memory.forget(id_, at=0.1)
    (line,) = (one for one in export.export(memory.context, "default", day(0.2)) if "text" in one)
    assert (line["ends_at"], line["ends_for"]) == (None, None)
    assert history.history(memory.context, ShowHistory(id=id_), day(0.2)).ends_at is None


@pytest.mark.parametrize("decay_class", [name for name, one in LIFETIMES.items() if one.seconds])
def test_a_new_statement_starts_the_lifetime_of_any_class_again(memory: Memory, decay_class: str) -> None:
    fact = {"text": "The train leaves at four.", "decay_class": decay_class}
    (first,) = stored(memory, fact)
    later = ends(first) * 0.9
    (again,) = stored(memory, "The train leaves at four.", at=later)
    assert (again.id, again.action) == (first.id, "duplicate")
    assert ends(again) == pytest.approx(ends(first) + later)
    assert memory.decay(ends(first) + MOMENT).counters.forgotten == 0
    assert memory.row(first.id)["forgotten_at"] is None


def test_the_same_delivery_twice_restarts_a_lifetime_once(memory: Memory) -> None:
    (first,) = stored(memory, {"text": "Tea at four.", "decay_class": "session"})
    for _ in range(2):
        stored(memory, "Tea at four.", at=0.5)
    expires = memory.row(first.id)["expires"]
    stored(memory, "Tea at four.", at=0.25)
    assert memory.row(first.id)["expires"] == expires == pytest.approx(1.5)


@pytest.mark.parametrize("used_at", [0.5, 0.6])
@pytest.mark.parametrize("use", ["touch", "reinforce"])
@pytest.mark.parametrize("fact", [{"kind": "episodic"}, {"decay_class": "session"}, {"decay_class": "normal"}])
def test_a_statement_that_arrives_after_a_later_use_restarts_the_lifetime_as_it_would_before_it(
    memory: Memory, fact: dict[str, str], use: str, used_at: float
) -> None:
    late, ordered = (memory.add(f"Tea at {hour}.", **fact) for hour in ("four", "five"))
    getattr(memory, use)(late, at=used_at)
    stored(memory, "Tea at four.", "Tea at five.", at=0.5)
    getattr(memory, use)(ordered, at=used_at)
    for column in ("expires", "ends", "confirmed", "halvings"):
        assert memory.row(late)[column] == memory.row(ordered)[column]


facts = st.lists(
    st.fixed_dictionaries(
        {
            "decay_class": st.sampled_from([None, *LIFETIMES]),
            "confidence": st.sampled_from([1.0, 0.81, 0.4, 0.15, 0.1, 0.05]),
        },
        optional={"last_seen_at": st.floats(-30, 0).map(lambda number: day(number).isoformat())},
    ),
    min_size=1,
    max_size=8,
)


@examples(10)
@given(facts)
def test_the_reported_end_is_the_one_at_which_passes_forget(memory: Memory, given: list[dict[str, Any]]) -> None:
    memory.rows(EMPTY)
    named = [{"text": f"Guest {i} takes tea."} | fact for i, fact in enumerate(given)]
    ending = sorted((one for one in stored(memory, *named) if ends(one) < float("inf")), key=ends)
    passed = 0.0
    for one in ending:
        at = max(ends(one), 0.0)
        if at - MOMENT > passed:
            memory.decay(at - MOMENT, force=True)
            assert memory.row(one.id)["forgotten_at"] is None
        memory.decay(passed := at + MOMENT, force=True)
        assert (memory.row(one.id)["forgotten_reason"], one.life.ending.reason) == (one.life.ending.reason,) * 2
    assert memory.value("select count(*) from facts where forgotten_at is null") == len(named) - len(ending)
