"""Forgetting curves: golden values, the documented examples, and the closed form against numeric integration."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_up import examples

from workers.core.tiers import (
    Curve,
    Tier,
    age_at_retention,
    base_for,
    curve,
    retention,
    strength,
    tier,
)

GOLDEN = json.loads(Path(__file__).with_name("golden_tiers.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-4
"""Precision of the golden curves, which come from numeric integration."""

STEPS = 20_000
properties = examples(100)
shares = st.floats(0, 1)
counts = st.integers(0, 30)
ages = st.floats(0, 400)


def golden(name: str) -> dict[str, Any]:
    """Return a golden table by column."""
    head, *rows = GOLDEN[name]
    return {column: np.array(values) for column, values in zip(head, zip(*rows, strict=True), strict=True)}


def curve_of(strength: float, coactivations: int = 0) -> Curve:
    return curve(np.array([strength]), np.array([coactivations]))


def kept(strength: float, age_days: float, coactivations: int = 0) -> float:
    return float(retention(curve_of(strength, coactivations), np.array([age_days]))[0])


def tier_of(strength: float, age_days: float, coactivations: int = 0) -> Tier:
    return Tier(int(tier(curve_of(strength, coactivations), np.array([age_days]))[0]))


def documented_tier(salience: float, coactivations: int, age_days: float) -> Tier:
    recent = age_days < 6
    if recent and (coactivations > 5 or salience > 0.7):
        return Tier.HOT
    return Tier.WARM if recent or salience > 0.4 else Tier.COLD


def integrated(strength: float, coactivations: int, age_days: float) -> float:
    """Return retention by the midpoint method: in each small step, the rate of the tier at its middle."""
    rates = {Tier.HOT: 0.005, Tier.WARM: 0.02, Tier.COLD: 0.05}
    step, exponent = age_days / STEPS, 0.0
    for i in range(STEPS):
        salience = strength * math.exp(-exponent)
        rate = rates[documented_tier(salience, coactivations, (i + 0.5) * step)]
        exponent += rate * step / (strength + 0.1)
    return math.exp(-exponent)


@pytest.mark.parametrize("table", ["named", "curve"])
def test_golden_retention_salience_and_tiers_are_reproduced(table: str) -> None:
    rows = golden(table)
    curves = curve(rows["strength"], rows["coactivations"])

    fraction = retention(curves, rows["age_days"])

    np.testing.assert_allclose(fraction, rows["retention"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(rows["strength"] * fraction, rows["salience"], rtol=0, atol=TOLERANCE)
    assert [Tier(code).name.lower() for code in tier(curves, rows["age_days"])] == rows["tier"].tolist()


def test_golden_crossings_are_reproduced() -> None:
    rows = golden("crossings")
    curves = curve(rows["strength"], rows["coactivations"])

    np.testing.assert_allclose(curves.hot_until, rows["warm_at_days"], atol=1e-3)
    np.testing.assert_allclose(curves.cold_from, rows["cold_at_days"], atol=1e-3)
    for below in ("0.7", "0.5", "0.25"):
        column = f"below_{below.replace('.', '_')}_at_days"
        np.testing.assert_allclose(age_at_retention(curves, float(below)), rows[column], atol=1e-3)


def test_golden_strengths_are_reproduced() -> None:
    rows = golden("strength")

    np.testing.assert_allclose(strength(rows["base"], rows["coactivations"]), rows["strength"], rtol=1e-12)


@pytest.mark.parametrize(
    ("age_days", "fraction", "expected"),
    [(5, 0.867, Tier.WARM), (12, 0.710, Tier.WARM), (20, 0.440, Tier.COLD)],
)
def test_the_documented_life_of_a_warm_memory_is_reproduced(age_days: float, fraction: float, expected: Tier) -> None:
    assert kept(0.6, age_days) == pytest.approx(fraction, abs=5e-4)
    assert tier_of(0.6, age_days) == expected


def test_the_warm_memory_of_the_documents_turns_cold_after_a_fortnight() -> None:
    assert float(curve_of(0.6).cold_from[0]) == pytest.approx(14.19, abs=0.01)


def test_the_documented_hot_memory_stays_hot_and_all_but_whole() -> None:
    assert kept(0.8, 2) == pytest.approx(0.989, abs=5e-4)
    assert tier_of(0.8, 2) == Tier.HOT


def test_the_documented_session_context_is_cold_in_a_week_and_gone_in_45_days() -> None:
    assert float(curve_of(0.5).cold_from[0]) == pytest.approx(6.69, abs=0.01)
    assert kept(0.5, 45) == pytest.approx(0.033, abs=5e-4)


@pytest.mark.parametrize(
    ("strength", "age_days", "coactivations", "expected"),
    [(0.85, 2, 8, Tier.HOT), (0.55, 4, 0, Tier.WARM), (0.18, 45, 0, Tier.COLD)],
)
def test_the_documented_examples_of_each_tier_are_classified_so(
    strength: float, age_days: float, coactivations: int, expected: Tier
) -> None:
    assert tier_of(strength, age_days, coactivations) == expected


def test_hot_needs_more_than_five_coactivations_or_salience_above_0_7() -> None:
    assert tier_of(0.2, 1, coactivations=5) == Tier.WARM
    assert tier_of(0.2, 1, coactivations=6) == Tier.HOT
    assert tier_of(0.7, 0) == Tier.WARM
    assert tier_of(0.701, 0) == Tier.HOT


def test_recency_ends_at_exactly_six_days() -> None:
    just_before = math.nextafter(6, 0)

    assert tier_of(0.2, just_before, coactivations=9) == Tier.HOT
    assert tier_of(0.2, 6, coactivations=9) == Tier.COLD
    assert tier_of(1.0, 6) == Tier.WARM


def test_even_the_strongest_memory_turns_cold_when_it_is_not_used() -> None:
    assert tier_of(1.0, 60, coactivations=30) == Tier.COLD


def test_a_hit_lifts_a_cold_memory_from_0_35_to_0_85_and_makes_it_hot() -> None:
    base = base_for(np.minimum(np.array([0.35]) + 0.5, 1.0), np.array([1]))

    lifted = strength(base, np.array([1]))

    assert lifted == pytest.approx([0.85])
    assert tier(curve(lifted, np.array([1])), np.zeros(1)) == [Tier.HOT]


def test_a_strength_of_zero_stays_zero_and_still_has_a_curve() -> None:
    assert strength(np.zeros(1), np.array([7])) == [0.0]
    assert kept(0.0, 10) == pytest.approx(math.exp(-(0.02 * 6 + 0.05 * 4) / 0.1))


def test_a_memory_last_seen_in_the_future_is_as_fresh_as_one_seen_now() -> None:
    assert kept(0.6, -3) == 1.0
    assert tier_of(0.8, -3) == tier_of(0.8, 0)


def test_before_the_tier_changes_the_curve_is_the_documented_formula() -> None:
    assert kept(0.95, 5) == pytest.approx(math.exp(-0.005 * 5 / (0.95 + 0.1)), rel=1e-12)
    assert kept(0.6, 5) == pytest.approx(math.exp(-0.02 * 5 / (0.6 + 0.1)), rel=1e-12)


@given(shares, counts, st.floats(0, 120))
@examples(40)
def test_the_closed_form_equals_numeric_integration(strength: float, coactivations: int, age: float) -> None:
    # Each of the three bends may fall within a step, part of which then has the wrong rate.
    error = 3 * (age / STEPS) * 0.05 / (strength + 0.1)

    expected = integrated(strength, coactivations, age)

    assert kept(strength, age, coactivations) == pytest.approx(expected, rel=error + 1e-9)


@given(shares, counts, ages, ages)
@properties
def test_retention_is_a_share_that_never_rises_with_age(s: float, coactivations: int, a: float, b: float) -> None:
    early, late = kept(s, min(a, b), coactivations), kept(s, max(a, b), coactivations)

    assert 0 <= late <= early <= 1


@given(shares, counts, ages)
@properties
def test_the_tier_is_what_the_criteria_say_of_salience_now(s: float, coactivations: int, age: float) -> None:
    salience = s * kept(s, age, coactivations)
    assume(abs(salience - 0.7) > 1e-9 and abs(salience - 0.4) > 1e-9)

    assert tier_of(s, age, coactivations) == documented_tier(salience, coactivations, age)


@given(shares, counts, ages, ages)
@properties
def test_without_use_a_memory_never_gets_warmer(s: float, coactivations: int, a: float, b: float) -> None:
    assert tier_of(s, min(a, b), coactivations) <= tier_of(s, max(a, b), coactivations)


@given(shares, counts, st.floats(1e-6, 1))
@properties
def test_age_at_retention_is_the_inverse_of_retention(s: float, coactivations: int, fraction: float) -> None:
    age = float(age_at_retention(curve_of(s, coactivations), fraction)[0])

    assert age >= 0
    assert kept(s, age, coactivations) == pytest.approx(fraction, rel=1e-9)


def test_all_of_a_memory_is_left_at_age_0_and_none_of_it_never() -> None:
    ages = [float(age_at_retention(curve_of(0.6), fraction)[0]) for fraction in (1.0, 1.5, 0.0)]

    assert ages == [0.0, 0.0, math.inf]


@given(shares, counts)
@properties
def test_base_for_is_the_inverse_of_strength(wanted: float, coactivations: int) -> None:
    times = np.array([coactivations])

    assert strength(base_for(np.array([wanted]), times), times) == pytest.approx([wanted], rel=1e-12)


@given(shares, counts)
@properties
def test_strength_is_a_share_that_never_falls_with_coactivations(base: float, coactivations: int) -> None:
    fewer, more = strength(np.array([base, base]), np.array([coactivations, coactivations + 1]))

    assert 0 <= fewer <= more <= 1


def test_a_whole_array_gives_what_each_fact_alone_gives() -> None:
    rows = golden("curve")

    together = retention(curve(rows["strength"], rows["coactivations"]), rows["age_days"])

    alone = [kept(*one) for one in zip(rows["strength"], rows["age_days"], rows["coactivations"], strict=True)]
    assert together.tolist() == pytest.approx(alone, rel=1e-12)
