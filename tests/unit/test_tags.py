"""Tags: the documented examples, and no false topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.names import PATTERNS, extract_tags


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("NIBE F1245 uses Modbus TCP on port 502", ["nibe"]),
        ("Home Assistant Zigbee coordinator on /dev/ttyUSB0", ["homeassistant", "zigbee"]),
        ("OAuth token for the API endpoint", ["auth", "api"]),
    ],
)
def test_the_documented_examples_hold_to_the_letter(text: str, tags: list[str]) -> None:
    assert extract_tags(text) == tags


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("Z-Wave and zwave sticks", ["z-wave"]),
        ("auth, oauth, authentication, Authorization", ["auth"]),
        ("homeassistant, home-assistant", ["homeassistant"]),
        ("PostgreSQL, not SQLite; LanceDB beside Postgres", ["postgres", "sqlite", "lancedb"]),
        ("Docker on k8s, later Kubernetes", ["docker", "kubernetes"]),
        ("openclaw has APIs", ["openclaw", "api"]),
        ("the HA server", ["ha"]),
        ("api_key and docker_compose", ["api", "docker"]),
        ("在docker说", ["docker"]),
    ],
)
def test_every_built_in_topic_is_found(text: str, tags: list[str]) -> None:
    assert extract_tags(text) == tags


@pytest.mark.parametrize(
    "text", ["kubernetesish xk8s", "author authored", "rapid capital", "ha ha", "dockerised", "Ohana, aha", ""]
)
def test_part_of_a_word_is_not_a_topic(text: str) -> None:
    assert extract_tags(text) == []


def test_a_topic_comes_where_it_is_named_first() -> None:
    assert extract_tags("Zigbee in Home Assistant, home assistant with zigbee") == ["zigbee", "homeassistant"]


def test_an_entity_that_is_a_topic_adds_its_tag_once() -> None:
    assert extract_tags("It runs on port 502", "nibe") == ["nibe"]
    assert extract_tags("It restarts at four", "ha") == ["ha"]
    assert extract_tags("The API of Zigbee", "Home Assistant API") == ["api", "zigbee", "homeassistant"]


def test_all_thirteen_topics_are_known() -> None:
    assert len(PATTERNS) == 13


@given(st.text(), st.none() | st.text())
def test_tags_are_known_and_each_once(text: str, entity: str | None) -> None:
    found = extract_tags(text, entity)
    assert len(found) == len(set(found))
    assert set(found) <= PATTERNS.keys()
