"""Conversations in files: messages as JSON or JSONL, and exports of ChatGPT and Claude, optionally gzipped."""

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from api.contrib.records import records
from workers.errors import InvalidInputError

EXPORTED = "conversations.json"


@dataclass(slots=True)
class Conversation:
    """Messages of one session, if known."""

    session: str | None = None
    messages: list[Any] = field(default_factory=list)


def conversations(source: BinaryIO) -> Iterator[Conversation]:
    """Yield the conversations of a file; single messages form one conversation.

    Raises:
        InvalidInputError: it is neither JSON nor JSONL, or a ZIP of something else.
    """
    alone = Conversation()
    for record in records(_unzipped(source)):
        if not isinstance(record, Mapping) or (found := _conversation(record)) is None:
            alone.messages.append(record)
        elif found.messages:
            yield found
    if alone.messages:
        yield alone


def _unzipped(source: BinaryIO) -> BinaryIO:
    """Return the conversations in a ZIP of ChatGPT or Claude; other files are returned unchanged."""
    if not source.seekable():
        return source
    is_packed = zipfile.is_zipfile(source)
    source.seek(0)
    if not is_packed:
        return source
    packed = zipfile.ZipFile(source)
    found = next((one for one in packed.namelist() if one.rpartition("/")[2] == EXPORTED), None)
    if found is None:
        raise InvalidInputError(f"The export is a ZIP without {EXPORTED}; unpack it, and give the file of messages.")
    return cast("BinaryIO", packed.open(found))


def _conversation(record: Mapping[str, Any]) -> Conversation | None:
    """Return a conversation in the format of ChatGPT, Claude or others; None for a single message."""
    name = record.get("conversation_id") or record.get("uuid") or record.get("session") or record.get("id")
    session = None if name is None else str(name)
    if isinstance(record.get("mapping"), Mapping):
        return Conversation(session, _branch(record["mapping"], record.get("current_node")))
    listed = next((record[one] for one in ("chat_messages", "messages") if isinstance(record.get(one), list)), None)
    return None if listed is None else Conversation(session, listed)


def _branch(nodes: Mapping[str, Any], last: Any) -> list[Any]:
    """Return the messages up to the last one shown: ChatGPT also keeps replaced ones."""
    found: list[Any] = []
    seen: set[str] = set()
    while isinstance(node := nodes.get(last), Mapping) and last not in seen:
        seen.add(last)
        if isinstance(message := node.get("message"), Mapping):
            author = message.get("author")
            role = author.get("role") if isinstance(author, Mapping) else author
            content = message.get("content")
            parts = content.get("parts") if isinstance(content, Mapping) else content
            found.append({**message, "role": role, "content": parts})
        last = node.get("parent")
    return found[::-1]
