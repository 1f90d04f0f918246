"""The paths of items, and which documents a filter takes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.documents.items import satisfies
from workers.errors import InvalidInputError
from workers.validation.items import document, filters, item_key, item_path, labels, minutes

LABELS = st.lists(
    st.text(st.characters(), min_size=1, max_size=6) | st.sampled_from(["a", '"', '"/', "/", "\\"]), max_size=4
)


@given(LABELS)
def test_a_path_is_read_back_as_it_was(path: list[str]) -> None:
    assert labels(item_path(path)) == path


@given(LABELS, LABELS)
def test_one_path_begins_another_just_where_its_labels_do(one: list[str], two: list[str]) -> None:
    assert item_path(one).startswith(item_path(two)) == (one[: len(two)] == two)


def test_halves_of_characters_are_kept_in_paths_that_postgresql_can_store() -> None:
    path = item_path(["a\ud800", "b\0"])

    assert path.encode()
    assert "\0" not in path
    assert labels(path) == ["a\ud800", "b\0"]


@pytest.mark.parametrize("path", ["users", [""], [7], None, ["x" * 1_100]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(InvalidInputError, match="path: "):
        item_path(path)


@pytest.mark.parametrize("given_document", ["[]", "7", "{", {"a": 1}, '{"a": "ä"}', '{"a": "' + "x" * 600_000 + '"}'])
def test_what_is_no_document_is_refused(given_document: Any) -> None:
    with pytest.raises(InvalidInputError, match="document: "):
        document(given_document)


def test_a_document_stays_as_it_was_written() -> None:
    text = json.dumps({"b": 1.0, "a": "ä\0\ud800"})
    assert document(text) == text


@pytest.mark.parametrize("ttl", [0, -1, True, "5", float("inf"), float("nan")])
def test_what_is_no_lifetime_is_refused(ttl: Any) -> None:
    with pytest.raises(InvalidInputError, match="ttl: "):
        minutes(ttl)


@pytest.mark.parametrize("key", [None, "", " ", 7, "a\0"])
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidInputError, match="key: "):
        item_key(key)


@pytest.mark.parametrize("wish", [7, [], {"a": {"$in": [1]}}])
def test_what_is_no_filter_is_refused(wish: Any) -> None:
    with pytest.raises(InvalidInputError, match="filter: "):
        filters(wish)


@pytest.mark.parametrize(
    ("wanted", "taken"),
    [
        ({}, True),
        ({"a": 1}, True),
        ({"a": 1.0}, True),
        ({"a": "1"}, False),
        ({"a": {"$gt": "0"}}, False),
        ({"a": {"$gte": 1, "$lte": 1}}, True),
        ({"a": {"$gte": 1, "$lt": 1}}, False),
        ({"absent": {"$lt": 5}}, False),
        ({"absent": {"$ne": 5}}, True),
        ({"b": {"c": [1]}}, True),
        ({"b": {"c": [1], "d": None}}, True),
        ({"b": {"c": [2]}}, False),
    ],
)
def test_a_filter_compares_fields(wanted: dict[str, Any], taken: bool) -> None:
    assert satisfies({"a": 1, "b": {"c": [1], "e": 2}}, wanted) is taken
