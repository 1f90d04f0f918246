"""Value: each thing that speaks for a fact raises it, used counts more than shown, and time reorders nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.confidence import DAY
from workers.core.value import WEIGHTS, Standing, rank, value

NOW = 1_800_000_000.0
ORDINARY: dict[str, float] = {
    "content": 0.5, "importance": 0.5, "strength": 0.5, "seen_at": NOW, "shown": 0, "used": 0, "links": 0
}  # fmt: skip


def standing(*facts: dict[str, Any]) -> Standing:
    return Standing(**{name: np.array([(ORDINARY | one)[name] for one in facts]) for name in ORDINARY})


@pytest.mark.parametrize(
    "better",
    [
        {"content": 0.6},
        {"importance": 0.6},
        {"strength": 0.6},
        {"seen_at": NOW + DAY},
        {"shown": 1},
        {"used": 1},
        {"links": 1},
    ],
)
def test_every_input_in_favour_of_a_fact_raises_its_value(better: dict[str, float]) -> None:
    ordinary, raised = value(rank(standing({}, better)), NOW)
    assert ordinary < raised


def test_being_used_counts_more_than_being_shown() -> None:
    shown, used = rank(standing({"shown": 3}, {"used": 3}))
    assert shown < used


def test_an_ordinary_fact_that_was_just_seen_has_the_odds_of_its_strength() -> None:
    assert value(rank(standing({})), NOW)[0] == pytest.approx(1 / (1 + np.exp(-0.5 * WEIGHTS.strength)))


def test_a_pin_without_end_is_worth_most() -> None:
    assert value(rank(standing({"seen_at": np.inf, "content": 0})), NOW)[0] == pytest.approx(1)


@given(
    st.lists(
        st.tuples(*[st.floats(0, 1)] * 3, st.floats(0, 4e9), *[st.integers(0, 2**31 - 1)] * 3), min_size=2, max_size=9
    ),
    st.floats(0, 4e9),
    st.floats(0, 4e9),
)
def test_values_are_in_bounds_and_time_reorders_nothing(
    rows: list[tuple[float, ...]], now: float, later: float
) -> None:
    ranks = rank(standing(*(dict(zip(ORDINARY, row, strict=True)) for row in rows)))
    order = np.argsort(ranks, kind="stable")
    for instant in (now, later):
        values = value(ranks, instant)
        assert ((values >= 0) & (values <= 1)).all()
        assert (np.diff(values[order]) >= 0).all()


def test_weights_can_leave_a_part_out() -> None:
    ranks = rank(standing({"shown": 9}, {}), replace(WEIGHTS, shown=0.0))
    assert ranks[0] == ranks[1]
