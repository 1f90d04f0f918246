"""Texts of messages: formats of providers, tool calls, and skipped messages."""

from typing import Any

import pytest

from workers.core.conversation import skipped, split, utterances

CALL = {"function": {"name": "search", "arguments": '{"q": "tea"}'}, "type": "function", "id": "call_1"}


@pytest.mark.parametrize(
    ("message", "role", "text"),
    [
        ("I moved to Leipzig.", "user", "I moved to Leipzig."),
        ({"role": "user", "content": "Hello"}, "user", "Hello"),
        ({"role": "human", "text": "Hello"}, "user", "Hello"),
        ({"role": "chatbot", "content": "Hello"}, "assistant", "Hello"),
        ({"sender": "assistant", "content": [{"type": "text", "text": "Hi"}]}, "assistant", "Hi"),
        ({"role": "model", "parts": [{"text": "one"}, {"text": "two"}]}, "assistant", "one\ntwo"),
        ({"role": "user", "content": [{"type": "input_text", "text": "See"}, {"type": "input_image"}]}, "user", "See"),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "tool", 'search({"q": "tea"})'),
        ({"role": "tool", "tool_call_id": "call_1", "content": "Sencha"}, "tool", "Sencha"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "name": "search", "input": {"q": "tea"}}]},
            "tool", 'search({"q": "tea"})',
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "Sencha"}]}]},
            "tool", "Sencha",
        ),
        ({"type": "function_call", "name": "search", "arguments": "{}"}, "tool", "search({})"),
        ({"type": "function_call_output", "output": "Sencha"}, "tool", "Sencha"),
        ({"role": "model", "parts": [{"functionCall": {"name": "tea", "args": {"q": 1}}}]}, "tool", 'tea({"q": 1})'),
        (
            {"role": "user", "parts": [{"functionResponse": {"name": "tea", "response": {"is": "Sencha"}}}]},
            "tool", '{"is": "Sencha"}',
        ),
        (
            {"role": "user", "content": "<memory-context>\n[fact] Old\n</memory-context>\n\nWhere is it?"},
            "user", "Where is it?",
        ),
    ],
)  # fmt: skip
def test_a_message_of_a_provider_says_its_words(message: Any, role: str, text: str) -> None:
    (found,) = utterances([message])

    assert (found.role, found.text) == (role, text)


def test_text_and_tool_call_of_one_message_are_two_turns() -> None:
    message = {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL], "created_at": 1_700_000_000}

    assert [(one.role, one.at) for one in utterances([message])] == [
        ("assistant", 1_700_000_000),
        ("tool", 1_700_000_000),
    ]


def test_messages_without_words_or_to_the_system_are_left_out() -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}]},
        {"role": "user", "content": {"odd": 1}},
        17,
        {"role": "user", "content": "Hello"},
    ]

    assert skipped(messages, utterances(messages)) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("short", ["short"]),
        ("one two. three four", ["one two.", "three four"]),
        ("one two\n\nthree four", ["one two", "three four"]),
        ("ééééééé", ["ééééé", "éé"]),
        ("x" * 25, ["x" * 10, "x" * 10, "x" * 5]),
        ("", []),
    ],
)
def test_a_long_text_is_cut_where_something_ends(text: str, parts: list[str]) -> None:
    assert list(split(text, 12 if " " in text else 10)) == parts


def test_a_text_is_cut_in_time_that_grows_with_its_length() -> None:
    assert len(list(split("word " * 16_000_000, 1_000))) == 80_000


def test_half_a_character_is_cut_as_one_of_three_bytes() -> None:
    assert list(split("\ud83d" * 5, 10)) == ["\ud83d" * 3, "\ud83d" * 2]


def test_a_result_before_the_words_of_a_message_is_the_earlier_turn() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "Sencha"}
    message = {
        "role": "user",
        "content": [result, {"type": "text", "text": "Thanks."}, {"type": "text", "text": "Bye"}],
    }

    assert [(one.role, one.text) for one in utterances([message])] == [("tool", "Sencha"), ("user", "Thanks.\nBye")]


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts":[{"id":"ee6335a7-0cb0-5d5d-abb8-26e2d3898ba8","text":"I moved."}]}',
        '[{"id": "ee6335a7-0cb0-5d5d-abb8-26e2d3898ba8", "text": "I moved.", "said": "2026-05-01"}]',
        '[{"id":"ee6335a7-0cb0-5d5d-abb8-26e2d3898ba8","text":"[a]","passage":{"start":0},"fidelity":"full"}]',
        '{"facts":[],"deep":0}',
        '{"context":"<memory-context>\\n[a] I moved.\\n</memory-context>","ids":[]}',
        '{"context":"","ids":[]}',
    ],
)
def test_answers_of_memory_in_a_conversation_are_not_stored_again(answer: str) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": answer}]}

    assert utterances([{"role": "tool", "content": answer}, {"role": "user", "content": [result]}]) == []
    assert len(utterances([{"role": "user", "content": answer}, {"role": "tool", "content": '{"facts": [1]}'}])) == 2


@pytest.mark.parametrize("text", ["I moved.", ', \\"said\\": 1'])
def test_texts_with_ids_from_other_tools_are_kept(text: str) -> None:
    answer = f'[{{"id": "ee6335a7-0cb0-5d5d-abb8-26e2d3898ba8", "text": "{text}", "url": "https://example.org"}}]'

    (found,) = utterances([{"role": "tool", "content": answer}])
    assert found.text == answer


def test_a_message_of_blanks_takes_time_in_proportion_to_its_length() -> None:
    (found,) = utterances([{"role": "user", "content": f"a{' ' * 4_000_000}b"}], 5_000_000)
    assert len(found.text) == 4_000_002


def test_a_refusal_beside_an_empty_content_is_what_the_assistant_said() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot say that."}
    assert [(one.role, one.text) for one in utterances([message])] == [("assistant", "I cannot say that.")]
