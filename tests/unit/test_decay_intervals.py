"""Decay intervals survive packing with sufficient precision, and their number is bounded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core import decay_intervals
from workers.core.fading import Anchors
from workers.core.tiers import strength

AT = 1.7e9


def anchors(base: float, coactivations: int, seen: float, pinned: float = -np.inf) -> Anchors:
    one, none = np.ones(1), np.zeros(1, dtype=np.int64)
    return Anchors(
        base=np.array([base]), coactivations=np.array([coactivations]), last_seen_at=np.array([seen]),
        confidence=one, confirmed_at=np.array([seen]), expires_at=np.array([np.inf]),
        permanent=np.zeros(1, dtype=np.bool_), fidelity=none, pinned_until=np.array([pinned]), halvings=none,
        branch=none, encoded_at=-np.inf * one, outrun_at=np.inf * one, silent_since=np.array([seen]),
        stale=np.zeros(1, dtype=np.bool_),
    )  # fmt: skip


@given(base=st.floats(0, 1), coactivations=st.integers(0, 10**6), seen=st.floats(0, 4e9), later=st.floats(1, 1e8))
def test_packed_intervals_are_restored(base: float, coactivations: int, seen: float, later: float) -> None:
    (packed,) = decay_intervals.over(anchors(base, coactivations, seen), anchors(1, coactivations + 1, seen + later))
    (spell,) = decay_intervals.read(packed)
    assert len(packed) == decay_intervals.PACKED.size
    assert seen - 1 < spell.begins <= seen
    assert spell.fades_from == spell.begins
    assert spell.strength == pytest.approx(strength(np.array([base]), np.array([coactivations]))[0], abs=1e-5)
    assert (spell.coactivations > 5) == (coactivations > 5)


def test_an_unfinished_interval_is_not_kept() -> None:
    same = anchors(0.5, 0, AT)
    assert decay_intervals.over(same, same) == [b""]
    assert decay_intervals.read(b"") == []


@pytest.mark.parametrize(("pinned", "fades_from"), [(AT + 50, AT + 50), (np.inf, np.inf), (AT - 50, AT)])
def test_a_pin_that_held_a_fact_is_reported(pinned: float, fades_from: float) -> None:
    (packed,) = decay_intervals.over(anchors(0.5, 0, AT, pinned), anchors(1, 1, AT + 100))
    assert decay_intervals.read(packed) == [
        decay_intervals.DecayInterval(AT, fades_from, pytest.approx(0.5, abs=1e-5), 0)
    ]


def test_decay_intervals_are_listed_oldest_first() -> None:
    packed = b"".join(decay_intervals.over(anchors(0.5, 0, AT + n), anchors(1, 1, AT + n + 1))[0] for n in (3, 2, 1))
    assert [spell.begins - AT for spell in decay_intervals.read(packed)] == [1, 2, 3]


def test_decay_intervals_of_one_second_are_listed_as_they_ended() -> None:
    stored, recalled = anchors(0.0, 0, AT + 0.1), anchors(0.5, 0, AT + 0.3)
    packed = b"".join(decay_intervals.over(one, anchors(1, 0, AT + 0.5))[0] for one in (recalled, stored))
    assert [round(one.strength, 2) for one in decay_intervals.read(packed)] == [0.0, 0.5]
