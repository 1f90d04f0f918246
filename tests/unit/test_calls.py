"""Requests of the library: what cannot be sent is refused with a message."""

from typing import Any

import pytest
from ebb import InvalidInputError, Memory

ADDRESS = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": "half \ud800 a character"}, r"lone surrogate.*half \\ud800'"),
        ({"text": "x", "metadata": {"\udfff": 1}}, "lone surrogate"),
        ({"text": "x", "importance": float("nan")}, "not a number"),
    ],
)
def test_values_that_json_cannot_hold_are_refused_before_they_are_sent(given: dict[str, Any], said: str) -> None:
    with Memory(ADDRESS) as memory, pytest.raises(InvalidInputError, match=said):
        memory.store(**given)


def test_filters_and_namespaces_that_cannot_be_sent_are_refused() -> None:
    with Memory(ADDRESS) as memory:
        with pytest.raises(InvalidInputError, match="lone surrogate"):
            memory.facts(tag="\ud800")
        with pytest.raises(InvalidInputError, match="namespace"):
            memory.namespace("Jos\u00e9").stats()
