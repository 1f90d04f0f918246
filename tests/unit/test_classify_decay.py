"""Classification of facts without decay class: by words, and never a short lifetime because of part of a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.lifetime import LIFETIMES, RULES, classify_decay

PERMANENT_NAMES = [
    "name", "email", "api_key", "api_endpoint", "architecture", "decision", "birthday", "born", "phone", "language",
    "location",
]  # fmt: skip
SESSION_NAMES = ["current_file", "temp", "debug", "working_on_right_now"]
ACTIVE_NAMES = ["task", "todo", "wip", "branch", "sprint", "blocker"]


def by_key(key: str) -> str:
    return classify_decay("Mira", key, "blue", "It is so.")


def by_entity(entity: str) -> str:
    return classify_decay(entity, "colour", "blue", "It is so.")


def by_text(text: str) -> str:
    return classify_decay("Mira", "colour", "blue", text)


@pytest.mark.parametrize("key", PERMANENT_NAMES)
def test_identifying_keys_and_entities_are_permanent(key: str) -> None:
    assert by_key(key) == by_entity(key) == "permanent"


@pytest.mark.parametrize("entity", ["decision", "convention", "Convention"])
def test_decisions_and_conventions_are_permanent(entity: str) -> None:
    assert by_entity(entity) == "permanent"


def test_a_convention_is_one_only_as_the_whole_entity() -> None:
    assert by_entity("Geneva Convention") == "stable"
    assert by_key("convention") == "stable"


@pytest.mark.parametrize(
    "text",
    [
        "We decided to move to Leipzig.",
        "The architecture is hexagonal.",
        "Always use tabs.",
        "NEVER USE force push.",
        "We should always\n  use UTC.",
    ],
)
def test_texts_about_decisions_are_permanent(text: str) -> None:
    assert by_text(text) == "permanent"


@pytest.mark.parametrize("key", SESSION_NAMES)
def test_temporary_keys_last_a_session(key: str) -> None:
    assert by_key(key) == "session"


@pytest.mark.parametrize("text", ["Currently debugging the login.", "She sleeps right now.", "Only in this session."])
def test_texts_about_the_current_session_last_a_session(text: str) -> None:
    assert by_text(text) == "session"


@pytest.mark.parametrize("key", ACTIVE_NAMES)
def test_a_key_of_work_is_active(key: str) -> None:
    assert by_key(key) == "active"


@pytest.mark.parametrize(
    "text",
    [
        "Mira is working on a novel.",
        "I need to call Ben.",
        "TODO: buy bread",
        "A blocker, sadly.",
        "Planned this sprint.",
    ],
)
def test_texts_about_work_are_active(text: str) -> None:
    assert by_text(text) == "active"


@pytest.mark.parametrize("word", ["checkpoint", "preflight"])
def test_checkpoints_are_known_by_key_and_by_text(word: str) -> None:
    assert by_key(word) == by_key(f"{word}_state") == by_text(f"The {word} is done.") == "checkpoint"


def test_everything_else_is_stable() -> None:
    assert classify_decay("Mira", "coffee", "black", "Mira takes her coffee black.") == "stable"
    assert classify_decay(None, None, None, "Mira takes her coffee black.") == "stable"
    assert classify_decay("", "", "", "") == "stable"


@pytest.mark.parametrize(
    ("key", "decay_class"),
    [
        ("apiKey", "permanent"), ("openai_api_key", "permanent"), ("API-ENDPOINT", "permanent"),
        ("APIEndpoint", "permanent"), ("user.email", "permanent"), ("First Name", "permanent"), ("tempDir", "session"),
        ("currentFile", "session"), ("workingOnRightNow", "session"), ("git.branch", "active"), ("nextTask", "active"),
    ],
)  # fmt: skip
def test_identifiers_are_compared_word_by_word(key: str, decay_class: str) -> None:
    assert by_key(key) == decay_class


@pytest.mark.parametrize(
    "key",
    [
        "hostname", "filename", "username", "relocation", "template", "contemporary", "attempt", "multitask", "wipe",
        "key_api", "api", "file_current", "tasks2",
    ],
)  # fmt: skip
def test_a_part_of_a_word_does_not_match(key: str) -> None:
    assert by_key(key) == by_entity(key) == "stable"


@pytest.mark.parametrize(
    "text",
    ["Ben is undecided.", "The multitodo app.", "She sprinted home.", "A bright nothing.", "The todo_list file."],
)
def test_a_part_of_a_word_in_the_text_does_not_match(text: str) -> None:
    assert by_text(text) == "stable"


def test_the_first_rule_that_fits_decides() -> None:
    assert classify_decay(None, "email", None, "I need to write this checkpoint right now.") == "permanent"
    assert classify_decay(None, "task", None, "It is due right now.") == "session"
    assert classify_decay(None, "checkpoint", None, "I need to resume here.") == "active"
    assert classify_decay(None, "checkpoint", None, "The build is green.") == "checkpoint"


def test_only_some_names_count_in_the_entity() -> None:
    assert by_entity("task") == by_entity("temp") == by_entity("checkpoint") == "stable"


def test_the_value_has_no_effect() -> None:
    assert classify_decay("Mira", "colour", "email todo checkpoint", "It is so.") == "stable"


def test_other_alphabets_have_words_too() -> None:
    assert by_text("日本語 checkpoint です") == "checkpoint"
    assert by_text("Überarchitecture") == "stable"


@given(st.text(), st.text(), st.text())
def test_any_text_gets_one_of_the_five_classes(entity: str, key: str, text: str) -> None:
    assert classify_decay(entity, key, None, text) in {"permanent", "session", "active", "checkpoint", "stable"}


def test_every_rule_gives_a_class_that_there_is() -> None:
    assert {rule.decay_class for rule in RULES} <= set(LIFETIMES)
