"""Episodes: their branch, and the turn limit after which they age out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.episodes import Branch, branch, durability, past_turn_limit

turns = st.integers(0, 2**40)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("semantic", None, Branch.SEMANTIC),
        ("chunk", None, Branch.CHUNK),
        ("episodic", None, Branch.PERSISTENT),
        ("episodic", "persistent", Branch.PERSISTENT),
        ("episodic", "permanent", Branch.PERMANENT),
    ],
)
def test_kind_and_durability_give_the_branch(kind: str, given: str | None, expected: Branch) -> None:
    assert branch(kind, given) == expected


def test_only_episodes_have_a_durability() -> None:
    assert [durability(one) for one in Branch] == [None, "persistent", "permanent", None]


@pytest.mark.parametrize(("passed", "expected"), [(0, False), (499, False), (500, False), (501, True)])
def test_an_episode_outlives_five_hundred_turns_and_not_one_more(passed: int, expected: bool) -> None:
    assert past_turn_limit(np.array([7]), np.array([7 + passed]), 500.0).tolist() == [expected]


@given(turns, turns, st.integers(1, 10**9))
def test_a_counter_behind_an_episode_passes_no_limit(occurred: int, now: int, most: int) -> None:
    assert past_turn_limit(np.array([occurred]), np.array([now]), float(most)).tolist() == [now - occurred > most]


def test_a_turn_limit_that_is_off_is_never_passed() -> None:
    assert past_turn_limit(np.array([0]), np.array([2**62]), np.inf).tolist() == [False]
