"""Conversations in files: messages as JSON or JSONL, and exports of ChatGPT and Claude, zipped or gzipped."""

import contextlib
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from api.contrib.records import records, undamaged
from workers.core.conversation import first_filled
from workers.errors import InvalidInputError

EXPORTED = re.compile(r"conversations(-\d+)?\.json")
"""Files of conversations in an export; ChatGPT splits long ones into numbered files."""

MARKED = re.compile("\ue200([^\ue200\ue201]*)\ue201")
"""ChatGPT's marks of citations and names within a text."""

LISTS = ("chat_messages", "messages")
Nodes = dict[str, tuple[str | None, Mapping[str, Any] | None]]
"""Parent and message by id."""


@dataclass(slots=True)
class Conversation:
    """Messages of one session, if known."""

    session: str | None = None
    messages: list[Any] = field(default_factory=list)


def conversations(source: BinaryIO) -> Iterator[Conversation]:
    """Yield the conversations of a file, also those without messages; single messages form one conversation.

    Raises:
        InvalidInputError: it is neither JSON nor JSONL, a damaged ZIP, or a ZIP of something else.
    """
    alone = Conversation()
    for number, record in enumerate(_records(source), start=1):
        if not isinstance(record, Mapping):
            raise InvalidInputError(f"Record {number} is no JSON object: {str(record)[:80]!r}; was the file cut off?")
        if (found := _conversation(record)) is None:
            alone.messages.append(record)
        else:
            yield found
    if alone.messages:
        yield alone


def _records(source: BinaryIO) -> Iterator[Any]:
    """Yield the records of a file, or those of all files of conversations in a ZIP."""
    if not source.seekable() or not zipfile.is_zipfile(source):
        with contextlib.suppress(OSError, ValueError):
            source.seek(0)
        yield from records(source)
        return
    with undamaged("The ZIP cannot be read: {}. Download the export again."), zipfile.ZipFile(source) as packed:
        for one in _exported(packed):
            with packed.open(one) as file:
                yield from records(cast("BinaryIO", file))


def _exported(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the files of conversations; a ZIP to which files were added may have two of one name."""
    inside = (one for one in packed.infolist() if not one.filename.startswith("__MACOSX/"))
    named = [one for one in inside if EXPORTED.fullmatch(one.filename.rpartition("/")[2])]
    found = sorted(named, key=lambda one: one.filename)
    if not found:
        raise InvalidInputError("The export is a ZIP without conversations.json; unpack it and give the messages.")
    return found


def _conversation(record: Mapping[str, Any]) -> Conversation | None:
    """Return a conversation in the format of ChatGPT, Claude or others; None for a single message."""
    name = record.get("conversation_id") or record.get("uuid") or record.get("session") or record.get("id")
    session = str(name) if name is not None and str(name).strip() else None
    if isinstance(record.get("mapping"), Mapping):
        return Conversation(session, _of_chatgpt(record["mapping"], record.get("current_node")))
    listed = next((record[one] for one in LISTS if isinstance(record.get(one), list)), None)
    return None if listed is None else Conversation(session, _of_claude(listed, record))


def _of_chatgpt(mapping: Mapping[str, Any], last: Any) -> list[Any]:
    """Return the messages up to the last one shown: ChatGPT also keeps replaced ones."""
    nodes: Nodes = {
        id_: (_id(node.get("parent")), message if isinstance(message := node.get("message"), Mapping) else None)
        for id_, node in mapping.items()
        if isinstance(node, Mapping)
    }
    return [_said(one) for one in _branch(nodes, _id(last), "create_time")]


def _of_claude(listed: list[Any], record: Mapping[str, Any]) -> list[Any]:
    """Return the messages of the branch shown, each with the text pasted into it."""
    shown = _shown(listed, _id(record.get("current_leaf_message_uuid")))
    return [_with_pasted(one) if isinstance(one, Mapping) else one for one in shown]


def _shown(listed: list[Any], last: str | None) -> Sequence[Any]:
    """Return the messages of the branch that ends with `last`, or all if one of the branch is missing."""
    known = [one for one in listed if isinstance(one, Mapping)]
    if not known or not all(one.get("uuid") and one.get("parent_message_uuid") for one in known):
        return listed
    nodes: Nodes = {str(one["uuid"]): (str(one["parent_message_uuid"]), one) for one in known}
    branch = _branch(nodes, last, "created_at")
    begin, root = str(branch[0]["parent_message_uuid"]), str(known[0]["parent_message_uuid"])
    return branch if begin in nodes or begin == root else listed


def _id(given: Any) -> str | None:
    return None if given is None else str(given)


def _branch(nodes: Nodes, last: str | None, time: str) -> list[Mapping[str, Any]]:
    """Return the messages from the first to `last`, which is the newest one if it is not known."""
    if last not in nodes:
        dated = [(str(message.get(time) or ""), id_) for id_, (_, message) in nodes.items() if message]
        last = max(dated, key=lambda one: one[0])[1] if dated else None
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while last is not None and last in nodes and last not in seen:
        seen.add(last)
        last, message = nodes[last]
        found += [] if message is None else [message]
    return found[::-1]


def _said(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of ChatGPT as role and text; without text if it is hidden or a thought."""
    author, content = _object(message.get("author")), _object(message.get("content"))
    is_hidden = _object(message.get("metadata")).get("is_visually_hidden_from_conversation")
    given = first_filled(content, "parts", "text", "result")
    parts = [] if is_hidden or message.get("channel") == "analysis" else given if isinstance(given, list) else [given]
    texts = [MARKED.sub(_named, one) if isinstance(one, str) else one for one in parts]
    tool = message.get("recipient") or "all"
    if tool == "all":
        return {**message, "role": author.get("role"), "content": texts}
    called = "\n".join(one for one in texts if isinstance(one, str))
    return {**message, "role": "tool", "content": f"{tool}({called})" if called else None}


def _named(mark: re.Match[str]) -> str:
    """Return the name that a mark of an entity shows; citations show nothing."""
    kind, _, value = mark[1].partition("\ue202")
    with contextlib.suppress(ValueError, LookupError, TypeError):
        return str(json.loads(value)[1]) if kind == "entity" else ""
    return ""


def _with_pasted(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message of Claude with long pasted texts, which are attachments without a name; files are left out."""
    attached = message.get("attachments")
    pasted = [
        {"type": "text", "text": one.get("extracted_content")}
        for one in (attached if isinstance(attached, list) else ())
        if isinstance(one, Mapping) and str(one.get("file_name") or "paste.txt") == "paste.txt"
    ]
    if not pasted:
        return message
    said = message.get("content") or message.get("text") or []
    return {**message, "content": [*(said if isinstance(said, list) else [said]), *pasted]}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
