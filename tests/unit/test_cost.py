"""The cost of a recall, and the highest limit within a cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core import cost


@pytest.mark.parametrize(
    ("limit", "query_bytes", "explain", "expected"),
    [(10, 60, False, 10), (10, 60, True, 40), (100, 8_192, False, 300), (1_000, 60_000, True, 60_000)],
)
def test_facts_explanations_and_words_multiply(limit: int, query_bytes: int, explain: bool, expected: int) -> None:
    assert cost.recall_cost(limit, query_bytes, explain=explain) == expected


@given(st.integers(1, 10_000), st.integers(0, 600_000), st.booleans())
def test_the_advised_number_of_facts_is_the_most_that_the_cost_allows(most: int, size: int, explain: bool) -> None:
    facts = cost.most_facts(most, size, explain=explain)
    assert facts == 0 or cost.recall_cost(facts, size, explain=explain) <= most
    assert cost.recall_cost(facts + 1, size, explain=explain) > most
