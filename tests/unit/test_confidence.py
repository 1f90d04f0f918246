"""Confidence: golden values, the documented boundary at exactly 0.1, and when a fact falls below a floor."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.confidence import (
    culled_at,
    effective_confidence,
    halvings_applied,
    next_halving_at,
    reinforced,
    removed_by_soft_decay_at,
    soft_decay_halvings,
    soft_decay_starts,
    softened,
)

GOLDEN = json.loads(Path(__file__).with_name("golden_confidence.json").read_text(encoding="utf-8"))
HOUR = 3_600.0
DAY = 86_400.0
FORTNIGHT = 14 * DAY
NEVER = math.inf
properties = examples(100)


def golden(name: str) -> list[dict[str, Any]]:
    head, *rows = GOLDEN[name]
    return [dict(zip(head, row, strict=True)) for row in rows]


def halvings(expires_at: float, now: float, confirmed_at: float = 0.0) -> int:
    return int(soft_decay_halvings(np.array([confirmed_at]), np.array([expires_at]), now)[0])


def applied(confidence: float, due: int) -> int:
    return int(halvings_applied(np.array([confidence]), np.array([due]))[0])


def next_halving(confidence: float, expires_at: float, made: int) -> float:
    return float(next_halving_at(np.array([confidence]), np.zeros(1), np.array([expires_at]), np.array([made]))[0])


def removed_at(confidence: float, expires_at: float) -> float:
    return float(removed_by_soft_decay_at(np.array([confidence]), np.zeros(1), np.array([expires_at]))[0])


def culled(confidence: float, expires_at: float = NEVER, half_life: float = 180.0, floor: float = 0.1) -> float:
    return float(culled_at(np.array([confidence]), np.zeros(1), np.array([expires_at]), half_life, floor)[0])


def effective(confidence: float, days: float, half_life: float = 180.0) -> float:
    return float(effective_confidence(np.array([confidence]), np.array([days]), half_life)[0])


def test_golden_effective_confidence_is_reproduced() -> None:
    for row in golden("effective_confidence"):
        left = effective(row["confidence"], row["days"], row["half_life"])
        assert left == pytest.approx(row["effective"], rel=1e-12), row


def test_golden_halvings_are_reproduced() -> None:
    for row in golden("soft_decay"):
        assert halvings(row["expires_at"], row["now"], row["confirmed_at"]) == row["halvings"], row


def test_each_confirmation_adds_a_twentieth_up_to_certainty() -> None:
    assert reinforced(np.array([0.5, 0.98]), np.array([2, 1])) == pytest.approx([0.6, 1.0])


def test_one_half_life_leaves_a_half_and_two_a_quarter() -> None:
    assert effective(1.0, 180) == 0.5
    assert effective(1.0, 360) == 0.25


def test_a_clock_that_was_set_back_leaves_confidence_whole() -> None:
    assert effective(0.8, -30) == 0.8


def test_soft_decay_starts_at_three_quarters_of_the_lifetime() -> None:
    confirmed_at, expires_at = np.array([1_000.0, 0.0]), np.array([5_000.0, NEVER])

    assert soft_decay_starts(confirmed_at, expires_at).tolist() == [4_000.0, NEVER]


def test_confidence_is_halved_once_an_hour_past_three_quarters() -> None:
    begins = 0.75 * FORTNIGHT
    instants = [begins, begins + 1, begins + HOUR - 1, begins + HOUR, begins + 3 * HOUR]

    assert [halvings(FORTNIGHT, now) for now in instants] == [0, 1, 1, 2, 4]


def test_expired_facts_are_not_halved() -> None:
    assert halvings(FORTNIGHT, FORTNIGHT - 1) > 0
    assert halvings(FORTNIGHT, FORTNIGHT) == 0


def test_facts_without_expiry_are_never_halved() -> None:
    assert halvings(NEVER, 1e12) == 0


@pytest.mark.parametrize(
    ("confidence", "most"), [(1.0, 4), (0.9, 4), (0.8, 3), (0.5, 3), (0.2, 1), (0.1, 0), (0.05, 0)]
)
def test_confidence_at_the_floor_or_below_is_not_halved(confidence: float, most: int) -> None:
    assert [applied(confidence, due) for due in (0, 1, 2, 3, 4, 50)] == [min(due, most) for due in (0, 1, 2, 3, 4, 50)]


@pytest.mark.parametrize(("confidence", "most"), [(1.0, 4), (0.8, 3), (0.1, 0)])
def test_the_next_halving_is_an_hour_after_the_last_until_the_floor(confidence: float, most: int) -> None:
    begins = 0.75 * FORTNIGHT
    hours = [begins + made * HOUR if made < most else NEVER for made in range(6)]

    assert [next_halving(confidence, FORTNIGHT, made) for made in range(6)] == hours


def test_no_halving_comes_after_the_lifetime_or_without_one() -> None:
    assert next_halving(1.0, 4 * HOUR, 0) == 3 * HOUR
    assert next_halving(1.0, 4 * HOUR, 1) == next_halving(1.0, NEVER, 0) == NEVER


@pytest.mark.parametrize(("confidence", "steps"), [(1.0, 4), (0.9, 4), (0.7, 3), (0.3, 2), (0.15, 1)])
def test_the_halving_that_leads_below_the_floor_removes_the_fact(confidence: float, steps: int) -> None:
    assert removed_at(confidence, FORTNIGHT) == 0.75 * FORTNIGHT + (steps - 1) * HOUR


@pytest.mark.parametrize("confidence", [0.8, 0.4, 0.2, 0.1])
def test_confidence_of_exactly_a_tenth_is_neither_halved_nor_removed(confidence: float) -> None:
    assert confidence * 0.5 ** applied(confidence, 4) == 0.1
    assert removed_at(confidence, FORTNIGHT) == NEVER


def test_facts_without_expiry_are_never_removed_by_soft_decay() -> None:
    assert removed_at(1.0, NEVER) == NEVER


@pytest.mark.parametrize(("confidence", "days"), [(1.0, 598), (0.8, 540), (0.5, 418)])
def test_belief_without_confirmation_lasts_as_long_as_documented(confidence: float, days: int) -> None:
    assert culled(confidence) / DAY == pytest.approx(days, abs=0.6)


def test_a_floor_of_zero_culls_nothing() -> None:
    assert culled(0.0, floor=0.0) == NEVER
    assert culled(0.5, FORTNIGHT, floor=0.0) == NEVER


def test_facts_below_the_floor_are_culled_at_once() -> None:
    assert culled(0.05) == 0.0
    assert culled(0.0) == 0.0


@pytest.mark.parametrize(("confidence", "floor"), [(1.0, 0.5), (0.8, 0.1), (0.1, 0.1), (0.4, 0.1)])
def test_a_fact_exactly_at_the_floor_survives(confidence: float, floor: float) -> None:
    halvings = math.log2(confidence / floor)
    at_the_floor = 180 * DAY * halvings
    assert at_the_floor < culled(confidence, floor=floor) <= at_the_floor + 1e-5


def test_halvings_count_towards_the_floor() -> None:
    # 0.8 is halved to 0.4, 0.2 and 0.1; with ten days of half-life the third halving takes it below 0.1.
    assert culled(0.8, FORTNIGHT) == 0.75 * FORTNIGHT + 2 * HOUR


def test_halvings_that_are_not_made_do_not_count_towards_the_floor() -> None:
    assert culled(0.1, FORTNIGHT, floor=0.09) == pytest.approx(180 * DAY * math.log2(0.1 / 0.09))
    assert culled(0.8, FORTNIGHT, floor=0.06) == pytest.approx(180 * DAY * math.log2(0.1 / 0.06))


@given(st.floats(0.11, 1), st.floats(0.01, 0.1), st.floats(1, 1_000))
@properties
def test_at_the_instant_of_culling_belief_is_just_the_floor(confidence: float, floor: float, half_life: float) -> None:
    days = culled(confidence, half_life=half_life, floor=floor) / DAY

    assert effective(confidence, days, half_life) == pytest.approx(floor, rel=1e-9)


@given(st.floats(0, 1), st.floats(-100, 5_000), st.floats(-100, 5_000), st.floats(1, 1_000))
@properties
def test_belief_never_rises_without_confirmation(confidence: float, a: float, b: float, half_life: float) -> None:
    early, late = effective(confidence, min(a, b), half_life), effective(confidence, max(a, b), half_life)

    assert 0 <= late <= early <= confidence


@given(st.floats(HOUR, 400 * DAY), st.floats(0, 1), st.floats(0, 1))
@properties
def test_halvings_never_become_fewer_before_the_lifetime_is_over(lifetime: float, a: float, b: float) -> None:
    early, late = (halvings(lifetime, share * lifetime * 0.999) for share in sorted((a, b)))

    assert 0 <= early <= late


def test_a_fact_that_stays_visible_after_its_lifetime_does_not_become_more_certain() -> None:
    left = [float(softened(np.array([0.8]), np.zeros(1), np.array([86_400.0]), at)[0]) for at in (86_399.0, 1e5, 1e9)]
    assert left == pytest.approx([0.1] * 3)


def test_soft_decay_leaves_half_after_each_hour_of_the_last_quarter() -> None:
    day = 86_400.0
    left = [
        float(softened(np.array([0.8]), np.zeros(1), np.array([day]), at)[0])
        for at in (0.0, 0.75 * day, 0.75 * day + 1, 0.75 * day + 3_601, 0.75 * day + 7_201)
    ]
    assert left == pytest.approx([0.8, 0.8, 0.4, 0.2, 0.1])
