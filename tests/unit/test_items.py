"""Paths of items, and filters on documents."""

import json
import math
from typing import Any

import pytest
from ebb.contract.documents import ListItems, PutItem
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from workers.documents.items import item_path, labels, satisfies
from workers.errors import InvalidInputError

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


def test_a_path_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="path: "):
        item_path(["x" * 1_100])


PLACE = {"path": ["sheds"], "key": "oats", "document": "{}"}
REFUSED: list[tuple[str, list[Any]]] = [
    ("path", ["users", [], [""], [7], None, ["a" + "\u0301" * 1_001]]),
    ("document", ["[]", "7", "{", {"a": 1}, '{"a": "ä"}', '{"a": "' + "x" * 600_000 + '"}']),
    ("ttl", [0, -1, True, "5", float("inf"), float("nan"), 10**400]),
    ("key", [None, "", " ", 7, "a\0", " oats", "oats\n"]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in REFUSED for value in values])
def test_invalid_items_are_refused_by_field_name(name: str, value: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        PutItem.model_validate(PLACE | {name: value})
    assert refused.value.errors()[0]["loc"][0] == name


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", '[{"deep": NaN}]'])
def test_a_document_has_no_values_that_json_has_not(value: str) -> None:
    with pytest.raises(ValidationError, match="must be JSON, without NaN or infinity"):
        PutItem.model_validate(PLACE | {"document": f'{{"size": {value}}}'})
    assert PutItem.model_validate(PLACE | {"document": f'{{"size": {json.dumps(value)}}}'})


@pytest.mark.parametrize("wanted", [{"size": math.nan}, {"size": {"$lt": math.inf}}, {"a": [{"deep": [-math.inf]}]}])
def test_a_filter_has_no_values_that_json_has_not(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="must be JSON, without NaN or infinity"):
        ListItems.model_validate({"path": [], "filter": wanted})


def test_a_document_is_nested_no_deeper_than_every_worker_can_read() -> None:
    for levels in 101, 900:
        with pytest.raises(ValidationError, match="must be nested at most 100 levels deep"):
            PutItem.model_validate(PLACE | {"document": '{"a":' * levels + "1" + "}" * levels})
    assert PutItem.model_validate(PLACE | {"document": '{"a":' * 99 + "1" + "}" * 99})


@pytest.mark.parametrize("path", [["a\ud800"], ["b\0"], ("a", "b")])
def test_labels_may_be_any_text(path: list[str]) -> None:
    assert PutItem(**PLACE | {"path": path}).path == list(path)


def test_a_document_stays_as_it_was_written() -> None:
    text = json.dumps({"b": 1.0, "a": "ä\0\ud800"})
    assert PutItem(**PLACE | {"document": text}).document == text


@pytest.mark.parametrize("wanted", [7, [], {"a": {"$in": [1]}}])
def test_invalid_filters_are_refused(wanted: Any) -> None:
    with pytest.raises(ValidationError, match="filter"):
        ListItems.model_validate({"filter": wanted})


def test_a_filter_is_nested_no_deeper_than_can_be_sent() -> None:
    wanted: dict[str, Any] = {"a": 1}
    for _ in range(98):
        wanted = {"a": wanted}
    asked = ListItems.model_validate({"filter": wanted})
    assert asked.model_dump(mode="json")["filter"] == wanted
    with pytest.raises(ValidationError, match=r"filter\n.*must be nested at most 100 levels deep"):
        ListItems.model_validate({"filter": {"a": {"a": wanted}}})


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
        ({"b.c": [1]}, True),
        ({"b.c.d": None}, True),
        ({"a.b": 1}, False),
    ],
)
def test_a_filter_compares_fields(wanted: dict[str, Any], taken: bool) -> None:
    assert satisfies({"a": 1, "b": {"c": [1], "e": 2}}, wanted) is taken
