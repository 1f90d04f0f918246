"""Gains from links: never more than a share of the linked fact's relevance, in any topology."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.ranking import HOPS, begins_with_name, hop_factors, link_gains

properties = examples(100)
shares = st.floats(0, 1)
walks = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 3), shares), max_size=20)


def lifted(relevance: list[float], walked: list[tuple[int, int, int, float]]) -> list[float]:
    reached, seeds, hops = (np.array([walk[i] for walk in walked], dtype=np.int64) for i in range(3))
    strengths = np.array([walk[3] for walk in walked], dtype=np.float64)
    gained = link_gains(np.array(relevance), reached, seeds, hop_factors(hops, strengths))
    return list((np.array(relevance) + gained).tolist())


def test_a_fact_counts_as_a_share_of_what_it_is_linked_with() -> None:
    assert HOPS == (1.0, 0.7, 0.5, 0.35)
    assert lifted([1.0, 0.0, 0.2, 0.9], [(1, 0, 1, 1.0), (2, 0, 2, 0.8), (3, 0, 3, 1.0)]) == [
        1.0, pytest.approx(0.7), pytest.approx(0.4), 0.9
    ]  # fmt: skip


@given(st.lists(shares, min_size=8, max_size=8), walks)
@properties
def test_no_score_falls_and_none_gets_ahead_of_the_best(
    relevance: list[float], walked: list[tuple[int, int, int, float]]
) -> None:
    after = lifted(relevance, walked)
    for place, (before, now) in enumerate(zip(relevance, after, strict=True)):
        from_ = [relevance[seed] for reached, seed, _, _ in walked if reached == place]
        assert before <= now <= max([before, *(0.7 * one + 1e-12 for one in from_)])


def test_without_walks_nothing_is_gained() -> None:
    assert lifted([0.5] * 8, []) == [0.5] * 8


def test_only_what_begins_with_a_name_does() -> None:
    texts = ["Zoë paints", '"zoe" is short', "Bjo\u0308rn paints", "Zoes", "I met Zoe", "...", ""]
    assert begins_with_name(texts, {"zoe", "bjorn"}).tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert begins_with_name(["Zoe", ""], frozenset()).tolist() == [0, 0]
