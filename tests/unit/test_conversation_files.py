"""Files of conversations: plain messages, and exports of ChatGPT and Claude."""

import gzip
import io
import json
import warnings
import zipfile
from typing import Any

import pytest
from hypothesis import given
from made_up import examples, spoilt_within

from api.contrib.conversations import conversations
from workers.core.conversation import utterances
from workers.errors import InvalidInputError

CHATGPT = {
    "title": "Tea",
    "conversation_id": "c1",
    "current_node": "d",
    "mapping": {
        "a": {"message": None, "parent": None},
        "b": {
            "message": {"author": {"role": "user"}, "create_time": 1.7e9, "content": {"parts": ["Which tea?"]}},
            "parent": "a",
        },
        "c": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Replaced."]}}, "parent": "b"},
        "d": {"message": {"author": {"role": "assistant"}, "content": {"parts": ["Sencha."]}}, "parent": "b"},
    },
}
CLAUDE = {
    "uuid": "c2",
    "chat_messages": [
        {"uuid": "m1", "text": "", "sender": "human", "content": [{"type": "text", "text": "Which tea?"}]},
        {"uuid": "m2", "text": "Sencha.", "sender": "assistant", "created_at": "2025-01-31T08:00:00Z"},
    ],
}
PLAIN = [{"role": "user", "content": "Which tea?"}, {"role": "assistant", "content": "Sencha."}]


BRANCH = [
    {"uuid": "m1", "parent_message_uuid": "m0", "sender": "human", "text": "Which tea?"},
    {"uuid": "m2", "parent_message_uuid": "m1", "sender": "assistant", "text": "Sencha.", "attachments": [{}]},
]


def archive(**files: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return target.getvalue()


def zipped(content: bytes) -> bytes:
    return archive(**{"user.json": b"{}", "conversations.json": content})


def said(content: Any) -> list[tuple[str, str]]:
    """Return role and text of each turn in a file of one conversation."""
    (found,) = conversations(io.BytesIO(json.dumps(content).encode()))
    return [(one.role, one.text) for one in utterances(found.messages)]


def chatgpt(*messages: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return a conversation of ChatGPT with messages that follow each other."""
    nodes = {
        str(place): {"id": str(place), "message": message, "parent": str(place - 1) if place else None, "children": []}
        for place, message in enumerate([None, *messages])
    }
    return [{"id": "c", "mapping": nodes, "current_node": str(len(messages)), **fields}]


def message(role: str, content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"author": {"role": role, "name": None, "metadata": {}}, "content": content, "recipient": "all", **fields}


def text(*parts: Any) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


def claude(id_: str, parent: str, says: str, **fields: Any) -> dict[str, Any]:
    own = {"uuid": id_, "parent_message_uuid": parent, "sender": "human", "attachments": [], "files": []}
    return own | {"content": [{"type": "text", "text": says}] if says else [], "text": says, **fields}


@pytest.mark.parametrize("form", [bytes, gzip.compress, zipped])
@pytest.mark.parametrize(
    ("content", "session"), [([CHATGPT], "c1"), ([CLAUDE], "c2"), ([CLAUDE | {"uuid": " "}], None), (PLAIN, None)]
)
def test_a_file_of_any_form_has_its_conversations(form: Any, content: Any, session: str | None) -> None:
    (found,) = conversations(io.BytesIO(form(json.dumps(content).encode())))

    assert found.session == session
    assert [(one.role, one.text) for one in utterances(found.messages)] == [
        ("user", "Which tea?"),
        ("assistant", "Sencha."),
    ]


def test_messages_as_lines_are_one_conversation() -> None:
    lines = "\n".join(map(json.dumps, PLAIN)).encode()

    assert [one.messages for one in conversations(io.BytesIO(lines))] == [PLAIN]


def test_conversations_without_messages_are_counted() -> None:
    content = json.dumps([{"uuid": "c1", "chat_messages": []}, CLAUDE, {"mapping": {}, "current_node": "x"}]).encode()
    found = [(one.session, bool(one.messages)) for one in conversations(io.BytesIO(content))]
    assert found == [("c1", False), ("c2", True), (None, False)]


def test_what_chatgpt_hides_or_thinks_is_left_out_and_its_calls_are_of_a_tool() -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    asset = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 1, "height": 1}
    given = chatgpt(
        message("system", text(""), metadata=hidden),
        message("user", {"content_type": "user_editable_context", "user_profile": "p"}, metadata=hidden),
        message("user", {"content_type": "multimodal_text", "parts": [asset, "What is on the chart?"]}),
        message("assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
        message("assistant", {"content_type": "code", "language": "python", "text": "plot()"}, recipient="python"),
        message("tool", {"content_type": "execution_output", "text": "done"}),
        message("assistant", text("Aside."), channel="analysis"),
        message("assistant", {"content_type": "reasoning_recap", "content": "Thought for 5s"}),
        message("tool", text("All files are loaded."), metadata=hidden),
        message("assistant", text('Sales in \ue200entity\ue202["city","Leipzig","in Saxony"]\ue201 rise'
                                  "\ue200cite\ue202turn0search1\ue201."), channel="final"),
    )  # fmt: skip

    assert said(given) == [
        ("user", "What is on the chart?"),
        ("tool", "python(plot())"),
        ("tool", "done"),
        ("assistant", "Sales in Leipzig rise."),
    ]


def test_without_a_last_message_the_newest_ends_the_conversation() -> None:
    given = chatgpt(
        message("user", text("Which tea?"), create_time=1.0),
        message("assistant", text("Sencha."), create_time=2.0),
        current_node=None,
    )
    given[0]["mapping"]["3"] = {
        "message": message("assistant", text("Replaced."), create_time=1.5),
        "parent": "1",
    }

    assert said(given) == [("user", "Which tea?"), ("assistant", "Sencha.")]


def test_messages_that_lead_in_a_circle_end() -> None:
    given = chatgpt(message("user", text("Hello")), message("assistant", text("Hi")))
    given[0]["mapping"]["0"]["parent"] = "2"

    assert said(given) == [("user", "Hello"), ("assistant", "Hi")]


@pytest.mark.parametrize(
    ("spoilt", "left"),
    [
        ({"mapping": {"0": {"parent": None, "message": "Hello"}}}, []),
        ({"current_node": ["2"]}, ["Hello", "Hi"]),
        ({"current_node": {}}, ["Hello", "Hi"]),
        ({"mapping": {"2": {"parent": ["1"], "message": message("assistant", text("Hi"))}}}, ["Hi"]),
    ],
)
def test_ids_and_messages_of_other_types_are_left_out(spoilt: dict[str, Any], left: list[str]) -> None:
    (whole,) = chatgpt(message("user", text("Hello")), message("assistant", text("Hi"), create_time=1.0))
    content = json.dumps([whole | spoilt]).encode()

    found = [one.text for each in conversations(io.BytesIO(content)) for one in utterances(each.messages)]
    assert found == left


@examples(300)
@given(spoilt_within(CHATGPT) | spoilt_within(CLAUDE | {"chat_messages": BRANCH}))
def test_any_conversation_is_read_or_refused_with_a_message(content: Any) -> None:
    said = "read"
    try:
        for one in conversations(io.BytesIO(json.dumps([content]).encode())):
            utterances(one.messages)
    except InvalidInputError as error:
        said = str(error)
    assert said


def test_claude_shows_one_branch_with_pasted_texts_and_without_files() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    given = [
        claude("a", root, "", attachments=[{"file_name": "", "extracted_content": "A long letter."}]),
        claude("b", "a", "Replaced.", sender="assistant", created_at="2026-01-01T00:00:01Z"),
        claude("c", "a", "I read it.", sender="assistant", created_at="2026-01-01T00:00:02Z"),
        claude("d", "c", "And this?", created_at="2026-01-01T00:00:03Z",
               attachments=[{"file_name": "report.pdf", "extracted_content": "Pages."}]),
    ]  # fmt: skip

    expected = [("user", "A long letter."), ("assistant", "I read it."), ("user", "And this?")]
    assert said([{"uuid": "c2", "chat_messages": given}]) == expected
    assert said({"conversations": [{"uuid": "c2", "chat_messages": given, "current_leaf_message_uuid": "b"}]}) == [
        ("user", "A long letter."),
        ("assistant", "Replaced."),
    ]


def test_a_claude_branch_with_a_missing_message_is_read_whole() -> None:
    given = [claude("a", "root", "Which tea?"), claude("c", "b", "And coffee?", created_at="2026-01-01T00:00:02Z")]

    assert said([{"uuid": "c2", "chat_messages": given}]) == [("user", "Which tea?"), ("user", "And coffee?")]


def test_a_zip_may_have_numbered_files_in_a_folder() -> None:
    content = archive(
        **{
            "export/conversations-001.json": json.dumps([CLAUDE]).encode(),
            "export/conversations-000.json": json.dumps([CHATGPT]).encode(),
            "export/memories.json": b"[]",
            "export/shared_conversations.json": b"[1]",
            "__MACOSX/export/conversations.json": b"junk",
        }
    )

    assert [one.session for one in conversations(io.BytesIO(content))] == ["c1", "c2"]


def test_two_files_of_one_name_in_a_zip_are_both_read() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed, warnings.catch_warnings(action="ignore"):
        packed.writestr("conversations.json", json.dumps([CLAUDE]))
        packed.writestr("conversations.json", json.dumps([CHATGPT]))

    assert sorted(str(one.session) for one in conversations(target)) == ["c1", "c2"]


@pytest.mark.parametrize(
    "content",
    [
        b"hello", b'[{"role": "user", "content": "x"', b'[\n {"role": "user",\n  "content": "x"', b"[1]",
        b'"text"', b'{"role": "user", "content": "a"}\n{"role": "us', archive(**{"notes.txt": b"x"}),
        zipped(json.dumps(PLAIN).encode())[:-40], b"PK\x03\x04abc", b"\x00\xae\xff",
        zipped(json.dumps(PLAIN).encode())[:-3] + b"\xff\0\0",
    ],
)  # fmt: skip
def test_what_is_no_file_of_messages_is_refused_and_not_stored_as_words(content: bytes) -> None:
    with pytest.raises(InvalidInputError):
        list(conversations(io.BytesIO(content)))
