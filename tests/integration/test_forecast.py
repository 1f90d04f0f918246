"""A forecast predicts exactly what passes on those days do."""

import math
from collections import Counter
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day

from workers.core.fading import REASONS
from workers.decay import endings, forecast
from workers.decay.passes import Report
from workers.errors import InvalidInputError
from workers.storage.limits import Capacity

pytestmark = pytest.mark.long

COUNTED = ("compressed", "fingerprinted", *REASONS)
CLASSES = (None, "permanent", "durable", "normal", "short", "session")
VECTOR_BYTES = "select coalesce(sum(2 * vector_dims(embedding)), 0) from vectors"
EMPTY = "truncate namespaces, decay_runs, tallies, tally_changes, endings cascade"
bounded = examples(6)
storable = st.fixed_dictionaries(
    {
        "created_at": st.integers(-30, 10).map(lambda number: day(number).isoformat()),
        "confidence": st.sampled_from([1.0, 0.2, 0.12]),
        "decay_class": st.sampled_from(["normal", "active", "short", "session", "checkpoint", "stable"]),
        "decay_class_source": st.sampled_from(["auto", "explicit"]),
    }
)


def fill(memory: Memory, facts: int = 60) -> None:
    """Store facts of different strength, confidence and lifetime."""
    given = [
        {
            "text": f"The guest in room {number} likes tea.",
            "salience": number % 10 / 10,
            "confidence": 0.1 + number % 7 / 10,
            "decay_class": CLASSES[number % len(CLASSES)],
        }
        for number in range(facts)
    ]
    memory.store(*({name: value for name, value in one.items() if value is not None} for one in given))


def counters(report: Report) -> Counter[str]:
    done = asdict(report.counters)
    return Counter({name: done[name] for name in COUNTED if done[name]})


def foreseen(one: forecast.Day) -> Counter[str]:
    return Counter({name: one.counts[name] for name in COUNTED if one.counts[name]})


@pytest.mark.parametrize("days", [7, 120])
def test_passes_do_on_each_day_what_was_forecast(memory: Memory, days: int) -> None:
    fill(memory)

    ahead = forecast.forecast(memory.context, "default", days, day(0))

    assert [foreseen(one) for one in ahead] == [counters(memory.decay(at=number)) for number in range(1, days + 1)]
    assert sum(one.counts.total() for one in ahead) > 20


def test_what_gets_colder_is_foreseen_tier_by_tier(memory: Memory) -> None:
    memory.add("Strong.", salience=1.0)
    memory.add("Weak.", salience=0.2)

    ahead = forecast.forecast(memory.context, "default", 60, day(0))
    memory.decay(at=60)

    cold = sum(one.counts["cold"] for one in ahead)
    assert cold == memory.stats(at=60).tiers["cold"]


def test_changes_are_shown_with_the_beginnings_of_some_facts(memory: Memory) -> None:
    memory.store(*({"text": f"{number} " + "word " * 40, "decay_class": "short"} for number in range(5)))

    (_, second, third) = forecast.forecast(memory.context, "default", 3, day(0), shown=2)

    ended = [fact for fact in [*second.facts, *third.facts] if fact.change in REASONS]
    assert len(ended) == 2
    assert all(70 < len(fact.text) <= 80 and fact.text.endswith("…") for fact in ended)


def test_the_forget_limit_is_foreseen(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(130)))

    ahead = forecast.forecast(memory.context, "default", 60, day(0))
    reports = [memory.decay(at=number) for number in range(1, 61)]

    assert sum(one.held for one in ahead) == 104 == sum(report.counters.held for report in reports)
    assert [one.held for one in ahead] == [report.counters.held for report in reports]
    assert [foreseen(one) for one in ahead] == [counters(report) for report in reports]


@bounded
@given(facts=st.lists(storable, min_size=1, max_size=60), passed=st.lists(st.integers(0, 40), max_size=3))
def test_passes_do_to_every_namespace_what_was_forecast_limits_and_all(
    memory: Memory, facts: list[dict[str, Any]], passed: list[int]
) -> None:
    memory.rows(EMPTY)
    memory.store(*({"text": f"Guest {place}.", **one} for place, one in enumerate(facts)))
    for at in sorted(passed):
        memory.decay(at)
    start = max(passed, default=0)

    ahead = forecast.forecast(memory.context, "default", 40, day(start))
    reports = [memory.decay(at=start + number) for number in range(1, 41)]

    assert [(foreseen(one), one.held) for one in ahead] == [(counters(one), one.counters.held) for one in reports]
    assert sum(one.held for one in ahead) <= len(facts)


def test_other_namespaces_are_not_counted(memory: Memory) -> None:
    memory.store({"text": "Theirs.", "decay_class": "short"}, namespace="theirs")

    assert sum(one.counts.total() for one in forecast.forecast(memory.context, "default", 7, day(0))) == 0
    memory.store({"text": "Mine.", "decay_class": "short"})
    assert (
        sum(one.counts[reason] for one in forecast.forecast(memory.context, "default", 7, day(0)) for reason in REASONS)
        == 1
    )


def test_a_forecast_changes_nothing(memory: Memory) -> None:
    fill(memory, 12)
    before = memory.rows("select activity::text from activity order by fact")

    forecast.forecast(memory.context, "default", 30, day(0))

    assert memory.rows("select activity::text from activity order by fact") == before


def test_other_settings_are_tried_and_nothing_is_changed(memory: Memory) -> None:
    fill(memory)
    memory.touch(memory.add("The guest in room 99 likes tea.", confidence=0.15), at=0)
    before = memory.rows("select * from activity order by fact")

    as_is = forecast.forecast(memory.context, "default", 365, day(0))
    given = ["cold_threshold=0.9", "confidenceDecay.halfLife=5", "forget_limit=1"]
    tried = forecast.forecast(memory.context, "default", 365, day(0), given=given)

    now, then = (forecast.totals(memory.context, "default", ahead) for ahead in (as_is, tried))
    assert then.forgotten > now.forgotten
    assert (now.facts + now.forgotten, then.facts + then.forgotten) == (61, 61)
    assert 100_000 > then.bytes_freed / then.forgotten > now.bytes_freed / 61 > 0
    assert (then.held, then.recalled_lately) == (0, 1)
    assert memory.rows("select * from activity order by fact") == before
    changed = memory.having(cold_threshold=0.9, forget_limit=1, confidence_half_life=5)
    assert (
        forecast.totals(
            changed.context, "default", forecast.forecast(changed.context, "default", 365, day(0), given=given)
        )
        == then
    )


@pytest.mark.parametrize(
    "given",
    [
        "cold_threshold", "cold_threshold=2", "half_life=3", "confidenceDecay.halfLife=x",
        f"confidenceDecay.halfLife={'[' * 5_000}",
    ],
)  # fmt: skip
def test_settings_that_are_not_allowed_are_refused(memory: Memory, given: str) -> None:
    fill(memory, 1)
    with pytest.raises(InvalidInputError):
        forecast.forecast(memory.context, "default", 7, day(0), given=[given])


def test_what_ends_soon_is_listed_by_value_or_by_date(memory: Memory) -> None:
    much = memory.add("I moved to Porto in March 2024.", decay_class="stable", at=0)
    little = memory.add("Wow, that's great!", decay_class="stable", at=-1)
    memory.add("It stays.", decay_class="permanent")
    listed = {
        by_value: [one.id for one in endings.ending(memory.context, "default", 7, day(65), by_value=by_value)]
        for by_value in (True, False)
    }
    assert listed == {True: [much, little], False: [little, much]}
    (first, second) = endings.ending(memory.context, "default", 7, day(65), by_value=True)
    assert 0 < second.value < first.value < 1
    assert first.ends_for == "faded"
    assert [one.id for one in endings.ending(memory.context, "default", 7, day(65), by_value=True, most=1)] == [much]
    assert endings.ending(memory.context, "default", 1, day(0), by_value=True) == []


ENDED = (*REASONS, "crowded")
SETTLED = "update namespaces set settings_changed_at = %s"


def compare_days(memory: Memory, days: int, at: float, *given: str, **settings: Any) -> list[Counter[str]]:
    """Forecast with settings, choose them, and return what passes then do, which is the same."""
    before = [*forecast.forecast(memory.context, "default", days, day(at), given=given)]
    if settings:
        memory.choose({path.replace("__", "."): value for path, value in settings.items()}, at=at)
        memory.rows(SETTLED, day(at) - timedelta(minutes=5))
    after = [*forecast.forecast(memory.context, "default", days, day(at))]
    done = [asdict(memory.decay(at + number).counters) for number in range(1, days + 1)]
    names = (*COUNTED, "crowded", "held")
    real = [Counter({name: one[name] for name in names if one[name]}) for one in done]
    for ahead in (before, after):
        counts = [one.counts + Counter(held=one.held) for one in ahead]
        assert [Counter({name: one[name] for name in names if one[name]}) for one in counts] == real
    return real


def test_another_turn_limit_is_tried_and_foreseen(memory: Memory) -> None:
    for turn in range(20):
        memory.add(f"Turn {turn}.", kind="episodic", session="s", turn=turn)

    real = compare_days(memory, 2, 0, "episodicTTL.persistentTurns=5", hygiene__episodicTTL__persistentTurns=5)

    assert real == [Counter(aged=5, held=9), Counter()]


def test_another_capacity_is_tried_and_what_goes_changes_no_more(memory: Memory) -> None:
    memory.store(*({"text": f"Guest {number}.", "importance": number / 40} for number in range(40)))
    memory.pin(memory.add("Guest 40.", importance=0), at=0, until=4.5)

    real = compare_days(memory, 30, 0, "capacity.facts=20", capacity__facts=20)

    assert sum(one["crowded"] for one in real) == 21
    assert sum(one["fingerprinted"] for one in real) == 20


def test_what_is_held_takes_no_place_and_ends_on_no_later_day(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(60)))
    memory.store(*({"text": f"Guest {number}."} for number in range(40)))
    memory.choose({"capacity.facts": 70})
    memory.rows(SETTLED, day(0) - timedelta(minutes=5))

    real = compare_days(memory, 40, 0.5)

    totals = sum(real, Counter[str]())
    assert (totals["crowded"], totals["culled"], totals["held"]) == (30, 14, 25)


def test_the_bytes_that_held_facts_lose_are_foreseen(memory: Memory) -> None:
    none = memory.having(forget_limit=0)
    none.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(10)))

    ahead = forecast.forecast(none.context, "default", 1, day(99))
    totals = forecast.totals(none.context, "default", ahead)
    before = none.value(VECTOR_BYTES)

    assert none.decay(100).counters.held == totals.held == 10
    assert totals.bytes_freed == before - none.value(VECTOR_BYTES) > 0


def test_held_facts_live_on_by_other_settings(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(60)))
    assert memory.decay(30).counters.held == 48

    real = compare_days(memory, 3, 30, "confidenceDecay.halfLife=3600", hygiene__confidenceDecay__halfLife=3600)

    assert sum(one[reason] for one in real for reason in ENDED) == 0
    assert memory.stats(33).facts == 48
    assert memory.stats(33).held == 0


def test_held_facts_stay_held_and_shrink_though_the_janitor_is_called_by_hand(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11, "salience": 1.0} for number in range(60)))
    assert memory.decay(30).counters.held == 48

    real = compare_days(memory, 3, 100, "schedule=manual", hygiene__schedule="manual")

    assert [one["fingerprinted"] for one in real] == [48, 0, 0]
    assert memory.stats(103).held == 48


def test_held_facts_end_for_the_reason_by_which_the_janitor_would_end_them(memory: Memory) -> None:
    memory = memory.having(forget_limit=0.0)
    memory.choose({"hygiene.schedule": "manual"})
    memory.store({"text": "A rumour.", "confidence": 0.05, "decay_class": "short", "decay_class_source": "explicit"})
    memory.rows("update namespaces set settings_changed_at = null")

    ahead = forecast.forecast(memory.context, "default", 2, day(0.6))

    reports = [memory.decay(at=0.6 + number) for number in (1, 2)]
    assert [(foreseen(one), one.held) for one in ahead] == [(counters(one), one.counters.held) for one in reports]
    assert [(one.held, one.counts["culled"]) for one in ahead] == [(1, 0), (0, 1)]


def test_facts_that_are_held_no_more_end_again_by_other_settings(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(60)))
    assert memory.decay(30).counters.held == 48

    real = compare_days(memory, 6, 30, "confidenceDecay.halfLife=240", hygiene__confidenceDecay__halfLife=240)

    assert sum(one["held"] for one in real) > 0


def test_a_branch_has_no_forget_limit_in_the_forecast_either(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(60)))
    memory.rows("update namespaces set branch_of = 'other', branch_age = interval '1 day'")

    real = compare_days(memory, 30, 0)

    assert sum(one["culled"] for one in real) == 60


def test_what_ended_in_a_gap_is_foreseen_to_be_held(memory: Memory) -> None:
    memory.add("Rumour.", confidence=0.11)
    memory.rows("update namespaces set gap_from = %s, gap_until = %s", day(20), day(30))

    assert sum((one for one in compare_days(memory, 30, 0)), Counter[str]())["held"] == 1


def test_what_ends_soon_by_other_settings_is_listed_before_a_pass_applies_them(memory: Memory) -> None:
    memory.store("Guest 1.", {"text": "Guest 2.", "confidence": 0.5})
    memory.decay(100)
    given = ["confidenceDecay.halfLife=31"]

    tried = endings.ending(memory.context, "default", 7, day(100), by_value=False, given=given)
    memory.choose({"hygiene.confidenceDecay.halfLife": 31}, at=100)
    chosen = endings.ending(memory.context, "default", 7, day(100), by_value=False)

    assert [(one.text, one.ends_at) for one in chosen] == [("Guest 2.", day(100)), ("Guest 1.", chosen[1].ends_at)]
    assert tried == chosen
    memory.decay(100.01)
    assert endings.ending(memory.context, "default", 7, day(100.01), by_value=False) == chosen[1:]


def test_what_ends_by_other_settings_is_listed_though_it_is_due_for_another_change(memory: Memory) -> None:
    id_ = memory.add("Guest 1.", confidence=0.15)
    assert memory.stats(30).due == 1

    given = ("confidenceDecay.cullFloor=0.2",)
    found = endings.ending(memory.context, "default", 1, day(30), by_value=False, given=given)

    assert [(one.id, one.ends_at, one.ends_for) for one in found] == [(id_, day(30), "culled")]


def test_a_held_fact_whose_explicit_lifetime_is_just_over_ends_by_other_settings_too(memory: Memory) -> None:
    memory.store(*({"text": f"Rumour {number}.", "confidence": 0.11} for number in range(60)))
    memory.store({"text": "Tea is at four.", "confidence": 0.11, "importance": 1, "decay_class": "durable"})
    memory.decay(60)
    memory.decay(89.9)
    assert memory.stats(89.9).held == 49

    real = compare_days(memory, 1, 90.1, "confidenceDecay.halfLife=3600", hygiene__confidenceDecay__halfLife=3600)

    assert sum(one[reason] for one in real for reason in REASONS) == 1


def test_a_held_fact_whose_explicit_lifetime_was_over_before_stays_held_in_the_forecast_too(memory: Memory) -> None:
    memory.store(*({"text": f"Guest {number}.", "decay_class": "short"} for number in range(30)))
    memory.decay(0.1)

    real = compare_days(memory, 4, 30)

    totals = sum(real, Counter[str]())
    assert (totals["faded"], totals["held"]) == (6, 24)


def test_a_forecast_does_not_look_again_on_each_day_at_what_is_gone() -> None:
    ids = [UUID(int=number) for number in range(9)]
    crowd = forecast.OverCapacity(dict.fromkeys(ids, -math.inf), dict.fromkeys(ids, 0.0), Capacity(4, None, 0.0))
    assert crowd.next({ids[0]}, 8, 2, 0, day(1)) == ids[1:3]
    assert list(crowd.pinned_until) == ids[3:]
    assert crowd.next(set(), 6, None, 0, day(2)) == ids[3:5]
    assert crowd.keeps(ids).tolist() == [False] * 5 + [True] * 4


def test_more_facts_go_where_those_that_go_take_fewer_bytes_than_the_others() -> None:
    ids = [UUID(int=number) for number in range(9)]
    own = dict(zip(ids, [0.0] * 6 + [300.0] * 3, strict=True))
    crowd = forecast.OverCapacity(dict.fromkeys(ids, -math.inf), own, Capacity(None, 1_400, 100.0), sum(own.values()))
    assert crowd.next(set(), 9, None, 0, day(1)) == ids[:4]
