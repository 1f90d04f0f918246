"""Files of conversations: plain messages, and exports of ChatGPT and Claude."""

import gzip
import io
import json
import zipfile
from typing import Any

import pytest

from api.contrib.conversations import conversations
from workers.core.conversation import utterances

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


def zipped(content: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        packed.writestr("user.json", "{}")
        packed.writestr("conversations.json", content)
    return target.getvalue()


@pytest.mark.parametrize("form", [bytes, gzip.compress, zipped])
@pytest.mark.parametrize(("content", "session"), [([CHATGPT], "c1"), ([CLAUDE], "c2"), (PLAIN, None)])
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


def test_conversations_without_messages_are_left_out() -> None:
    content = json.dumps([{"uuid": "c1", "chat_messages": []}, CLAUDE, {"mapping": {}, "current_node": "x"}]).encode()

    assert [one.session for one in conversations(io.BytesIO(content))] == ["c2"]
